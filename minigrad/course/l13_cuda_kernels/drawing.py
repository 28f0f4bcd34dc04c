"""Draws pictures for lesson 13 on given axes: who does which element, and who waits where."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.simt.watch.interleaving import BarrierMoment, run_in_some_order

BLOCKS = ("C0", "C1", "C2", "C4")
IDLE = "#d5d9e0"
WARP = 32


def draw_grid(axis: Any, n: int, threads: int) -> None:
    """Draw a launch's threads: a box per thread, a colour per block, grey without an element."""
    from matplotlib.patches import Rectangle

    blocks = -(-n // threads)
    for i in range(blocks * threads):
        block, thread = divmod(i, threads)
        colour = BLOCKS[block % len(BLOCKS)] if i < n else IDLE
        axis.add_patch(Rectangle((i, 0), 0.92, 0.9, facecolor=colour))
        axis.text(i + 0.46, 0.45, str(thread), ha="center", va="center", fontsize=7,
                  color="white" if i < n else "black")  # fmt: skip
        if i < n:
            axis.add_patch(Rectangle((i, -1.5), 0.92, 0.9, facecolor="white", edgecolor=colour))
            axis.plot([i + 0.46] * 2, [-0.6, 0], "-", color=colour, linewidth=1)
    for block in range(blocks):
        axis.text((block + 0.5) * threads, 1.2, f"block {block}", ha="center", fontsize=9)
    axis.set(xlim=(-0.3, blocks * threads), ylim=(-1.7, 1.8))
    axis.set_yticks([-1.05, 0.45], ["elements of x", "threads"])
    axis.tick_params(left=False)


def one_order(
    kernel: Callable, threads: int, arguments: Sequence[Any], seed: int, together: int = WARP
) -> list[BarrierMoment]:
    """Return the steps of one block of a kernel, in an order drawn from the seed."""
    moments: list[BarrierMoment] = []
    run_in_some_order(
        kernel, 1, threads, arguments, seed=seed, together=together, watch=moments.append
    )
    return moments


def draw_moment(axis: Any, kernel: Callable, moments: Sequence[BarrierMoment], step: int) -> None:
    """Draw which line of a kernel each warp of a block is at, and who waits."""
    from matplotlib.patches import Rectangle

    lines, first = inspect.getsourcelines(kernel)
    body = textwrap.dedent("".join(lines[1:])).splitlines()
    here = [(first + k, line) for k, line in enumerate(body, 1) if shown(line)]
    places: dict[int | None, int] = {
        number: len(here) - 1 - k for k, (number, _) in enumerate(here)
    }
    places[None] = -1  # warps that have ended
    moment = moments[min(step, len(moments) - 1)]
    for thread, line in enumerate(moment.lines):
        colour = BLOCKS[thread // WARP % len(BLOCKS)]
        axis.add_patch(
            Rectangle((thread, places[line] - 0.4), 1, 0.8, facecolor=colour, linewidth=0,
                      alpha=0.35 if moment.waits[thread] else 1.0)
        )  # fmt: skip
    for first_thread in range(0, len(moment.lines), WARP):
        if moment.waits[first_thread]:
            height = places[moment.lines[first_thread]]
            middle = first_thread + WARP / 2
            axis.text(middle, height, "waits", ha="center", va="center", fontsize=7)
    n = len(moment.lines)
    left = -1.25 * n
    for height, text in enumerate(["(has ended)", *(text for _, text in reversed(here))], -1):
        short = text if len(text) <= 32 else text[:31] + "…"  # fits beside the threads
        axis.text(left, height, short, va="center", fontsize=6.2, family="monospace")
        axis.axhline(height - 0.5, color="#e3e6ea", linewidth=0.6, zorder=0)
    axis.set(xlim=(left - 4, n), ylim=(-1.6, len(here) - 0.4), xlabel="thread", yticks=[])
    axis.set_xticks(range(0, n + 1, WARP))
    axis.set_title(f"step {step}", fontsize=9)


def shown(line: str) -> bool:
    """Return whether a kernel's picture shows this line of its source."""
    text = line.strip()
    return bool(text) and not text.startswith(('"""', "@", "#", "def ", "else"))


def draw_orders(axis: Any, results: Sequence[float], right: float, title: str) -> None:
    """Draw a kernel's results in many orders: right ones as dots, others as crosses."""
    good = np.isclose(results, right, rtol=1e-4)
    numbers = np.arange(len(results))
    values = np.asarray(results)
    axis.plot(numbers[good], values[good], "o", color="C2", markersize=3)
    axis.plot(numbers[~good], values[~good], "x", color="C3", markersize=5)
    axis.axhline(right, color="black", linewidth=0.8, linestyle="--")
    axis.set_title(f"{title}: right in {int(good.sum())} of {len(results)}", fontsize=9)
