"""Pictures of lesson 05: who shows which memory, which bytes a view has, and a table of yes and no.

They draw what `look` returns about the engine, or about anything that has values at an address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ALONE, SHARED, TEXT = "#e3f2fd", "#ffe0b2", "black"
Seen = dict[str, tuple[int, tuple, str]]


def look(**things: Any) -> Seen:
    """Return the address, values and node of each Variable (or CowBuffer, or array)."""
    seen = {}
    for name, thing in things.items():
        if hasattr(thing, "data_ptr"):
            node = thing.node.op if thing.node is not None else ""
            seen[name] = thing.data_ptr(), tuple(thing.tolist()), node
        else:
            array = thing.read() if hasattr(thing, "read") else np.asarray(thing)
            seen[name] = array.__array_interface__["data"][0], tuple(array.tolist()), ""
    return seen


def draw_memory(
    axis: Any, seen: Seen, title: str = "", order: Sequence[int] = (), *, nodes: bool = True
) -> None:
    """Draw names on the left, memory on the right, and who shows which.

    Args:
        axis: a matplotlib axis.
        seen: what `look` returned.
        title: the picture's title.
        order: the addresses of the first rows; others follow.
        nodes: whether to write the node of each Variable under its name.
    """
    rows = list(dict.fromkeys([*order, *(address for address, _, _ in seen.values())]))
    names = list(seen)
    height = max(len(rows), len(names))
    step = height / max(len(names), 1)
    owners = {row: [name for name in names if seen[name][0] == row] for row in rows}
    axis.set(xlim=(0, 10), ylim=(height - 0.3, -0.6), xticks=[], yticks=[], frame_on=False)
    place = {row: (k + 0.5) * height / len(rows) - 0.5 for k, row in enumerate(rows)}
    for k, name in enumerate(names):
        address, _, node = seen[name]
        y = (k + 0.5) * step - 0.5
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "gray"}
        axis.text(1.0, y, name, ha="center", va="center", fontsize=10, color=TEXT, bbox=box)
        if nodes:
            axis.text(2.0, y, node or "no node", va="center", fontsize=8, color="dimgray")
        line = {"arrowstyle": "->", "color": "dimgray"}
        axis.annotate("", (5.1, place[address]), (3.7 if nodes else 1.9, y), arrowprops=line)
    for row in rows:
        if not owners[row]:
            continue
        values = seen[owners[row][0]][1]
        width = 4.4 / len(values)
        for i, value in enumerate(values):
            colour = SHARED if len(owners[row]) > 1 else ALONE
            corner = 5.2 + i * width, place[row] - 0.24
            axis.add_patch(rectangle(corner, width, 0.48, colour))
            axis.text(
                corner[0] + width / 2,
                place[row],
                f"{value:g}",
                ha="center",
                va="center",
                fontsize=9,
                color=TEXT,
            )
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("names, and the memory that they show (orange: more than one)", fontsize=8)


def rectangle(corner: tuple[float, float], width: float, height: float, colour: str) -> Any:
    """Return a box with an edge."""
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor=colour, edgecolor="gray")


def draw_bytes(axis: Any, whole: np.ndarray, views: Mapping[str, np.ndarray]) -> None:
    """Draw the bytes of a whole array that each view shows, and the range that the view spans."""
    start = whole.ctypes.data
    for row, view in enumerate(views.values()):
        index = np.indices(view.shape).reshape(view.ndim, -1)
        offsets = np.dot(view.strides, index) + view.ctypes.data - start
        spans = [(int(first), view.itemsize) for first in offsets]
        low, high = min(spans)[0], max(spans)[0] + view.itemsize
        axis.plot([low, high], [row, row], "-", color="gray", linewidth=1, zorder=0)
        axis.broken_barh(
            spans, (row - 0.3, 0.6), facecolor=f"C{row}", edgecolor="white", linewidth=0.8
        )
    axis.set(xlim=(-1, whole.nbytes + 1), ylim=(len(views) - 0.4, -0.6))
    axis.set_yticks(range(len(views)), list(views))
    axis.set_xticks(range(0, whole.nbytes + 1, 2 * whole.itemsize))


def draw_table(axis: Any, columns: Sequence[str], rows: Mapping[str, Sequence[Any]]) -> None:
    """Draw a table: True as a green yes, False as a red no, texts as they are."""
    for x, column in enumerate(columns):
        axis.text(x + 0.5, -0.25, column, ha="center", va="bottom", fontsize=9, color=TEXT)
    for y, cells in enumerate(rows.values()):
        for x, cell in enumerate(cells):
            yes = cell if isinstance(cell, bool) else bool(cell)
            colour = "#c8e6c9" if yes else "#ffcdd2"
            axis.add_patch(rectangle((x + 0.02, y), 0.96, 0.9, colour))
            text = ("yes" if cell else "no") if isinstance(cell, bool) else cell or "none"
            axis.text(x + 0.5, y + 0.45, text, ha="center", va="center", fontsize=10, color=TEXT)
    axis.set(xlim=(0, len(columns)), ylim=(len(rows), -0.9), xticks=[], frame_on=False)
    axis.set_yticks([k + 0.45 for k in range(len(rows))], list(rows), fontsize=10)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)
