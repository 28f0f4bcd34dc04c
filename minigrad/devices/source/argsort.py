"""Sort the places of the elements of each row of x (rows, n)."""

# pyright: reportUndefinedVariable=false

RUN = I8(16)  # places that are sorted by insertion, which is quicker for few


@exact_jit
def is_before(a, b):
    """Return whether a must precede b: NaN comes last."""
    return a < b or (b != b and a == a)


@exact_jit
def merged(x, places, out, low, middle, high):
    """Write places low to high - 1, two runs that are sorted up to and from middle, in order."""
    i, j, k = low, middle, low
    if middle < high:
        left, right = x[places[i]], x[places[j]]
        while i < middle and j < high:
            if is_before(right, left):
                out[k] = places[j]
                j += 1
                if j < high:
                    right = x[places[j]]
            else:
                out[k] = places[i]
                i += 1
                if i < middle:
                    left = x[places[i]]
            k += 1
    for rest in range(i, middle):
        out[k + rest - i] = places[rest]
    for rest in range(j, high):
        out[rest] = places[rest]


@lazy("void(i8,i8,i8,i8,i8,i8)")
def argsort_T(x_at, out_at, other_at, n, start, stop):
    """Write the places that sort rows start to stop - 1 in ascending order, NaN last, to out.

    A stable merge sort, there and back by way of `other`: memory for as many places as out.
    """
    for row in range(start, stop):
        x, out = T_at(x_at + row * n * SIZE), i8_at(out_at + row * n * 8)
        other = i8_at(other_at + row * n * 8)
        for low in range(0, n, RUN):
            for k in range(low, min(low + RUN, n)):
                i = k
                while i > low and is_before(x[k], x[out[i - 1]]):
                    out[i] = out[i - 1]
                    i -= 1
                out[i] = k
        width = RUN
        while width < n:
            for places, target in ((out, other), (other, out)):
                for low in range(0, n, 2 * width):
                    middle, high = min(low + width, n), min(low + 2 * width, n)
                    merged(x, places, target, low, middle, high)
                width *= 2
