"""Wrong solutions of lesson 11 that people really write."""

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
    # k_softmax_fused
    softmax("raised", start="largest = x[i, 0]"),
    softmax("numerators", result="out[i, j] = math.exp(x[i, j] - largest)"),
    softmax("overflow", maximum="largest = 0.0"),
    mutant(
        SOFTMAX,
        "raised",
        (
            "    for i in range(n):\n        largest = -math.inf\n",
            "    largest = -math.inf\n    for i in range(n):\n",
        ),
    ),
    mutant(
        SOFTMAX,
        "raised",
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
    # k_matmul_blocked
    mutant(MATMUL, "added", (ZEROS_C, "")),
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
    # smooth_all
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
