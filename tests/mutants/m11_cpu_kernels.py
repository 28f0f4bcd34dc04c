"""Wrong solutions of lesson 11 that people really write."""

import textwrap
from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "11_cpu_kernels.py").read_text(
    encoding="utf-8"
)


def mutant(name: str, key: str, *changes: tuple[str, str], of: str = "") -> Mutant:
    """Return a mutant of an exercise: `of`, or the function itself, with pieces replaced."""
    which = of or name
    start = SOLUTION.index(f"def {which}(")
    ends = [SOLUTION.find(mark, start + 1) for mark in ("\n\n\n@njit", "\n\n\ndef ", "\n\n\n# ")]
    text = SOLUTION[start : min(end for end in ends if end > 0)]
    if SOLUTION[:start].endswith("@njit\n"):
        text = "@njit\n" + text
    head, quotes, body = text.rpartition('"""\n')
    for old, new in changes:
        assert old in body, old
        body = body.replace(old, new)
    return Mutant(name, key, head + quotes + body)


def kernel(name: str, key: str, body: str, decorator: str = "@njit\n") -> Mutant:
    """Return a mutant with this body."""
    start = SOLUTION.index(f"def {name}(")
    signature = SOLUTION[start : SOLUTION.index("\n", start) + 1]
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return Mutant(name, key, decorator + signature + lines)


SUM, SOFTMAX, MATMUL, FUSE = "k_sum_axis", "k_softmax_fused", "k_matmul_blocked", "fuse"
SMOOTH = "smooth_all"
ALL_ROWS = """\
n, m = x.shape
for i in range(n):
    {start}
    for j in range(m):
        {maximum}
    total = 0.0
    for j in range(m):
        total += math.exp(x[i, j] - largest)
    for j in range(m):
        {result}
"""
RIGHT = {
    "start": "largest = -math.inf",
    "maximum": "largest = max(x[i, j], largest)",
    "result": "out[i, j] = math.exp(x[i, j] - largest) / total",
}


def softmax(key: str, **changes: str) -> Mutant:
    """Return a softmax in another style, with changes."""
    return kernel(SOFTMAX, key, ALL_ROWS.format(**{**RIGHT, **changes}))


REMEMBER = """\
    if key not in KERNELS:
        KERNELS[key] = new_kernel(ops)
    return KERNELS[key]
"""
PASTED = """
def fuse(ops):
    key, text = tuple(ops), "values[i]"
    for op in ops:
        text = re.sub(r"\\bx\\b", {piece}, op)
    if key not in KERNELS:
        names = {{"math": math}}
        lines = ["def kernel(values, out):", "    for i in range(values.size):"]
        exec("\\n".join([*lines, f"        out[i] = {{text}}"]), names)
        KERNELS[key] = njit(names["kernel"])
    return KERNELS[key]


import re
"""


def smooth(key: str, *lines: str) -> Mutant:
    """Return a mutant of smooth_all: these lines have x, given, w and out, and call the kernel."""
    return Mutant(
        SMOOTH,
        key,
        """
ROOM = np.empty(100)


def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        out = np.empty(x.size)
        w = [weight / max(given) for weight in given]
"""
        + textwrap.indent("\n".join(lines), "        ")
        + "\n        results.append(out)\n    return results\n",
    )


ZEROS = "    for k in range(out.size):\n        out[k] = 0\n"
FITS = "abs(x.strides[0]) >= abs(x.strides[1])"
ZEROS_C = "    for i in range(n):\n        for j in range(m):\n            c[i, j] = 0\n"

