"""Pictures of lesson 15: gaps between numbers, exponents of gradients, a scale over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# For each format: bits of precision, exponent of the smallest normal and of the largest number.
FORMATS = {"float32": (24, -126, 128), "bfloat16": (8, -126, 128), "float16": (11, -14, 16)}
COLOURS = {"float32": "gray", "bfloat16": "C1", "float16": "C0"}
LOST, COARSE, FINE, INFINITE = "#d32f2f", "#ffb74d", "#1976d2", "#6a1b9a"


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
    for place, text in ((2.0**-24, "smallest float16"), (2.0**16, "largest float16")):
        axis.axvline(place, color="gray", linewidth=0.8, linestyle=":")
        axis.text(place, 2.0**-70, f" {text}", fontsize=8, rotation=90, va="bottom")
    axis.set(xlabel="size of a number", ylabel="distance to the next one")
    axis.legend()


def draw_exponents(axis: Any, gradients: Mapping[str, np.ndarray], scale: float) -> None:
    """Draw how many of the gradients times scale have which exponent, and what float16 does."""
    every = np.concatenate([g.ravel() for g in gradients.values()]).astype(np.float64)
    exponents = np.floor(np.log2(np.abs(every[every != 0]) * scale))
    edges = np.arange(-46, 27)
    counts = np.array([(exponents == e).sum() for e in edges])
    kinds = (
        (edges < -24, LOST, "becomes 0"),
        ((edges >= -24) & (edges < -14), COARSE, "subnormal"),
        ((edges >= -14) & (edges < 16), FINE, "all bits"),
        (edges >= 16, INFINITE, "infinite"),
    )
    for mask, colour, label in kinds:
        axis.bar(edges[mask], counts[mask], width=1.0, color=colour, label=label)
    axis.set(xlabel="exponent: 2 to the power of …", ylabel="gradients")
    axis.set_title(f"scale {scale:,.0f}" if scale >= 1 else f"scale {scale:g}", fontsize=10)
    axis.set_ylim(0, 1.6 * max(counts.max(), 1))
    axis.legend(fontsize=7, loc="upper right")


def draw_scale(axis: Any, scales: Sequence[float], skipped: Sequence[int], label: str) -> None:
    """Draw a scale over the steps of a training, and the steps that were left out."""
    axis.step(range(len(scales)), scales, where="post", label=label)
    axis.plot(skipped, [scales[k] for k in skipped], "x", color=LOST, label="step left out")
    axis.set_yscale("log", base=2)
    axis.set(xlabel="training step", ylabel="scale")
    axis.legend(fontsize=8)
