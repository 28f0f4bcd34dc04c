"""The constructs of kernels, each the body of a kernel of thread `i` over x, m, table and out."""

SNIPPETS = {
    "tuples": """
    a, (b, c) = i, (i + 1, 2)
    a, b = b, a
    t = (a, b, c)
    out[i] = t[0] * 100 + t[1] * 10 + t[-1] + len(t) + (t + (4, 5))[3]
""",
    "tuple by a thread's index": """
    t = (i * 2, i * 3, i * 5)
    out[i] = t[i % 3] + t[-1 - i % 3]
""",
    "tuple slices and loops": """
    s = 0
    for v in (3, 1, i)[1:]:
        s = s * 10 + v
    for v in [1, 2]:
        s += v
    out[i] = s
""",
    "several targets": """
    a = b = i + 1
    a += 1
    out[i] = a * b
""",
    "augmented": """
    a = i + 10
    a -= 3; a *= 2; a //= 3; a %= 50; a <<= 2; a >>= 1; a |= 1; a ^= 6; a &= 63; a **= 2
    b = i + 0.5
    b /= 4
    out[i] = a + b
    out[i] += 1
    out[i] *= 2
""",
    "chained comparison": """
    out[i] = (2 < i <= 20 < x.size) + 2 * (i < 5 > 3) + 4 * (i == i % 7 != 3)
""",
    "short circuit guards": """
    if i < 3 and x[i * 16] > 0 or i > 45 and x[i - 45] > 0:
        out[i] = 1
    elif not (i < 40 and x[i + 10] < 0):
        out[i] = 2
    else:
        out[i] = 3
""",
    "boolean operators give values": """
    out[i] = (i % 3 and i % 5 or 77) + (i % 2 or 9)
""",
    "ternaries": """
    out[i] = (x[i + 10] if i < 40 else x[i - 40]) * (1 if i % 2 else (2 if i % 3 else 3))
""",
    "membership": """
    out[i] = (i in (1, 5, 7)) + 2 * (i % 4 not in (0, 3))
""",
    "negative indices": """
    out[-1 - i] = x[-50 + i] + m[-1, -(i % 5) - 1]
""",
    "two axes": """
    out[i] = m[i % 7, i % 5] + m[i % 7][i % 5] + table[i % 2, 2]
""",
    "shapes": """
    out[i] = x.shape[0] + m.shape[0] * m.shape[1] + m.size + m.ndim + len(m) + m[2].shape[0]
    n, k = m.shape
    out[i] += n * k
""",
    "views": """
    row = m[i % 7]
    part = m[1:6:2, i % 5]
    out[i] = row[2] + part[2] + part.shape[0] + m.T[1, i % 7] + x[5:][i % 45] + x[-3:][1]
""",
    "views chosen by each thread": """
    row = m[0]
    if i % 2:
        row = m[i % 7]
    part = m[1:4] if i % 3 else m[2:5]
    out[i] = row[i % 5] + part[i % 3, 1]
""",
    "loop over an array": """
    s = 0.0
    for v in m[i % 7]:
        if v < 0:
            continue
        s += v
    out[i] = s
""",
    "enumerate and zip": """
    s = 0.0
    for k, v in enumerate(m[0]):
        s += k * v
    for a, b in zip((1, 2, 3), (i, 4, 5)):
        s += a * b
    out[i] = s
""",
    "ranges with each thread's own bounds": """
    s = 0
    for k in range(i % 4, i, i % 3 + 1):
        s += k
    for k in range(i, -2, -7):
        s = s * 3 + k
    for k in range(3, 10, 1 if i % 2 else -1):
        s += 1
    out[i] = s + k
""",
    "loop variable after the loop": """
    k = -1
    for k in range(i % 5):
        if k == 2:
            break
    out[i] = k
""",
    "nested loops with break and continue": """
    s = 0
    for a in range(6):
        if a == i % 4:
            continue
        b = 0
        while True:
            b += 1
            if b > a:
                break
            if (a + b + i) % 3 == 0:
                continue
            s += a * b
            if s > 60:
                break
        else:
            s += 1000
        if s > 100:
            break
    else:
        s += 5000
    out[i] = s
""",
    "early return": """
    if i % 3 == 0:
        return
    for k in range(10):
        if k * k > i:
            out[i] = k
            return
    out[i] = 99
""",
    "functions of numbers": """
    v = x[i]
    out[i] = abs(v) + min(v, 0.25) + max(v, m[0, 0], 0) + round(v * 10) + int(v * 7) + float(i)
    out[i] += bool(i % 2) + pow(i % 5, 2) + divmod(i, 7)[0] * 10 + divmod(i, 7)[1]
    out[i] += math.floor(v) + math.sqrt(abs(v)) + math.pi + np.float64(3) + math.pow(2.0, 3)
""",
    "casts": """
    out[i] = np.int32(x[i] * 100) + np.uint8(i + 250) + np.float32(0.1) + np.int8(200 + i)
    out[i] += np.int64(3.9) + np.float64(np.float16(0.1))
""",
    "integer arithmetic": """
    j = i - 25
    out[i] = j // 4 + j % 4 * 10 + -j // 3 + -j % 7 + (j >> 1) + (~j) + (j ^ 5) + (j & 12) - +j
""",
    "constants": """
    out[i] = K + PAIR[1] + PAIR[0] ** 2 + 0x10 + 1_000 + -K + 2.0**-3 + (K if True else 1)
""",
    "annotations and pass": """
    value: int = i * 2
    if i > 3:
        pass
    else:
        value += 1
    out[i] = value
""",
    "device functions": """
    s, p = both_of(i, y=3)
    out[i] = clamp(s, 5, 20) + p + clamp(hi=4, lo=2, v=i) + nothing(out, i, 1) if i else -7
""",
}
HELPERS = """
def clamp(v, lo, hi):
    if v < lo:
        return lo
    if v > hi:
        return hi
    return v


def both_of(x, y=2):
    return x + y, x * y


def nothing(out, i, v):
    out[i] = v
    return 3 if v > 0 else 4


"""
