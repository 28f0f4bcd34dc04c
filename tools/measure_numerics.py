"""Measure the elementary functions of generated kernels, random numbers and sums.

    python tools/measure_numerics.py            print the tables
    python tools/measure_numerics.py --write    write benchmarks/results/numerics.md and sums.md
    python tools/measure_numerics.py --sums     only sums.md, with or without --write

Both pages of results say what their numbers are.
"""

import math
import pathlib
import platform
import sys
import time
from collections.abc import Callable

import llvmlite.binding
import numba
import numpy as np

import minigrad as mg
from minigrad.devices import loader

RESULTS = pathlib.Path(__file__).parents[1] / "benchmarks" / "results"
HEADS = {
    "numerics": """# Elementary functions and random numbers, measured

Written by `python tools/measure_numerics.py --write`; [numerics.md](../../docs/numerics.md)
explains them. Errors are in units in the last place of the result, one half is the least possible;
they are against the same function in a wider type (float64 for float32, long double for float64;
erf in float64 against math.erf). Times are in nanoseconds, of one call over {n:,} elements in cache
on one core, the best of {rounds}. "`math.*` in a kernel" is the same loop with the C library's
function.
""",
    "sums": """# Sums, measured

Written by `python tools/measure_numerics.py --sums --write`; [numerics.md](../../docs/numerics.md)
explains them. Relative errors of sums of n times float32 0.1, and of variances.
""",
}
TYPES = {"f4": np.dtype(np.float32), "f8": np.dtype(np.float64)}
N_TIMED, N_CHECKED, ROUNDS = 65_536, 1_000_000, 100
RANDOM = {  # NumPy's own generator for the same numbers
    "random_bits_u4": lambda g, n: g.integers(0, 2**32, n, np.uint32),
    "random_uniform_f4": lambda g, n: g.random(n, np.float32),
    "random_uniform_f8": lambda g, n: g.random(n),
    "random_normal_f4": lambda g, n: g.standard_normal(n, np.float32),
    "random_normal_f8": lambda g, n: g.standard_normal(n),
    "random_integers_i8": lambda g, n: g.integers(-5, 12, n),
}


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-x)."""
    return np.where(x > 0, 1, np.exp(np.minimum(x, 0))) / (1 + np.exp(-np.abs(x)))


erf = np.vectorize(math.erf, otypes=[np.float64])
# name: reference, what a NumPy user would call, arguments timed, arguments checked per dtype
FUNCTIONS: dict[str, tuple[Callable, Callable | None, tuple, dict[str, tuple]]] = {
    "exp": (np.exp, np.exp, (-20, 20), {"f4": (-87.3, 88.7), "f8": (-708.3, 709.7)}),
    "expm1": (np.expm1, np.expm1, (-20, 20), {"f4": (-30, 88.7), "f8": (-60, 709.7)}),
    "log": (np.log, np.log, (0.01, 100), {"f4": (1.2e-38, 3e38), "f8": (2.3e-308, 1e308)}),
    "log1p": (np.log1p, np.log1p, (-0.9, 100), {"f4": (-0.9999, 3e38), "f8": (-0.9999, 1e308)}),
    "log2": (np.log2, np.log2, (0.01, 100), {"f4": (1.2e-38, 3e38), "f8": (2.3e-308, 1e308)}),
    "tanh": (np.tanh, np.tanh, (-8, 8), {"f4": (-12, 12), "f8": (-25, 25)}),
    "sigmoid": (sigmoid, sigmoid, (-20, 20), {"f4": (-87, 100), "f8": (-708, 800)}),
    "erf": (erf, None, (-5, 5), {"f4": (-5, 5), "f8": (-7, 7)}),
    "sin": (np.sin, np.sin, (-20, 20), {"f4": (-1e6, 1e6), "f8": (-1e14, 1e14)}),
    "cos": (np.cos, np.cos, (-20, 20), {"f4": (-1e6, 1e6), "f8": (-1e14, 1e14)}),
}


def kernel_of(expression: str, code: str) -> Callable[[int, int, int], None]:
    """The kernel that stores ``expression`` of x[j] in out[j]."""
    text = f"""@jit("void(i8, i8, i8)")
