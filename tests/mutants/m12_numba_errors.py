"""Wrong solutions of lesson 12 that people really write."""

from pathlib import Path

from minigrad.course.mutants import Mutant

SOLUTION = (Path(__file__).parents[2] / "solutions" / "12_numba_errors.py").read_text(
    encoding="utf-8"
)


def mutant(name: str, key: str, *changes: tuple[str, str], of: str = "") -> Mutant:
    """Return the mutant of these changes in a function (or in `of`, which it calls)."""
    lines = SOLUTION.splitlines(keepends=True)
    first = next(k for k, line in enumerate(lines) if line.startswith(f"def {of or name}("))
    last = next((k for k in range(first + 1, len(lines)) if lines[k][0] not in " \n"), len(lines))
    while lines[first - 1].startswith(("@", "###")):
        first -= 1
    text = "".join(line for line in lines[first:last] if not line.strip().startswith("#"))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return Mutant(name, key, text)


SUM, MEDIAN, CENTER, GELU = "sum_rows", "median_sorted", "center_rows", "gelu"
MEAN, RATIOS, LEAKY, INK = "moving_mean", "ratios", "leaky", "ink_of_digits"
NJIT, PARALLEL = "@njit\n", "@njit(parallel=True)\n"
BODY = "    out = np.empty(len(x))\n    fill_leaky(x, slope, out)\n    return out\n"
CLOSURE = """
def leaky(x, slope):
    @njit
    def fill(x, out):
        for i in range(len(x)):
            out[i] = x[i] if x[i] > 0.0 else slope * x[i]

    out = np.empty_like(x)
    fill(x, out)
    return out
"""
FAKE = """
class Dispatcher:
    nopython_signatures = [1]

    def __call__(self, x):
        return x.sum(axis=0)


sum_rows = Dispatcher()
"""
SCALAR = """
@njit
def one(v, slope):
    return v if v > 0.0 else slope * v


def leaky(x, slope):
    return np.array([one(v, slope) for v in x])
"""
ONE_BY_ONE = "np.array([one(v, slope) for v in x])"
OBJECTS = """
from numba import objmode


@njit
def sum_rows(x):
    with objmode(total="float64[:]"):
        total = x.sum(axis=0)
    return total
"""
OBJECTS_INSIDE = """
from numba import objmode


@njit
def normal_share(z):
    with objmode(share="float64"):
        share = 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
    return share
"""
OF_DIGITS = """
@njit(parallel=True)
def ink_of_digits(x, label, of_image, ink):
    for d in prange(10):
        ink[d] = 0.0
        for i in range(len(x)):
            if label[i] == d:
                of_image[i] = x[i].sum()
                ink[d] += of_image[i]
    return ink.sum()
"""
ONE_ROW = """
@njit
def sum_rows(x):
    if x.shape[0] == 0:
        return np.zeros(x.shape[1])
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total
"""
IN_FLOAT32 = """
@njit
def sum_rows(x):
    total = np.zeros(x.shape[1], np.float32)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total[j] += x[i, j]
    return total.astype(np.float64)
"""
NOTHING_WRITTEN = """
@njit
def sum_rows(x):
    total = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        if i == 0:
            total[:] = 0.0
        total += x[i]
    return total
"""
ITSELF = """
@njit
def moving_mean(x, width):
    if width == 1:
        return x
    out = np.empty(max(0, len(x) - width + 1))
    for k in range(len(out)):
        out[k] = x[k : k + width].mean()
    return out
"""
RECOMPILE = "    fill_leaky.recompile()\n"
GLOBAL = """
SLOPE = 0.01


@njit
def fill_leaky(x, slope, out):
    for i in range(len(x)):
        out[i] = x[i] if x[i] > 0.0 else SLOPE * x[i]


def leaky(x, slope):
    global SLOPE
    SLOPE = slope
    out = np.empty_like(x)
    fill_leaky(x, slope, out)
    return out
"""
KAHAN = """
@njit
def sum_rows(x):
    total = np.zeros(x.shape[1])
    lost = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        y = x[i] - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total
"""
HALFWAY = """
@njit
def median_sorted(x):
    low, high = x[(len(x) - 1) // 2], x[len(x) // 2]
    return low + (high - low) / 2
"""
BUFFER = """
BUFFERS = {}


def leaky(x, slope):
    out = BUFFERS.setdefault(len(x), np.empty(len(x)))
    fill_leaky(x, slope, out)
    return out
"""
NO_NAN = """
@njit
def leaky(x, slope):
    out = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0.0:
            out[i] = x[i]
        elif x[i] < 0.0:
            out[i] = slope * x[i]
    return out
"""
NO_BRANCH = """
@njit
def leaky(x, slope):
    return 0.5 * ((1.0 + slope) * x + (1.0 - slope) * np.abs(x))
"""
FOURS = """
@njit(parallel=True)
def ink_of_digits(x, label, of_image, ink):
    total = 0.0
    for block in prange(len(x) // 4):
        for i in range(4 * block, 4 * block + 4):
            of_image[i] = x[i].sum()
            total += of_image[i]
    ink[:] = np.bincount(label, of_image, 10)
    return total
"""
AFTER = "    for k in range(len(x)):\n        ink[label[k]] += of_image[k]\n"
RACE = "        total += own  # I\n"
RACING = RACE + "        ink[label[i]] += own\n"

