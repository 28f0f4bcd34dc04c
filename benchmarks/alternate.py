"""Functions of several libraries that do the same, timed by turns in one process."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.process import environment
from benchmarks.tables import publish

SHORTEST = 0.01  # seconds of a turn


def options(module: str, description: str | None, turns: int, of: str) -> argparse.Namespace:
    """Return a benchmark's options: `turns`, and `only`, the name or text of rows (`of`)."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--turns", type=int, default=turns, help=f"turns of each library ({turns})")
    parser.add_argument("--only", metavar=of, help="rows with this; nothing is written")
    return parser.parse_args()


def tell(path: Path, lines: list[str], note: str, only: str | None) -> None:
    """Publish a table with its note; print it alone if only some of its rows were measured."""
    if only:
        sys.stdout.write("\n".join(lines) + "\n")
    else:
        publish(path, lines, note)


def turn(function: Callable[[], Any], calls: int, rest: float = 0) -> float:
    """Return the seconds of a call. rest: seconds to wait first."""
    time.sleep(rest)
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - started) / calls


def medians(
    functions: Sequence[Callable[[], Any] | None], turns: int, rest: float = 0
) -> list[float | None]:
    """Return the median seconds of a call of each; None for a library that lacks it.

    rest: seconds between turns, in which the threads of the one before fall asleep.
    """
    times: list[list[float]] = [[] for _ in functions]
    for f in functions:
        if f is not None:
            turn(f, 5)  # warm-up: the first calls compile kernels and record routes
    calls = [max(3, int(SHORTEST / turn(f, 3))) if f else 0 for f in functions]
    order = list(zip(functions, times, calls, strict=True))
    for k in range(turns):
        for function, seconds, count in order if k % 2 else order[::-1]:
            if function is not None:
                seconds.append(turn(function, count, rest))
    return [statistics.median(seconds) if seconds else None for seconds in times]


def compared(
    rows: Iterable[tuple[str, Sequence[Callable[[], Any] | None]]],
    scale: float,
    turns: int,
    rest: float = 0,
) -> tuple[list[list[str]], list[float]]:
    """Return the lines of a table, and the ratios: rows are names and one function per library."""
    lines, ratios = [], []
    for name, functions in rows:
        ours, theirs = medians(functions, turns, rest)
        lines.append(line(name, scale, ours, theirs))
        ratios += [ours / theirs] if ours and theirs else []
    return lines, ratios


def line(name: str, scale: float, ours: float | None, theirs: float | None) -> list[str]:
    """Return the cells of a row: seconds times `scale`, and their ratio."""
    figures = [digits(scale * x) if x else "–" for x in (ours, theirs)]
    ratio = f"{ours / theirs:.2f}" if ours and theirs else "–"
    return [name.replace("|", "\\|"), *figures, ratio]


def digits(x: float) -> str:
    """Return a figure with one decimal, two below 1."""
    return f"{x:.1f}" if x >= 1 else f"{x:.2f}"


def summary(machine: dict[str, Any], ratios: Sequence[float]) -> str:
    """Return what the ratios to PyTorch come to, on a machine as `describe` says."""
    wins = sum(r <= 1 for r in ratios)
    return (
        f"One thread, PyTorch {machine['versions'].get('torch')}. Median of the {len(ratios)} "
        f"ratios: {statistics.median(ratios):.2f}, the largest {max(ratios):.2f}; {wins} are at "
        "most 1."
    )


def on_one_thread(module: str) -> int | None:
    """Run a benchmark again in a process whose libraries have one thread; None inside it."""
    if os.environ.get(INSIDE):
        return None
    command = [sys.executable, "-m", module, *sys.argv[1:]]
    return subprocess.call(command, env={**environment(1), INSIDE: "1"})


INSIDE = "MINIGRAD_BENCHMARK_ON_ONE_THREAD"
