"""Drawings of lesson 08: a path through a valley, and who knows which parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COLUMNS = ("the model\nuses", "step()\nlooks after", "state\nremembers")
GOOD, GAP = "#e3f2fd", "C3"


def draw_valley(axis: Any, steepness: float, path: np.ndarray, title: str) -> None:
    """Draw the valley (x^2 + steepness * y^2) / 2 and a path (n, 2) down it."""
    x, y = np.meshgrid(np.linspace(-11, 5, 90), np.linspace(-2.2, 2.2, 60))
    height = (x**2 + steepness * y**2) / 2
    axis.contour(x, y, height, levels=np.geomspace(0.5, 60, 9), colors="lightgray", linewidths=0.8)
    axis.plot(*path.T, ".-", color="C0", linewidth=1, markersize=4)
    axis.plot(*path[0], "o", color="C1", markersize=7)
    axis.plot(0, 0, "*", color="C2", markersize=12)
    axis.set(xlabel="first weight", ylabel="second weight", xlim=(-11, 5), ylim=(-2.2, 2.2))
    axis.set_title(title, fontsize=10)


def draw_owners(
    axis: Any,
    model: Mapping[str, int],
    stepped: Sequence[int],
    state: Mapping[int, str],
    title: str,
) -> None:
    """Draw a row for each id: does the model use it, does step() update it, is it remembered?

    Args:
        axis: a matplotlib axis.
        model: the id of each name that the model uses now.
        stepped: the ids that the optimizer updates.
        state: for each id with state, what is remembered, in words.
        title: the title above.
    """
    names = {number: name for name, number in model.items()}
    ids = sorted({*names, *stepped, *state})
    for row, number in enumerate(ids):
        texts = (
            f"{names[number]}, id {number}" if number in names else None,
            f"id {number}" if number in stepped else None,
            f"id {number}: {state[number]}" if number in state else None,
        )
        for column, text in enumerate(texts):
            gap = text is None
            box = {
                "boxstyle": "round,pad=0.45",
                "facecolor": "white" if gap else GOOD,
                "edgecolor": GAP if gap else "C0",
                "linestyle": "--" if gap else "-",
            }
            colour = GAP if gap else "black"
            axis.text(
                column, -row, text or "nothing", ha="center", va="center", fontsize=8,
                color=colour, bbox=box,
            )  # fmt: skip
        axis.plot([0, 2], [-row, -row], "-", color="lightgray", zorder=0)
    for column, text in enumerate(COLUMNS):
        axis.text(column, 0.75, text, ha="center", va="center", fontsize=9, color="gray")
    axis.set(
        xlim=(-0.55, 2.65),
        ylim=(0.4 - max(len(ids), 2), 1.25),
        xticks=[],
        yticks=[],
        frame_on=False,
    )
    axis.set_xlabel("a row: one id, whoever holds it", fontsize=9)
    axis.set_title(title, fontsize=10)