MUTANTS = [
    # the stubs' own lines
    mutant(SUM, "numba", ("np.zeros(x.shape[1])", "0.0")),
    mutant(SUM, "numba", ("np.zeros(x.shape[1])", "None")),
    mutant(SUM, "not_compiled", (NJIT, "")),
    Mutant(SUM, "not_compiled", FAKE),
    Mutant(SUM, "not_compiled", OBJECTS),
    mutant(SUM, "shape", ("np.zeros(x.shape[1])", "np.zeros(1)")),
    mutant(SUM, "shape", ("np.zeros(x.shape[1])", "np.zeros(x.shape)")),
    mutant(SUM, "numba", ("np.zeros(x.shape[1])", "np.zeros(x.shape[1], np.float32)")),
    Mutant(SUM, "view", ONE_ROW),
    Mutant(SUM, "value", IN_FLOAT32),
    Mutant(SUM, "value", NOTHING_WRITTEN),
    Mutant(SUM, "value", KAHAN),
    mutant(MEDIAN, "numba", ("n // 2", "n / 2.0")),
    mutant(MEDIAN, "value", ("return x[k]", "return np.float32(x[k])")),
    mutant(MEDIAN, "not_compiled", (NJIT, "")),
    mutant(MEDIAN, "value", ("n // 2", "n // 2 - 1")),
    Mutant(MEDIAN, "nan", HALFWAY),
    mutant(CENTER, "not_compiled", (NJIT, "")),
    mutant(CENTER, "changed_input", ("np.empty(x.shape)", "x")),
    mutant(GELU, "numba", (NJIT, ""), of="normal_share"),
    mutant(GELU, "not_compiled", (NJIT, "")),
    Mutant(GELU, "not_compiled", OBJECTS_INSIDE),
    mutant(MEAN, "numba", ("np.empty(0)", "0")),
    mutant(MEAN, "numba", ("np.empty(0)", "[]")),
    mutant(MEAN, "not_compiled", (NJIT, "")),
    Mutant(MEAN, "view", ITSELF),
    mutant(RATIOS, "not_compiled", (NJIT, "")),
    mutant(RATIOS, "raised", ("if b[i] == 0.0", "if a[i] == 0.0")),
    mutant(RATIOS, "changed_input", ("np.empty_like(a)", "a")),
    mutant(LEAKY, "recompiled", (BODY, CLOSURE.partition("slope):\n")[2])),
    mutant(
        LEAKY,
        "recompiled",
        ("    fill_leaky(x", RECOMPILE + "    fill_leaky(x"),
    ),
    mutant(LEAKY, "not_compiled", (BODY, "    return np.where(x > 0.0, x, slope * x)\n")),
    mutant(LEAKY, "relu", (BODY, "    return np.maximum(x, 0.0)\n")),
    mutant(LEAKY, "linear", (BODY, "    return slope * x\n")),
    mutant(INK, "race", (AFTER, ""), (RACE, RACING)),
    mutant(
        INK,
        "race",
        ("range(len(x)):\n        ink[label[k]]", "prange(len(x)):\n        ink[label[k]]"),
    ),
    mutant(INK, "serial", ("prange(len(x))", "range(len(x))")),
    mutant(INK, "not_parallel", (PARALLEL, NJIT)),
    mutant(INK, "kept", ("        ink[d] = 0.0", "        ink[d] += 0.0")),
    mutant(INK, "last", ("+= of_image[k]", "= of_image[k]")),
    mutant(INK, "counted", ("+= of_image[k]", "+= 1.0")),
    mutant(INK, "value", ("        total += own  # I\n", "")),
    mutant(
        INK,
        "running",
        ("        own = 0.0  # E\n", ""),
        ("    total = 0.0  # C\n", "    total = own = 0.0\n"),
    ),
    mutant(  # the race moves into an array of the function's own
        INK,
        "race",
        ("    total = 0.0", "    sums = np.zeros(10)\n    total = 0.0"),
        (RACE, RACE + "        sums[label[i]] += own\n"),
        (AFTER, "    for d in range(10):\n        ink[d] = sums[d]\n"),
    ),
    mutant(  # a read before, a write after: the same race in more words
        INK,
        "race",
        (AFTER, ""),
        (RACE, RACE + "        so_far = ink[label[i]]\n        ink[label[i]] = so_far + own\n"),
    ),
    mutant(  # rounds whose numbers differ by 4 share a row, whichever thread they run in
        INK,
        "race",
        ("    total = 0.0", "    slots = np.zeros((4, 10))\n    total = 0.0"),
        (RACE, RACE + "        slots[i % 4, label[i]] += own\n"),
        (AFTER, "    ink[:] = slots.sum(axis=0)\n"),
    ),
    mutant(  # the name of another array
        INK,
        "unwritten",
        ("    for d in range(10):  # A", "    ink = np.zeros(10)\n    for d in range(10):"),
    ),
    Mutant(INK, "serial", OF_DIGITS),
    Mutant(INK, "not_it", 'BUG = {"race": "I", "reduction": "J", "private": "G"}\n'),
    Mutant(INK, "not_it", 'BUG = {"race": "G", "reduction": "I", "private": "E"}\n'),
    Mutant(INK, "same_text", 'BUG = {"race": "J", "reduction": "J", "private": "J"}\n'),
    Mutant(INK, "form", 'BUG = "J"\n'),
    mutant(LEAKY, "maximum", (BODY, "    return np.maximum(x, slope * x)\n")),
    mutant(LEAKY, "changed_input", ("    out = np.empty(len(x))", "    out = x")),
    Mutant(LEAKY, "stale", GLOBAL),
    Mutant(LEAKY, "python_loop", SCALAR),
    Mutant(LEAKY, "python_loop", SCALAR.replace(ONE_BY_ONE, "np.vectorize(one)(x, slope)")),
    Mutant(LEAKY, "same_array", BUFFER),
    Mutant(LEAKY, "value", NO_NAN),
    Mutant(LEAKY, "value", NO_BRANCH),
    Mutant(INK, "unseen", FOURS),
    mutant(  # the digits that no image shows keep what stood in ink
        INK,
        "left",
        ("    for d in range(10):  # A\n        ink[d] = 0.0  # B\n", ""),
        (AFTER, "    sums = np.bincount(label, of_image)\n    ink[: len(sums)] = sums\n"),
    ),
]