def kernel(x_at, out_at, n):
    x, out = {code}_at(x_at), {code}_at(out_at)
    for j in range(n):
        out[j] = {expression}
"""
    return loader.load(text, loader.MATHEMATICS).kernel


def nanoseconds(call: Callable[[], object]) -> float:
    """The best time of a call, per element timed."""
    best = math.inf
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best / N_TIMED * 1e9


def largest_error(name: str, code: str) -> tuple[float, float]:
    """(error, where): the largest error found, in units in the last place."""
    reference, _, _, ranges = FUNCTIONS[name]
    low, high = ranges[code]
    rng = np.random.default_rng(0)
    logarithm = np.log(high)
    x = np.concatenate([
        rng.uniform(-1, 1, N_CHECKED) * min(high, 30),
        rng.uniform(low, high / 2, N_CHECKED) + high / 2 * rng.random(N_CHECKED),
        rng.choice([-1, 1], N_CHECKED) * np.exp(rng.uniform(-60, logarithm, N_CHECKED)),
    ]).astype(TYPES[code])  # fmt: skip
    x = x[(x > low) & (x < high)]
    out = np.empty_like(x)
    kernel_of(f"{name}_{code}(x[j])", code)(x.ctypes.data, out.ctypes.data, x.size)
    wide = np.float64 if code == "f4" or name == "erf" else np.longdouble
    wanted = reference(x.astype(wide))
    normal = np.abs(wanted) >= np.finfo(x.dtype).tiny
    unit = np.spacing(np.abs(wanted).astype(x.dtype)).astype(wide)
    errors = np.where(normal, np.abs(out.astype(wide) - wanted) / unit, 0)
    worst = int(np.argmax(errors))
    return float(errors[worst]), float(x[worst])


def functions_table() -> list[str]:
    """Errors and times of every function."""
    lines = [
        "| function | dtype | largest error | ns per element | `math.*` in a kernel | NumPy |",
        "|---|---|---|---|---|---|",
    ]
    for name, (_, numpys, (low, high), _) in FUNCTIONS.items():
        for code, dtype in TYPES.items():
            x = np.random.default_rng(1).uniform(low, high, N_TIMED).astype(dtype)
            out = np.empty_like(x)
            place = (x.ctypes.data, out.ctypes.data, x.size)
            libm = "1 / (1 + math.exp(-x[j]))" if name == "sigmoid" else f"math.{name}(x[j])"
            ours, library = kernel_of(f"{name}_{code}(x[j])", code), kernel_of(libm, code)
            times = [nanoseconds(lambda k=k, p=place: k(*p)) for k in (ours, library)]
            other = "–" if numpys is None else f"{nanoseconds(lambda f=numpys, x=x: f(x)):.2f}"
            error, _ = largest_error(name, code)
            row = [f"`{name}`", dtype.name, f"{error:.2f}", *(f"{t:.2f}" for t in times), other]
            lines.append(f"| {' | '.join(row)} |")
    return lines


def random_table() -> list[str]:
    """Times of the random kernels."""
    lines = ["| kernel | ns per element | NumPy (SFC64) |", "|---|---|---|"]
    generator = np.random.Generator(np.random.SFC64(1))
    for name, numpys in RANDOM.items():
        out = numpys(generator, N_TIMED)
        span = (-5, 12) if name == "random_integers_i8" else ()
        kernel = getattr(loader.load_source(f"random.{name[-2:]}"), name)
        place = (out.ctypes.data, *span, 42, 0, 0, N_TIMED)
        ours = nanoseconds(lambda k=kernel, p=place: k(*p))
        other = nanoseconds(lambda f=numpys: f(generator, N_TIMED))
        lines.append(f"| `{name}` | {ours:.2f} | {other:.2f} |")
    return lines


N_SUMMED = 10_000_000
SUMS: dict[str, Callable] = {  # of x (n, 2), all 0.1: what it gives for each of n numbers
    "`x.sum(0)`": lambda x: x.sum(0) / x.shape[0],
    "`x.reshape((2, n)).sum(1)`": lambda x: x.reshape((2, -1)).sum(1) / x.shape[0],
    "`x[:, 0].sum()`, strided": lambda x: x[:, 0].sum() / x.shape[0],
    "`x.mean(0)`": lambda x: x.mean(0),
    "`mg.norm(x, axis=0)`": lambda x: mg.norm(x, axis=0) / (0.1 * x.shape[0] ** 0.5) * 0.1,
    "`mg.cumsum(x, 0)`, its last row": lambda x: mg.cumsum(x, 0)[-1] / x.shape[0],
    "`x[:, 0] @ x[:, 0]`": lambda x: mg.matmul(x[:, 0], x[:, 0]) / x.shape[0] / 0.1,
}


def compiled(function: Callable) -> Callable:
    """A function whose calls run a compiled program."""
    step = mg.compile(function)

    def call(*arguments):
        for _ in range(2):
            step(*arguments)
        return step(*arguments)

    return call


def by_index(x: mg.Variable) -> mg.Variable:
    """The gradient of a row that is picked n times."""
    table = mg.zeros((2, 2))
    return mg.scatter_add(table, mg.zeros(x.shape, dtype=mg.int64), x, 0)[0] / x.shape[0]


def sums_table() -> list[str]:
    """Relative errors of sums of N_SUMMED times float32 0.1, and of a variance."""
    lines = ["| float32, n = 10⁷ | eager | compiled | NumPy |", "|---|---|---|---|"]
    tenth = np.float64(np.float32(0.1))
    data = np.full((N_SUMMED, 2), 0.1, np.float32)
    x = mg.variable(data)
    numpys = {
        "`x.sum(0)`": lambda: data.sum(0) / N_SUMMED,
        "`x.mean(0)`": lambda: data.mean(0),
        "`mg.cumsum(x, 0)`, its last row": lambda: np.cumsum(data, 0)[-1] / N_SUMMED,
        "`x[:, 0].sum()`, strided": lambda: data[:, 0].sum() / N_SUMMED,
        "`x.reshape((2, n)).sum(1)`": lambda: data.reshape(2, -1).sum(1) / N_SUMMED,
        "`x[:, 0] @ x[:, 0]`": lambda: data[:, 0] @ data[:, 0] / N_SUMMED / 0.1,
    }

    def error(found, wanted):
        largest = np.max(np.abs(np.asarray(found, np.float64) / wanted - 1))
        return f"{largest:.0e}" if largest > 1e-8 else "below 1e-08"

    every = {**SUMS, "`mg.scatter_add`, one target": by_index}
    for name, function in every.items():
        wanted = tenth**2 / 0.1 if "@" in name else tenth
        cells = [error(f(x).numpy(), wanted) for f in (function, compiled(function))]
        cells.append(error(numpys[name](), wanted) if name in numpys else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for mean in (1000, 10_000):
        data = np.random.default_rng(0).normal(mean, 1, (N_SUMMED // 10, 3)).astype(np.float32)
        wanted, x = data.astype(np.float64).var(0), mg.variable(data)
        ways = (lambda x: x.var(0, ddof=0), compiled(lambda x: x.var(0, ddof=0)))
        cells = [*(error(f(x).numpy(), wanted) for f in ways), error(data.var(0), wanted)]
        lines.append(f"| `x.var(0, ddof=0)` of N({mean}, 1), n = 10⁶ | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, and print or write the tables."""
    processor = llvmlite.binding.get_host_cpu_name()
    machine = f"{platform.system()} {platform.machine()}, {processor}, Python {sys.version_info[0]}"
    machine += f".{sys.version_info[1]}, Numba {numba.__version__}, NumPy {np.__version__}"
    measured = f"Measured on {machine}."
    tables = {"sums": sums_table()}
    if "--sums" not in sys.argv:
        tables["numerics"] = [*functions_table(), "", *random_table()]
    for name, lines in tables.items():
        head = HEADS[name].format(n=N_TIMED, rounds=ROUNDS)
        text = "\n".join([head, measured, "", *lines, ""])
        print(text)
        if "--write" in sys.argv:
            (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
