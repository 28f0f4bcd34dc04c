"""Pictures of lesson 17: digits that were read wrongly, what a change reaches, curves and bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

ROW = 6  # digits in a row


def draw_wrong(axis: Any, images: np.ndarray, predicted: np.ndarray, right: np.ndarray) -> None:
    """Draw the digits that were read wrongly, each with what was read and what was right."""
    wrong = np.flatnonzero(predicted != right)[: 2 * ROW]
    rows = 2
    paper = np.zeros((rows * 11, ROW * 10))
    for k, i in enumerate(wrong):
        top, left = 11 * (k // ROW) + 2, 10 * (k % ROW) + 1
        paper[top : top + 8, left : left + 8] = images[i]
        axis.text(left + 3.5, top - 1.2, f"{predicted[i]}, not {right[i]}", ha="center", fontsize=7)
    axis.imshow(paper, cmap="gray_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[], frame_on=False)
    axis.set_title(f"{int((predicted != right).sum())} of {len(right)} wrong", fontsize=10)


def smooth(values: Sequence[float], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places and the means of windows of values."""
    width = max(1, min(width, len(values)))
    means = np.convolve(values, np.ones(width) / width, mode="valid")
    return np.arange(width, width + len(means)), means


def draw_beside(
    axis: Any, curves: Mapping[str, Sequence[float]], line: float, what: str, width: int = 15
) -> None:
    """Draw curves, smoothed, and beside them the line that they must cross."""
    for name, values in curves.items():
        axis.plot(*smooth(values, width), label=name)
    axis.axhline(line, color="gray", linestyle="--", linewidth=1, label=what)
    axis.legend()


def draw_reach(axis: Any, scores: Callable[[np.ndarray], np.ndarray], tokens: np.ndarray) -> None:
    """Draw which scores change, in any bit, when one token changes: a row for each token."""
    whole = scores(tokens[None])[0]
    changed = np.zeros((len(tokens), len(tokens)))
    for place in range(len(tokens)):
        other = tokens.copy()
        other[place] = tokens.max() if tokens[place] < tokens.max() else tokens.min()
        changed[place] = (scores(other[None])[0] != whole).any(axis=-1)
    axis.imshow(changed, cmap="Blues", vmin=0, vmax=1.4)
    axis.set(xlabel="place of the scores", ylabel="place of the token that changes")


def draw_pole(axis: Any, steps: Sequence[float], means: Sequence[float], good: float) -> None:
    """Draw the mean return of the last 20 games over the steps, and where it is good."""
    axis.plot(steps, means, label="mean of the last 20 games")
    axis.axhline(good, color="gray", linestyle="--", linewidth=1, label=f"wanted: {good:g}")
    axis.set(xlabel="step of the game", ylabel="return")
    axis.legend()