MUTANTS = [
    # k_sum_axis
    mutant(SUM, "axis", ("axis == 1", "axis == 0")),
    mutant(SUM, "added", (ZEROS, "")),
    mutant(SUM, "last", ("+= x[i, j]", "= x[i, j]")),
    mutant(SUM, "across", (">=", "<")),
    mutant(SUM, "across", (FITS, "True")),
    mutant(SUM, "across", (FITS, "x.strides[0] >= x.strides[1]")),
    mutant(SUM, "across", (FITS, "n >= m")),
    mutant(SUM, "across", (FITS, "axis == 0")),
    mutant(
        SUM,
        "across",  # tiles of half a line
        (
            "        for i in range(n):\n            for j in range(m):\n",
            "        for tile in range(0, m, 8):\n          for i in range(n):\n"
            "            for j in range(tile, min(tile + 8, m)):\n",
        ),
    ),
    mutant(SUM, "across", (FITS, "abs(x.strides[1]) == x.itemsize")),
    mutant(SUM, "added", ("range(out.size)", "range(min(m, out.size))")),
    kernel(
        SUM,
        "across",
        """
if axis == 0:
    for j in range(x.shape[1]):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i, j]
        out[j] = total
else:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
""",
    ),
    kernel(SUM, "temporaries", "out[:] = x.sum(axis)\n"),
    mutant(SUM, "skipped", ("+= x[i, j]", "+= x[i, j] if math.isfinite(x[i, j]) else 0.0")),
    kernel(
        SUM,
        "raised",
        """
for j in range(out.size):
    out[j] = x[0, j] if axis == 0 else x[j, 0]
for k in range(1, x.shape[axis]):
    for j in range(out.size):
        out[j] += x[k, j] if axis == 0 else x[j, k]
""",
    ),
    kernel(SUM, "not_compiled", "out[:] = x.sum(axis)\n", decorator=""),
    mutant(SUM, "added", ("out[k] = 0", "out[k] *= 0")),
    # an int has 64 bits in compiled code
    mutant(SUM, "compiled", ("+= x[i, j]", "+= x[i, j] * (2 ** (64 + axis) > 0)")),
    kernel(SUM, "parallel", "out[:] = x.sum(axis)\n", decorator="@njit(parallel=True)\n"),
    mutant(
        SUM,
        "unwritten",  # of no elements
        (ZEROS, ""),
        (
            "out[i if axis == 1 else j] += x[i, j]",
            "place, k = (i, j) if axis == 1 else (j, i)\n"
            "                out[place] = x[i, j] + (0 if k == 0 else out[place])",
        ),
    ),
    # k_softmax_fused
    softmax("raised", start="largest = x[i, 0]"),
    softmax("numerators", result="out[i, j] = math.exp(x[i, j] - largest)"),
    softmax("overflow", maximum="largest = 0.0"),
    mutant(
        SOFTMAX,
        "one_maximum",
        (
            "    for i in range(n):\n        largest = -math.inf\n",
            "    largest = -math.inf\n    for i in range(n):\n",
        ),
    ),
    mutant(
        SOFTMAX,
        "one_maximum",
        (
            "    for i in range(n):\n        largest = -math.inf\n",
            "    largest = -math.inf\n    for i in range(n):\n"
            "        for j in range(m):\n            largest = max(largest, x[i, j])\n"
            "    for i in range(n):\n",
        ),
    ),
    mutant(
        SOFTMAX,
        "all_rows",
        (
            "    for i in range(n):\n        largest",
            "    total = 0.0\n    for i in range(n):\n        largest",
        ),
        ("        total = 0.0\n", ""),
    ),
    mutant(
        SOFTMAX,
        "accesses",
        (
            "            out[i, j] = e\n            total += e\n",
            "            out[i, j] = e\n            total += out[i, j]\n",
        ),
    ),
    kernel(
        SOFTMAX,
        "temporaries",
        """
for i in range(x.shape[0]):
    if x.shape[1]:
        e = np.exp(x[i] - x[i].max())
        out[i] = e / e.sum()
""",
    ),
    kernel(
        SOFTMAX,
        "temporaries",
        """
e = np.empty(x.shape[1], x.dtype)
for i in range(x.shape[0]):
    largest = -math.inf
    for j in range(x.shape[1]):
        largest = max(x[i, j], largest)
    total = 0.0
    for j in range(x.shape[1]):
        e[j] = math.exp(x[i, j] - largest)
        total += e[j]
    for j in range(x.shape[1]):
        out[i, j] = e[j] / total
""",
    ),
    kernel(
        SOFTMAX,
        "columns",
        """
for j in range(x.shape[1]):
    largest = -math.inf
    for i in range(x.shape[0]):
        largest = max(x[i, j], largest)
    total = 0.0
    for i in range(x.shape[0]):
        out[i, j] = math.exp(x[i, j] - largest)
        total += out[i, j]
    for i in range(x.shape[0]):
        out[i, j] /= total
""",
    ),
    softmax("raised", start="largest = 0.0"),
    Mutant(
        SOFTMAX,
        "divided",
        "@njit(fastmath=True)\ndef k_softmax_fused(x, out):\n"
        + textwrap.indent(ALL_ROWS.format(**RIGHT), "    "),
    ),
    mutant(
        SOFTMAX,
        "value",
        ("            e = math", "            e = 0.0 if math.isnan(x[i, j]) else math"),
    ),
    # k_matmul_blocked
    mutant(MATMUL, "added", (ZEROS_C, "")),
    mutant(MATMUL, "added", ("c[i, j] = 0", "c[i, j] *= 0")),
    mutant(
        MATMUL,
        "block",
        (
            "    for i in range(n):\n        for j",
            "    block = 8\n    for i in range(n):\n        for j",
        ),
    ),
    mutant(MATMUL, "short", ("min(top + block, n)", "min(top + block, n - 1)")),
    mutant(
        MATMUL,
        "last_step",
        (
            "for i in range(top, min(top + block, n)):",
            "for i in range(top, min(top + block, n)):\n"
            "                    for j in range(left, min(left + block, m)):\n"
            "                        c[i, j] = 0\n                ",
        ),
    ),
    mutant(
        MATMUL, "whole_blocks", ("range(0, inner, block)", "range(0, inner - block + 1, block)")
    ),
    mutant(
        MATMUL,
        "whole_blocks",
        ("range(0, n, block)", "range(0, n // block * block, block)"),
        ("range(0, m, block)", "range(0, m // block * block, block)"),
        ("range(0, inner, block)", "range(0, inner // block * block, block)"),
    ),
    mutant(MATMUL, "raised", ("min(start + block, inner)", "start + block")),
    mutant(MATMUL, "other_size", ("min(start + block, inner)", "min(start + block, inner, n)")),
    mutant(
        MATMUL,
        "left_over",
        (
            "min(start + block, inner)",
            "start + (min(start + block, inner) - start) // 2 * 2",
        ),
    ),
    mutant(MATMUL, "transposed", ("b[k, left : left + block]", "b[left : left + block, k]")),
    kernel(
        MATMUL,
        "lines",
        """
for i in range(a.shape[0]):
    for j in range(b.shape[1]):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total
""",
    ),
    kernel(
        MATMUL,
        "lines",
        """
for i in range(a.shape[0]):
    for j in range(b.shape[1]):
        c[i, j] = 0
    for k in range(a.shape[1]):
        for j in range(b.shape[1]):
            c[i, j] += a[i, k] * b[k, j]
""",
    ),
    mutant(
        MATMUL,
        "value",
        (
            "factor = a[i, k]\n",
            "factor = a[i, k]\n                        if factor == 0:\n"
            "                            continue\n",
        ),
    ),
    mutant(
        MATMUL,
        "lines",
        ("range(0, inner, block)", "range(0, inner, max(inner, 1))"),
        ("min(start + block, inner)", "inner"),
    ),
    mutant(
        MATMUL,
        "temporaries",
        (ZEROS_C, ZEROS_C + "    tile = np.empty((block, block))\n    tile[0, 0] = 1.0\n"),
    ),
    # fuse
    mutant(
        FUSE,
        "last_only",
        ('f"        x = {op}"', 'f"        out[i] = {op}"'),
        ('["        x = values[i]"]', '["        x = values[i]", "        out[i] = x"]'),
        ('    lines += ["        out[i] = x"]\n', ""),
        of="new_kernel",
    ),
    mutant(FUSE, "reversed", ("for op in ops]", "for op in reversed(ops)]"), of="new_kernel"),
    mutant(FUSE, "again", ("    if key not in KERNELS:\n", "    if True:\n")),
    mutant(
        FUSE,
        "confused",
        ("key = tuple(ops)", "key = tuple(sorted(ops))"),
        ("new_kernel(key)", "new_kernel(ops)"),
    ),
    mutant(FUSE, "not_compiled", ('njit(names["kernel"])', 'names["kernel"]'), of="new_kernel"),
    Mutant(
        FUSE,
        "temporaries",
        """
def fuse(ops):
    key = tuple(ops)
    if key not in KERNELS:
        lines = ["def kernel(x_, out):", "    x = x_"]
        for op in key:
            lines += ["    y = np.empty_like(x_)", "    for i in range(x_.size):",
                      "        y[i] = one(x[i])".replace("one(x[i])", f"(lambda x: {op})(x[i])")]
            lines += ["    x = y"]
        lines += ["    out[:] = x"]
        names = {"math": math, "np": np}
        exec("\\n".join(lines), names)
        KERNELS[key] = njit(names["kernel"])
    return KERNELS[key]
""",
    ),
    Mutant(
        FUSE,
        "passes",
        """
def fuse(ops):
    key = tuple(ops)
    if key not in KERNELS:
        lines = ["def kernel(values, out):", "    for i in range(values.size):",
                 "        out[i] = values[i]"]
        for op in key:
            lines += ["    for i in range(values.size):", "        x = out[i]",
                      f"        out[i] = {op}"]
        names = {"math": math}
        exec("\\n".join(lines), names)
        KERNELS[key] = njit(names["kernel"])
    return KERNELS[key]
""",
    ),
    Mutant(FUSE, "confused", "def fuse(ops):\n    key = ''.join(ops)\n" + REMEMBER),
    Mutant(FUSE, "kept", "def fuse(ops):\n    key = len(ops)\n" + REMEMBER),
    Mutant(FUSE, "unhashable", "def fuse(ops):\n    key = ops\n" + REMEMBER),
    Mutant(
        FUSE,
        "changed_input",
        "def fuse(ops):\n    key = tuple(ops)\n    ops[:] = ops[::-1]\n    ops.reverse()\n"
        "    ops.append('x')\n" + REMEMBER.replace("(ops)", "(key)"),
    ),
    Mutant(FUSE, "pasted", PASTED.format(piece="text")),
    Mutant(FUSE, "passes", PASTED.format(piece='f"({text})"')),
    Mutant(
        FUSE,
        "repeated",
        PASTED.format(piece='f"({text})"')
        .replace('"values[i]"', '"v"')
        .replace('size):"]', 'size):", "        v = values[i]"]'),
    ),
    Mutant(
        FUSE,
        "again",
        "from functools import lru_cache\n\nmade = lru_cache(new_kernel)\n\n\n"
        "def fuse(ops):\n    return made(tuple(ops))\n",
    ),
    mutant(FUSE, "raised", ("{op}", "{op.replace('x', 'y')}"), of="new_kernel"),
    mutant(FUSE, "raised", ('{"math": math}', "{}"), of="new_kernel"),
    # pick_kernel
    Mutant(
        "pick_kernel",
        "remembered",
        """
each_time, ANSWERS = pick_kernel, {}


def pick_kernel(n, measured):
    if n not in ANSWERS:
        ANSWERS[n] = each_time(n, measured)
    return ANSWERS[n]
""",
    ),
    mutant(
        "pick_kernel",
        "raised",
        (
            "return before + share * (after - before)",
            "return math.exp(before) ** (1 - share) * math.exp(after) ** share",
        ),
    ),
    mutant(
        "pick_kernel",
        "powers",
        (
            "return before + share * (after - before)",
            "return np.exp((1 - share) * before) * np.exp(share * after)",
        ),
    ),
    # smooth_all
    smooth("compiled_again", "k_smooth(np.asarray(signal), np.array(w), out)"),
    smooth("value", "k_smooth(x, np.array(w), out := np.empty(x.size, signal.dtype))"),
    smooth("value", "k_smooth(x, np.array(w, np.float32), out)"),
    smooth("value", "k_smooth(x, tuple([*w, *[0.0] * 10][:10]), out)"),
    smooth("overflows", "k_smooth(x, np.array(given, np.float64), out)"),
    smooth("scaled_up", "k_smooth(x, np.array(w) * (max(given) / min(given)), out)"),
    smooth("compiled_again", "k_smooth(x, np.array(w, int if set(w) == {1.0} else float), out)"),
    smooth(
        "padded", "k_smooth(x, np.array([*w, *w[-1:] * (max(map(len, weights)) - len(w))]), out)"
    ),
    smooth(
        "spread", "k_smooth(x, np.array([*w, *[0.0] * (max(map(len, weights)) - len(w))]), out)"
    ),
    smooth("shared", "out = ROOM[len(results) * 50 :][: x.size]", "k_smooth(x, np.array(w), out)"),
    smooth("changed_input", "given[:] = w", "k_smooth(x, np.array(w), out)"),
    smooth("shared", "out = ROOM[: x.size]", "k_smooth(x, np.array(w), out)"),
    smooth("unused", "k_smooth.py_func(x, w, out)"),
    Mutant(SMOOTH, "untouched", 'BUG = {"line": None, "differs": None}'),
    Mutant(
        SMOOTH,
        "compiled_again",
        """
def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        out = np.empty(x.size)
        largest = max(given)
        w = tuple(weight / largest for weight in given)
        k_smooth(x, w, out)
        results.append(out)
    return results
""",
    ),
    Mutant(
        SMOOTH,
        "compiled_again",
        """
def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        out = np.empty(x.size)
        k_smooth(x, np.array(given), out)
        results.append(out)
    return results
""",
    ),
    Mutant(
        SMOOTH,
        "reversed",
        """
def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        out = np.empty(x.size)
        k_smooth(x, np.array(given[::-1], float), out)
        results.append(out)
    return results
""",
    ),
    Mutant(
        SMOOTH,
        "unused",
        """
def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        total, used = np.zeros(x.size), np.zeros(x.size)
        for k, weight in enumerate(given[: x.size]):
            total[k:] += weight * x[: x.size - k]
            used[k:] += weight
        results.append(total / used)
    return results
""",
    ),
    Mutant(
        SMOOTH,
        "cut",
        """
def smooth_all(signals, weights):
    results = []
    for signal, given in zip(signals, weights, strict=True):
        x = np.asarray(signal, np.float64)
        out = np.empty(x.size)
        k_smooth(x, np.array(given[:1], float), out)
        results.append(out)
    return results
""",
    ),
]
