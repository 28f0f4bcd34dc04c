"""Draws pictures for the lessons on matplotlib axes; their code would be a distraction there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

BUSY, IDLE = "#ffe0b2", "#e3f2fd"


def draw_secant(axis: Any, f: Callable, slope: float, at: float, eps: float) -> None:
    """Draw f, its tangent at a point, and the line through the two points eps away from it."""
    grid = np.linspace(at - 2.2, at + 2.3, 200)
    ends = np.array([at - eps, at + eps])
    rise = float(np.diff(f(ends))[0])
    axis.plot(grid, f(grid), "-", color="C0", label="f(x)")
    axis.plot(grid, f(at) + slope * (grid - at), ":", color="gray", label="tangent")
    line = f(ends[0]) + rise / (2 * eps) * (grid - ends[0])
    axis.plot(grid, line, "--", color="C3", label="two points")
    axis.plot(ends, f(ends), "o", color="C3")
    axis.set(xlabel="x", ylabel="f(x)", ylim=(f(grid).min() - 0.4, f(grid).max() + 0.8))
    axis.set_title(f"eps = {eps:g}: slope {rise / (2 * eps):.5f}, true {slope:.5f}", fontsize=10)
    axis.legend(loc="lower right", fontsize=8, handlelength=1.2)


def draw_chain(
    axis: Any, names: Sequence[str], values: Sequence[float], gradients: Sequence[float], step: int
) -> None:
    """Draw a chain of operations after `step` steps of its forward and backward pass.

    n operations have n + 1 values, which appear in steps 1 to n, and n + 1 gradients, which appear
    from the right in steps n + 1 to 2 * n + 1.
    """
    n = len(names)
    for i, name in enumerate(names):
        is_busy = i in (step - 1, 2 * n + 1 - step)
        box = {"boxstyle": "square,pad=0.6", "facecolor": BUSY if is_busy else IDLE}
        axis.text(i + 0.5, 0, name, ha="center", va="center", fontsize=9, color="black", bbox=box)
    axis.plot([-0.3, n + 0.3], [0, 0], "-", color="gray", zorder=0)
    for i in range(n + 1):
        if i <= step:
            axis.text(i, 0.3, f"{values[i]:.3g}", ha="center", color="C0", fontsize=10)
        if 2 * n - i < step:
            axis.text(i, -0.46, f"{gradients[i]:.3g}", ha="center", color="C3", fontsize=10)
    axis.set(xlim=(-0.5, n + 0.5), ylim=(-0.7, 0.6), yticks=[], xticks=[], frame_on=False)
    axis.set_xlabel("blue: values, going forward; red: gradients, coming back", fontsize=9)
    axis.set_title(f"step {step} of {2 * n + 1}", fontsize=10)


def draw_losses(
    theirs: Mapping[str, Sequence[float]], mine: Mapping[str, Sequence[float]], *, title: str
) -> None:
    """Plot the losses of trainings by name, those of `mine` as thin lines on top."""
    import matplotlib.pyplot as plt

    _, axis = plt.subplots(figsize=(8, 3.8), layout="constrained")
    for name, losses in theirs.items():
        axis.semilogy(losses, linewidth=4, alpha=0.4, label=name)
    for name, losses in mine.items():
        axis.semilogy(losses, linewidth=1, color="black", label=name)
    axis.set(xlabel="training step", ylabel="loss", title=title)
    axis.legend()
    axis.grid(alpha=0.3)
    plt.show()
