"""What the smallest calls cost beside PyTorch: `python -m benchmarks.smallest`.

Writes results/smallest.md. A row is an expression that both libraries understand: what people type
in loops, and every elementwise operation, reduction and row operation of the registry. Operands are
the smallest that make sense, and require gradients. Turns of both libraries alternate in one
process, on one thread; a figure is the median of the turns, and a turn the mean of many calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import minigrad as mg
from benchmarks.alternate import compared, on_one_thread, options, summary, tell
from benchmarks.machine import describe, in_words
from benchmarks.tables import table
from minigrad.ops import table as operations
from minigrad.ops.base import Elementwise, registry

RESULTS = Path(__file__).with_name("results") / "smallest.md"
TYPED = (
    "a * a", "-a", "b.exp()", "a * 2.0", "a + 0.0", "a * 3", "1 - a", "a / 2", "a ** 2", "a ** 3",
    "a * np.float32(2)", "a * next(numbers)", "b + a", "b * c", "b @ b", "b @ b.T", "b.sum()",
    "b.sum(0)", "b.mean()", "b.max()", "b.T", "b.reshape(4)", "b[0]", "b[:, 1]", "b > 0",
    "(b * b).sum()", "lib.where(b > 0, b, 0.0)", "lib.softmax(b, -1)", "lib.log_softmax(b, -1)",
    "lib.stack([a, a])", "lib.zeros((2, 2))", "b.clone()", "b.detach()", "b[0, 0].item()",
    "lib.tanh(b @ b + a)", "w.add_(1.0)", "w.sub_(g)", "w.copy_(g)", "w[0].fill_(0.5)",
    "w[0].copy_(g[1])",
)  # fmt: skip
REDUCTIONS = ("sum", "mean", "prod", "norm", "argmax", "argmin", "any", "all", "cumsum")
SHOWN = 5  # calls before the first turn: the first ones find their kernels


def rows() -> list[str]:
    """Return the expressions: those that are typed, and one for each operation of the registry."""
    reductions = [
        f"lib.{name}(u)" if name != "cumsum" else "lib.cumsum(u, 0)"
        for name in registry
        if name in REDUCTIONS
    ]
    return list(dict.fromkeys([*TYPED, *of_registry("u", "v"), *reductions]))


def of_registry(*names: str) -> list[str]:
    """Return a call of each public elementwise or row operation on at most these operands."""
    found = []
    for name, op in registry.items():
        is_ours = op.__module__.startswith("minigrad.") and name in operations.functions
        count = len(op.inputs) - len(op.numbers)
        is_part = name.endswith("_element")  # of a loss
        if is_ours and not is_part and issubclass(op, Elementwise) and count <= len(names):
            found.append(f"lib.{name}({', '.join(names[:count])})")
    return found


def operands(make: Callable[..., Any], lib: Any) -> dict[str, Any]:
    """Return what the expressions name, as one library makes it."""
    numbers = (0.1 + 1e-3 * k for k in range(10**9))
    return {
        "lib": lib, "np": np, "numbers": numbers,
        "a": make([0.5, 0.75]), "b": make([[0.5, 0.25], [0.75, 0.5]]), "c": make([[0.5], [0.25]]),
        "u": make([0.5, 0.25, 0.75]), "v": make([0.75, 0.5, 0.25]),
        "w": make([0.5, 0.25]).detach(), "g": make([0.1, 0.2]).detach(),
    }  # fmt: skip


def of_minigrad() -> dict[str, Any]:
    """Return minigrad's operands."""
    return operands(lambda data: mg.variable(data, requires_grad=True), mg)


def of_pytorch() -> dict[str, Any]:
    """Return PyTorch's operands."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    return operands(lambda data: torch.tensor(data, requires_grad=True), library_of_pytorch())


def library_of_pytorch() -> SimpleNamespace:
    """Return PyTorch's functions, with minigrad's names where PyTorch has another."""
    import torch  # pyright: ignore[reportMissingImports]

    names = {
        "less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge,
        "equal": torch.eq, "not_equal": torch.ne, "softplus": torch.nn.functional.softplus,
        "silu": torch.nn.functional.silu, "relu": torch.relu, "norm": torch.linalg.vector_norm,
    }  # fmt: skip
    more = {n: getattr(torch.nn.functional, n) for n in dir(torch.nn.functional)}
    return SimpleNamespace(**{**more, **vars(torch), **names})


def call_of(text: str, names: dict[str, Any]) -> Callable[[], Any] | None:
    """Return the expression as a function, or None where the library does not have it."""
    function = eval(f"lambda: {text}", names)
    try:
        for _ in range(SHOWN):
            function()
    except (AttributeError, TypeError, RuntimeError, NotImplementedError):
        return None
    return function


def main() -> int:
    """Measure, write the table, print it."""
    given = options("benchmarks.smallest", __doc__, 9, "TEXT")
    if (status := on_one_thread("benchmarks.smallest")) is not None:
        return status
    machine = describe()
    libraries = [of_minigrad(), of_pytorch()]
    chosen = [text for text in rows() if not given.only or given.only in text]
    calls = ((f"`{text}`", [call_of(text, names) for names in libraries]) for text in chosen)
    lines, ratios = compared(calls, 1e6, given.turns)
    note = (
        f"{in_words(machine)}. Microseconds a call, results recorded. {summary(machine, ratios)} "
        "`python -m benchmarks.smallest`."
    )
    text = table(["call", "minigrad, µs", "PyTorch, µs", "ratio"], lines)
    tell(RESULTS, text, note, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
