"""Draws pictures for lesson 12 on given axes: who adds where, and what a race makes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.simt.watch.interleaving import BarrierMoment, run_in_some_order

COLOURS = ("C0", "C1", "C2", "C4")


def draw_rounds(axis: Any, cells: Sequence[int], threads: int, title: str) -> None:
    """Draw which element each round of a loop adds to; a colour a thread.

    cells: for each round the number of its element.
    """
    n, last = len(cells), max(cells)
    of_thread = np.arange(n) * threads // n
    for i, cell in enumerate(cells):
        colour = COLOURS[of_thread[i] % len(COLOURS)]
        axis.plot([i, cell * max(n - 1, 1) / max(last, 1)], [1, 0], "-", color=colour, linewidth=1)
        axis.plot([i], [1], "s", color=colour, markersize=9)
    for cell in range(last + 1):
        users = {int(of_thread[i]) for i, one in enumerate(cells) if one == cell}
        place = cell * max(n - 1, 1) / max(last, 1)
        colour = "C3" if len(users) > 1 else "#d5d9e0"
        axis.plot([place], [0], "s", color=colour, markersize=13)
        axis.text(place, -0.28, str(cell), ha="center", fontsize=8)
    axis.set_yticks([0, 1], ["elements", "rounds"])
    axis.set(ylim=(-0.5, 1.3))
    axis.set_xticks(range(n))
    axis.set_title(title, fontsize=9)
    axis.tick_params(left=False)


def draw_results(axis: Any, sizes: Sequence[int], shares: Sequence[Sequence[float]]) -> None:
    """Draw for each size what many runs of a sum gave, as a share of the right sum."""
    for k, results in enumerate(shares):
        values = np.asarray(results)
        spread = np.linspace(-0.28, 0.28, len(values))
        good = np.isclose(values, 1)
        axis.plot(k + spread[good], values[good], "o", color="C2", markersize=2.5)
        axis.plot(k + spread[~good], values[~good], "x", color="C3", markersize=4)
    axis.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axis.axhline(1, color="black", linewidth=0.8, linestyle="--")
    least = min(float(np.min(results)) for results in shares)
    low = 0.0 if least < 0.75 else min(0.95, 2 * least - 1)
    axis.set(ylim=(low, 1 + 0.15 * (1 - low)))


def one_order(kernel: Callable, arguments: Sequence[Any], seed: int) -> list[BarrierMoment]:
    """Return the steps of two threads of a kernel, in an order drawn from the seed."""
    moments: list[BarrierMoment] = []
    run_in_some_order(kernel, 1, 2, arguments, seed=seed, together=1, watch=moments.append)
    return moments


def draw_step(axis: Any, kernel: Callable, moments: Sequence[BarrierMoment], step: int) -> None:
    """Draw which line each of two threads runs next, and what the shared element holds."""
    lines, first = inspect.getsourcelines(kernel)
    here = [
        (first + k, line.strip())
        for k, line in enumerate(lines)
        if line.strip() and not line.strip().startswith(('"""', "@", "#", "def "))
    ]
    places: dict[int | None, int] = {
        number: len(here) - 1 - k for k, (number, _) in enumerate(here)
    }
    places[None] = -1  # a thread that has ended
    moment = moments[min(step, len(moments) - 1)]
    for thread, line in enumerate(moment.lines):
        axis.plot([thread], [places[line]], "s", color=COLOURS[thread], markersize=12)
    for height, text in enumerate(["(has ended)", *(text for _, text in reversed(here))], -1):
        axis.text(-3.6, height, text, va="center", fontsize=7, family="monospace")
        axis.axhline(height - 0.5, color="#e3e6ea", linewidth=0.6, zorder=0)
    axis.set(xlim=(-3.7, 1.6), ylim=(-1.6, len(here) - 0.4), xlabel="thread", yticks=[])
    axis.set_xticks([0, 1])
    held = float(moment.shared[0][0]) if moment.shared else 0.0
    axis.set_title(f"step {step}: s[0] is {held:g}", fontsize=9)
