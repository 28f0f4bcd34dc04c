"""Functions of several libraries that do the same, timed by turns in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

SHORTEST = 0.01  # seconds of a turn


def turn(function: Callable[[], Any], calls: int) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - started) / calls


def medians(functions: Sequence[Callable[[], Any] | None], turns: int) -> list[float | None]:
    """Return the median seconds of a call of each; None for a library that lacks it."""
    times: list[list[float]] = [[] for _ in functions]
    for f in functions:
        if f is not None:
            turn(f, 5)  # the first calls find their kernels
    calls = [max(3, int(SHORTEST / turn(f, 3))) if f else 0 for f in functions]
    for _ in range(turns):
        for function, seconds, count in zip(functions, times, calls, strict=True):
            if function is not None:
                seconds.append(turn(function, count))
    return [statistics.median(seconds) if seconds else None for seconds in times]


def line(name: str, scale: float, ours: float | None, theirs: float | None) -> list[str]:
    """Return the cells of a row: seconds times `scale`, and their ratio."""
    figures = [digits(scale * x) if x else "–" for x in (ours, theirs)]
    ratio = f"{ours / theirs:.2f}" if ours and theirs else "–"
    return [name.replace("|", "\\|"), *figures, ratio]


def digits(x: float) -> str:
    """Return a figure with one decimal, two below 1."""
    return f"{x:.1f}" if x >= 1 else f"{x:.2f}"


def summary(ratios: Sequence[float]) -> str:
    """Return what the ratios to the other library come to."""
    few = sum(r <= 1 for r in ratios)
    return (
        f"One thread. Median of the {len(ratios)} ratios: {statistics.median(ratios):.2f}, the "
        f"largest {max(ratios):.2f}; {few} are at most 1."
    )
