"""What calls on large arrays cost beside PyTorch, on all cores: `python -m benchmarks.large`.

Writes results/large.md. A row is an expression that both libraries understand: reductions, row
operations and products along each axis, views, and every elementwise operation of the registry.
Arrays are SIZE x SIZE, in float32; nothing is recorded. Turns of both libraries alternate in one
process, with a rest between them; a figure is the median of the turns, and a turn the mean of many
calls.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

import minigrad as mg
from benchmarks.alternate import compared, options, tell
from benchmarks.machine import describe, in_words
from benchmarks.smallest import call_of, library_of_pytorch, of_registry
from benchmarks.tables import table

RESULTS = Path(__file__).with_name("results") / "large.md"
SIZE = 1000
REST = 0.02  # seconds: threads of PyTorch keep a core busy for some milliseconds after a call
TYPED = (
    "x.sum()", "x.sum(0)", "x.sum(1)", "x.T.sum(0)", "x[::2].sum()", "t.sum(1)", "x.mean()",
    "x.mean(0)", "x.max()", "lib.prod(x, 0)", "lib.softmax(x, 0)", "lib.softmax(x, 1)",
    "lib.softmax(t, 1)", "lib.log_softmax(x, 0)", "lib.logsumexp(x, 0)", "lib.cumsum(x, 0)",
    "lib.cumsum(x, 1)", "x + row", "x + column", "x * 2.0", "x ** 2", "x ** 4", "x ** y", "x.T + y",
    "x @ y", "x.T @ y", "x @ row", "x > 0.5", "lib.where(x > 0.5, x, y)", "lib.stack([x, y])",
    "x.clone()", "x[::2, 1:] * 2.0", "x.reshape(-1)", "(x * y + x).sum()",
    "x.T * 2.0", "x.T.exp()", "x.T * y.T", "lib.argsort(x)", "y.mul_(1.0)", "y[0].fill_(0.5)",
)  # fmt: skip


def rows() -> list[str]:
    """Return the expressions: those that are typed, and one for each elementwise operation."""
    return list(dict.fromkeys([*TYPED, *of_registry("x", "y")]))


def operands(make: Any, lib: Any, size: int = SIZE) -> dict[str, Any]:
    """Return what the expressions name, as one library makes it from NumPy's arrays."""
    draw = np.random.default_rng(0).uniform
    shapes = {
        "x": (size, size), "y": (size, size), "row": (size,), "column": (size, 1),
        "t": (size // 50, size // 10, size // 2),
    }  # fmt: skip
    return {"lib": lib} | {n: make(draw(0.1, 0.9, s).astype("f4")) for n, s in shapes.items()}


def main() -> int:
    """Measure, write the table, print it."""
    given = options("benchmarks.large", __doc__, 9, "TEXT")
    import torch  # pyright: ignore[reportMissingImports]

    libraries = [operands(mg.variable, mg), operands(torch.from_numpy, library_of_pytorch())]
    chosen = [text for text in rows() if not given.only or given.only in text]
    calls = ((f"`{text}`", [call_of(text, names) for names in libraries]) for text in chosen)
    with mg.no_grad(), torch.no_grad():
        lines, ratios = compared(calls, 1e6, given.turns, REST)
    machine = describe()
    wins = sum(r <= 1 for r in ratios)
    note = (
        f"{in_words(machine)}, PyTorch {machine['versions'].get('torch')} on "
        f"{torch.get_num_threads()} threads. Microseconds a call, {SIZE} x {SIZE}, nothing "
        f"recorded. Median of the {len(ratios)} ratios: {statistics.median(ratios):.2f}, the "
        f"largest {max(ratios):.2f}; {wins} are at most 1. `python -m benchmarks.large`."
    )
    text = table(["call", "minigrad, µs", "PyTorch, µs", "ratio"], lines)
    tell(RESULTS, text, note, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
