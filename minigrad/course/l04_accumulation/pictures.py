"""Drawings of lesson 04."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.course.pictures import BUSY, IDLE

Arrival = tuple[str, float]


def draw_arrivals(
    axis: Any, names: Mapping[str, str], arrivals: Sequence[Arrival], step: int
) -> None:
    """Draw what has arrived where, after `step` arrivals of a backward pass.

    Args:
        axis: a matplotlib axis.
        names: each key's row label; the row that is reached first is on top.
        arrivals: the keys and the gradients that arrived for them, in order.
        step: the number of arrivals so far.
    """
    rows = list(names)
    sums = dict.fromkeys(rows, 0.0)
    for number, (key, gradient) in enumerate(arrivals[:step]):
        is_last = number == step - 1
        axis.barh(
            rows.index(key),
            gradient,
            left=sums[key],
            color=BUSY if is_last else IDLE,
            edgecolor="C1" if is_last else "C0",
        )
        sums[key] += gradient
    reached = {key for key, _ in arrivals[:step]}
    for row, key in enumerate(rows):
        text = f" {sums[key]:.3f}" if key in reached else " nothing yet"
        axis.text(max(sums[key], 0.0), row, text, va="center", fontsize=9)
    totals = [sum(g for k, g in arrivals if k == key) for key in rows]
    axis.set(xlim=(0, max(totals) * 1.3), yticks=range(len(rows)), yticklabels=names.values())
    # Fixed limits: rows that nothing has reached have no bar to set them.
    axis.set(xlabel="gradient so far", ylabel="value", ylim=(len(rows) - 0.5, -0.5))
    axis.set_title(f"arrival {step} of {len(arrivals)}", fontsize=10)


def draw_sum_of_rows(axis: Any, dy: np.ndarray, total: np.ndarray) -> None:
    """Draw a gradient of shape (n, m) as a table, and the sum of its columns under it."""
    n, m = dy.shape
    table = np.vstack([dy, total])
    shade = np.abs(table).max()
    axis.imshow(table, cmap="RdBu_r", vmin=-shade, vmax=shade, alpha=0.6, aspect="auto")
    for i in range(n + 1):
        for j in range(m):
            weight = "bold" if i == n else "normal"
            axis.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", fontweight=weight)
    axis.axhline(n - 0.5, color="black", linewidth=2)
    axis.set_xticks(range(m), [f"bias[{j}]" for j in range(m)])
    axis.set_yticks(range(n + 1), [*(f"row {i}" for i in range(n)), "bias.grad"])
    axis.set(xlabel="column", ylabel="where this copy was used")
