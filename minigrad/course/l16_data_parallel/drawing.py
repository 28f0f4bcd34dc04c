"""Pictures of lesson 16: what a ring has added up so far, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.course.l16_data_parallel.driver import run_workers

SENT, CAME = "#e65100", "#1565c0"
FULL = "#a5d6a7"
BEGINS = "#212121"


class Rounds:
    """What each worker's chunks hold before and after each step of a ring.

    Worker r has 10**r in each entry, so the digits of a sum say whose numbers are in it.

    Attributes:
        size: how many workers, and chunks, there are.
        held: for each step, for each worker, for each chunk the ranks whose numbers it holds.
        moved: for each step a list of (worker that sends, worker that receives, chunk).
    """

    def __init__(self, all_reduce: Callable, size: int) -> None:
        self.size = size
        tens = 10.0**size
        arrays = [(10.0**r + tens * np.arange(size),) for r in range(size)]
        _, errors, post = run_workers(all_reduce, arrays)
        for error in errors.values():
            raise error
        self.held = [[[{r} for _ in range(size)] for r in range(size)]]
        self.moved: list[list[tuple[int, int, int]]] = [[]]
        for step in range(max(map(len, post.sent))):
            held = [[set(chunk) for chunk in chunks] for chunks in self.held[-1]]
            moved = []
            for rank, sent in enumerate(post.sent):
                if step < len(sent):
                    to, array = sent[step]
                    chunk, ranks = self._read(float(array[0]))
                    held[to][chunk] |= ranks
                    moved.append((rank, to, chunk))
            self.held.append(held)
            self.moved.append(moved)

    def _read(self, value: float) -> tuple[int, set[int]]:
        """Return the chunk that a number comes from, and whose numbers are in it."""
        high, low = divmod(round(value), 10**self.size)
        digits = [low // 10**r % 10 for r in range(self.size)]
        chunk = high // max(1, sum(digits)) % self.size
        return chunk, {r for r, digit in enumerate(digits) if digit}

    def draw(self, axis: Any, step: int) -> None:
        """Draw which worker holds what after a step."""
        n = self.size
        for worker, chunks in enumerate(self.held[step]):
            for chunk, ranks in enumerate(chunks):
                colour = FULL if len(ranks) == n else plain(len(ranks) / n)
                box = (chunk - 0.45, worker - 0.4), 0.9, 0.8
                axis.add_patch(_box(*box, facecolor=colour, edgecolor="none"))
                text = "+".join(map(str, sorted(ranks)))
                axis.text(chunk, worker, text, ha="center", va="center", fontsize=8)
        for sender, receiver, chunk in self.moved[step]:
            for worker, colour in ((sender, SENT), (receiver, CAME)):
                low = chunk - 0.45, worker - 0.4
                axis.add_patch(_box(low, 0.9, 0.8, fill=False, edgecolor=colour, linewidth=1.6))
        axis.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), xlabel="chunk", ylabel="worker")
        axis.set_xticks(range(n))
        axis.set_yticks(range(n))
        axis.grid(visible=False)
        axis.set_title("before" if not step else f"after step {step}", fontsize=10)


def plain(share: float) -> tuple[float, float, float]:
    """Return a grey that is darker the larger a share is."""
    light = 1.0 - 0.3 * share
    return light, light, light


def _box(*place: Any, **looks: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(*place, **looks)


def draw_waits(
    axis: Any,
    events: Sequence[Sequence[dict]],
    steps: Sequence[Sequence[float]],
    start: float,
    seconds: float,
) -> None:
    """Draw for each rank when it waited, and for whom, from recorded times.

    Args:
        axis: where to draw.
        events: for each rank what `timed` noted.
        steps: for each rank when its steps began, as `time.time()`.
        start: the time at the left end, as `time.time()`.
        seconds: how much is drawn.
    """
    n = len(events)
    for rank, mine in enumerate(events):
        axis.barh(rank, 1e3 * seconds, height=0.5, color="#e0e0e0", zorder=1)
        waits: dict[int, list] = {source: [] for source in range(n)}
        for one in mine:
            if "source" in one and one["ended"] > start and one["begun"] < start + seconds:
                begun = max(one["begun"], start) - start
                ended = min(one["ended"], start + seconds) - start
                waits[one["source"]].append((1e3 * begun, 1e3 * (ended - begun)))
        for source, bars in waits.items():
            axis.broken_barh(bars, (rank - 0.25, 0.5), facecolors=f"C{source}", zorder=2)
    for rank, mine in enumerate(steps):
        inside = [1e3 * (one - start) for one in mine if start <= one <= start + seconds]
        axis.vlines(inside, rank - 0.36, rank + 0.36, color=BEGINS, linewidth=1.6, zorder=3)
    for source in range(n):
        axis.barh(0, 0, color=f"C{source}", label=f"waits for rank {source}")
    axis.barh(0, 0, color="#e0e0e0", label="not in receive")
    axis.vlines([], 0, 0, color=BEGINS, linewidth=1.6, label="a step begins")
    axis.set(xlabel="milliseconds", ylabel="rank", xlim=(0, 1e3 * seconds), ylim=(n - 0.5, -0.5))
    axis.set_yticks(range(n))
    axis.grid(visible=False)
    axis.legend(ncols=n, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18))
