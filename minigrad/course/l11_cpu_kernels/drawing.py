"""Pictures of lesson 11: a walk through memory, a roofline, times side by side; and a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.course.l11_cpu_kernels.driver import LINE, watched

HERE, READ, CACHED, COLD = "#d32f2f", "#1565c0", "#90caf9", "#eceff1"


def seconds(function: Callable, *arguments: Any, total: float = 0.15) -> float:
    """Return the least time of some calls, after a first one that may compile; about `total` s."""
    function(*arguments)
    best, end = float("inf"), time.perf_counter() + total
    while True:
        before = time.perf_counter()
        function(*arguments)
        now = time.perf_counter()
        best = min(best, now - before)
        if now > end:
            return best


def walk(kernel: Any, x: np.ndarray, *more: Any, lines: int) -> list[tuple]:
    """Return the accesses of x by kernel(x, *more): (element, was it fetched, lines in the cache).

    The lines are those of x, counted from its beginning; the cache holds `lines` lines.
    """
    names = ("x", *map(str, range(len(more))))
    memory = watched(kernel, names, (x, *more), keep=1 << 20, lines=lines)
    last = -(-x.nbytes // LINE)
    return [
        (place // x.itemsize, is_fetched, {line for line in cached if line < last})
        for name, place, is_fetched, cached in memory.trace
        if name == "x"
    ]


def draw_walk(axis: Any, steps: Sequence[tuple], shape: tuple[int, int], at: int) -> None:
    """Draw a matrix of float32 at one step of a walk: what is in the cache, what was read."""
    rows, columns = shape
    element, _, cached = steps[at]
    fetched = sum(is_fetched for _, is_fetched, _ in steps[: at + 1])
    lines = np.arange(rows * columns).reshape(shape) * 4 // LINE
    axis.pcolormesh(
        np.isin(lines, sorted(cached)),
        cmap=_two(COLD, CACHED), vmin=0, vmax=1, edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    done = np.array([one for one, _, _ in steps[:at]], int)
    axis.plot(done % columns + 0.5, done // columns + 0.5, ".", color=READ, markersize=3)
    axis.plot(element % columns + 0.5, element // columns + 0.5, "o", color=HERE, markersize=6)
    axis.set(xlabel="column", ylabel="row", ylim=(rows, 0), xlim=(0, columns))
    axis.set_title(f"{at + 1} elements read, {fetched} lines fetched", fontsize=9)


def _two(first: str, second: str) -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([first, second])


def draw_roofline(
    axis: Any, bandwidth: float, peak: float, points: Mapping[str, tuple[float, float]]
) -> None:
    """Draw what a machine can do, and where kernels are.

    Args:
        axis: of matplotlib.
        bandwidth: bytes a second.
        peak: operations a second.
        points: for each kernel operations a byte, and operations a second.
    """
    roof = np.geomspace(1 / 32, 1024, 200)
    axis.loglog(roof, np.minimum(peak, roof * bandwidth) / 1e9, color="black", linewidth=1.5)
    ridge = peak / bandwidth
    axis.axvline(ridge, color="gray", linestyle=":", linewidth=1)
    axis.text(ridge, peak / 1e9 * 1.15, f"{ridge:.0f} operations a byte", fontsize=8, ha="center")
    markers = "os^Dv<>PX*"
    for (name, (intensity, rate)), marker in zip(points.items(), markers, strict=False):
        axis.plot(intensity, rate / 1e9, marker, markersize=8, label=name, linestyle="")
    axis.set_ylim(None, 2 * max(peak, *(rate for _, rate in points.values())) / 1e9)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, loc="lower right")


def draw_times(axis: Any, times: Mapping[str, Mapping[str, float]]) -> None:
    """Draw bars of times: a group for each kind of work, a bar for each who does it."""
    who = list(dict.fromkeys(name for group in times.values() for name in group))
    width = 0.8 / len(who)
    for k, name in enumerate(who):
        places = [i for i, group in enumerate(times.values()) if name in group]
        heights = [group[name] * 1e6 for group in times.values() if name in group]
        axis.bar([i + (k - len(who) / 2 + 0.5) * width for i in places], heights, width, label=name)
    axis.set_yscale("log")
    axis.set_xticks(range(len(times)), list(times))
    axis.legend(fontsize=8)
    axis.grid(axis="y", alpha=0.3)
