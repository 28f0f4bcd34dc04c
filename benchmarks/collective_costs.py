"""What a sum over many ranks would cost: a model of two algorithms, and its picture.

Messages between two ranks take `latency + bytes * per_byte` seconds, and any number of pairs of
ranks may exchange messages at a time. A ring sends 2 (n - 1) messages of 1/n of the data one after
the other; a tree sends the whole data up and down, 2 log2 n messages. Before either, each rank of
`mg.distributed` tells all others what it calls: n - 1 messages more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RANKS = [2 << k for k in range(10)]  # 2 to 1,024
DRAWN = {1 << 10: "#65a30d", 1 << 18: "#7c3aed", 1 << 24: "#1f2937"}  # {bytes: colour}
MARKERS = {2: "o", 4: "s"}  # {ranks: marker}
OURS, PLAIN, GREY = "#c2410c", "#0e7490", "#6b7280"


class Link(NamedTuple):
    """What a message costs: seconds, and seconds for each byte."""

    latency: float
    per_byte: float


class Call(NamedTuple):
    """What all_reduce adds: seconds of its own, to tell one rank, and to copy each byte."""

    own: float
    message: float
    per_byte: float


def ring(link: Link, ranks: int, size: float) -> float:
    """Return the seconds of a sum of `size` bytes in a ring."""
    return 2 * (ranks - 1) * (link.latency + size / ranks * link.per_byte)


def tree(link: Link, ranks: int, size: float) -> float:
    """Return the seconds of a sum of `size` bytes by a binary tree."""
    return 2 * math.ceil(math.log2(ranks)) * (link.latency + size * link.per_byte)


def all_reduce(call: Call, link: Link, ranks: int, size: float) -> float:
    """Return the seconds of `mg.distributed.all_reduce`: a ring, and what is added to it."""
    return ring(link, ranks, size) + call.own + (ranks - 1) * call.message + size * call.per_byte


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return (a, b) of seconds = a + b * size, none below 0, with the least relative errors."""
    s, y = np.array(sizes, float), np.array(seconds, float)
    rows = np.stack([1 / y, s / y], axis=1)
    a, b = np.linalg.lstsq(rows, np.ones(len(y)), rcond=None)[0]
    if a < 0 or b < 0:  # the best with that one at 0
        k = int(a < 0)
        alone = rows[:, k].sum() / (rows[:, k] ** 2).sum()
        a, b = (0.0, alone) if k else (alone, 0.0)
    return float(a), float(b)


def fitted(sums: dict[int, Any], barriers: dict[int, float]) -> tuple[Link, Call]:
    """Return the costs: of a link by plain MPI with two ranks, of all_reduce by one rank alone.

    To tell a rank what is called costs what a barrier of two ranks takes longer than that of one.

    Args:
        sums: {ranks: [[bytes, seconds of all_reduce, seconds of plain MPI], ...]}. A ring of two
            sends two messages of half the data.
        barriers: {ranks: seconds}.
    """
    sizes, alone, _ = zip(*sums[1], strict=True)
    own, copies = fit_line(sizes, alone)
    sizes, _, plain = zip(*sums[2], strict=True)
    fixed, per_byte = fit_line(sizes, plain)
    return Link(fixed / 2, per_byte), Call(own, max(barriers[2] - barriers[1], 0.0), copies)


def picture(sums: dict[int, Any], barriers: dict[int, float], path: Path) -> None:
    """Draw what was measured, and the model; the arguments are those of `fitted`."""
    from benchmarks.plot import new_figure

    link, call = fitted(sums, barriers)
    figure = new_figure(figsize=(11, 5.6))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_ylabel("time of an all-reduce, ms")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(labelsize=8.5, labelleft=True)
        axes.grid(color="#e5e7eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    _draw_measured(left, sums, link, call)
    _draw_model(right, sums, link, call)
    for axes, columns in ((left, 2), (right, 3)):
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": columns}
        axes.legend(fontsize=8.5, frameon=False, **place)
    figure.savefig(path, dpi=150)


def _draw_measured(axes, sums, link, call):
    """Draw times over bytes: measured, and what the model says of two ranks."""
    sizes = [size for size, *_ in sums[2]]
    for k, (name, colour, note, cost) in enumerate(
        (
            ("mg.distributed", OURS, "model", lambda s: all_reduce(call, link, 2, s)),
            ("mpi4py", PLAIN, "fitted", lambda s: ring(link, 2, s)),
        )
    ):
        for ranks, marker in MARKERS.items():
            style = {"marker": marker, "markersize": 5, "linestyle": "none", "color": colour}
            times = [row[1 + k] for row in sums[ranks]]
            axes.plot(sizes, _ms(times), label=f"{name}, {ranks} ranks", **style)
        times = [cost(size) for size in sizes]
        axes.plot(sizes, _ms(times), color=colour, linewidth=1, label=f"{note}, 2 ranks")
    axes.set_xticks(sizes, [size_name(size) for size in sizes], minor=False)
    axes.set_xlabel("bytes of the array")
    axes.set_title("measured on one machine", fontsize=10)


def _draw_model(axes, sums, link, call):
    """Draw times over ranks: the model's lines, and the points that were measured."""
    styles = {
        "ring": ("-", ring, (link,)),
        "tree": ("--", tree, (link,)),
        "all_reduce": (":", all_reduce, (call, link)),
    }
    for size, colour in DRAWN.items():
        for style, cost, given in styles.values():
            axes.plot(RANKS, _ms([cost(*given, n, size) for n in RANKS]), style, color=colour)
        points = [(n, *row[1:]) for n in MARKERS for row in sums[n] if row[0] == size]
        for n, ours, plain in points:
            axes.plot(n, *_ms([ours]), "o", color=colour, markersize=6)
            axes.plot(n, *_ms([plain]), "o", color=colour, markersize=6, markerfacecolor="white")
        axes.plot([], [], color=colour, linewidth=5, label=size_name(size))
    for name, (style, *_) in styles.items():
        axes.plot([], [], style, color=GREY, label=name)
    axes.plot([], [], "o", color=GREY, label="measured, mg.distributed")
    axes.plot([], [], "o", color=GREY, markerfacecolor="white", label="measured, mpi4py")
    axes.set_xticks(RANKS, [f"{n:,}" for n in RANKS], minor=False)
    axes.set_xlabel("ranks")
    axes.set_title("model: lines; each rank has a core of its own", fontsize=10)


def _ms(seconds):
    return [1e3 * s for s in seconds]


def size_name(size: float) -> str:
    """Return bytes in words: `1 KiB`, `16 MiB`."""
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"
