"""Pictures of lesson 15: gaps between numbers, exponents of gradients, a scale over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# For each format: bits of precision, exponent of the smallest normal and of the largest number.
FORMATS = {"float32": (24, -126, 128), "bfloat16": (8, -126, 128), "float16": (11, -14, 16)}
COLOURS = {"float32": "gray", "bfloat16": "C1", "float16": "C0"}
LOST, COARSE, FINE, INFINITE = "#d32f2f", "#ffb74d", "#1976d2", "#6a1b9a"
FATES = (
    (LOST, "becomes 0"),
    (COARSE, "becomes subnormal"),
    (FINE, "all bits"),
    (INFINITE, "becomes infinite"),
)


def gap(name: str, size: np.ndarray) -> np.ndarray:
    """Return the distance between neighbours of a format near numbers; nan beyond the largest."""
    bits, least, end = FORMATS[name]
    exponent = np.floor(np.log2(size))
    distance = 2.0 ** (np.maximum(exponent, least) - (bits - 1))
    return np.where((size < 2.0**end) & (size >= 2.0 ** (least - bits + 1)), distance, np.nan)


def draw_gaps(axis: Any) -> None:
    """Draw for each format how far apart its numbers are, over their size."""
    size = 2.0 ** np.arange(-44, 30, 0.125)
    for name in FORMATS:
        axis.loglog(size, gap(name, size), base=2, color=COLOURS[name], label=name)
    for place, text, level, side in (
        (2.0**-24, "smallest float16 ", 2.0**20, "top"),
        (2.0**16, " largest float16", 2.0**-70, "bottom"),
    ):
        axis.axvline(place, color="gray", linewidth=0.8, linestyle=":")
        axis.text(place, level, text, fontsize=8, rotation=90, va=side)
    axis.set(xlabel="size of a number", ylabel="distance to the next one")
    axis.set(xticks=2.0 ** np.arange(-40, 31, 10), yticks=2.0 ** np.arange(-70, 21, 10))
    axis.legend(loc="upper left")


def fates(numbers: np.ndarray) -> np.ndarray:
    """Return what float16 makes of each number, as a place in FATES."""
    with np.errstate(over="ignore"):
        half = np.abs(numbers.astype(np.float16))
    # NumPy rounds, so that no limit is written down here: just above 2**-25 a number is rounded
    # up to 2**-24, and from 65520 on it is infinite, though its exponent is that of 65504.
    return np.where(np.isinf(half), 3, np.where(half >= 2.0**-14, 2, np.where(half > 0, 1, 0)))


def draw_exponents(axis: Any, gradients: Mapping[str, np.ndarray], scale: float) -> None:
    """Draw how many of the gradients times scale have which exponent, and what float16 does."""
    every = np.concatenate([g.ravel() for g in gradients.values()]).astype(np.float64) * scale
    every = every[every != 0]
    edges = np.arange(-46, 29)
    # frexp is exact, and log2 of a number just below a power of two is not. What lies beyond the
    # picture is counted in its outermost bars.
    exponents = np.clip(np.frexp(every)[1] - 1, edges[0], edges[-1])
    fate, below = fates(every), np.zeros(edges.size, int)
    for place, (colour, label) in enumerate(FATES):
        counts = np.bincount(exponents[fate == place] - edges[0], minlength=edges.size)
        axis.bar(edges, counts, width=1.0, bottom=below, color=colour, label=label)
        below += counts
    axis.set(xlabel="exponent: 2 to the power of …", ylabel="gradients")
    axis.set_title(f"scale {scale:,.0f}" if scale >= 1 else f"scale {scale:g}", fontsize=10)
    axis.set_ylim(0, 1.6 * max(below.max(), 1))
    axis.legend(fontsize=7, loc="upper right")


def draw_scale(axis: Any, scales: Sequence[float], skipped: Sequence[int], label: str) -> None:
    """Draw a scale over the steps of a training, and the steps that were left out."""
    axis.step(range(len(scales)), scales, where="post", label=label)
    axis.plot(skipped, [scales[k] for k in skipped], "x", color=LOST, label="step left out")
    axis.set_yscale("log", base=2)
    axis.set(xlabel="training step", ylabel="scale")
    axis.legend(fontsize=8)
