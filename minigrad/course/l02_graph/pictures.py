"""Drawings of lesson 02: a backward walk step by step, and an order as arcs along a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigrad.course.objects import Node
from minigrad.course.pictures import BUSY, IDLE

DONE = "#dcedc8"


def gradients_along(order: Sequence[Node], rules: Mapping[str, Any], steps: int) -> dict:
    """Return each node's gradient after some steps of a walk along an order."""
    grads = dict.fromkeys(order, 0.0)
    grads[order[0]] = 1.0
    for node in order[:steps]:
        if node.inputs:
            sent = rules[node.op](grads[node], *node.saved)
            for one, dy in zip(node.inputs, sent, strict=True):
                if one is not None:
                    grads[one] += dy
    return grads


def draw_walks(
    axis: Any,
    walks: Mapping[str, Sequence[Node]],
    names: Mapping[Node, str],
    places: Mapping[Node, tuple[float, float]],
    rules: Mapping[str, Any],
    step: int,
) -> None:
    """Draw backward walks over one graph side by side, after `step` nodes of each have run.

    Args:
        axis: a matplotlib axis.
        walks: title -> order, with the root first.
        names: the text in each node's box.
        places: the position of each box; a node's inputs stand to its left.
        rules: op -> rule(dy, *saved).
        step: 0 to the number of nodes.
    """
    width = max(x for x, _ in places.values()) + 1.1
    for number, (title, order) in enumerate(walks.items()):
        shift = number * width
        grads = gradients_along(order, rules, step)
        for node in order:
            x, y = places[node]
            for one in {i for i in node.inputs if i is not None}:
                busy = step > 0 and node is order[step - 1]
                level = places[one][1] == y  # then the arrow joins the boxes' sides
                axis.annotate(
                    "",
                    (places[one][0] + shift, places[one][1]),
                    (x + shift, y),
                    arrowprops={
                        "arrowstyle": "-|>",
                        "color": "C3" if busy else "silver",
                        "linewidth": 2 if busy else 1,
                        "shrinkA": 8 + 2.8 * len(names[node]) if level else 20,
                        "shrinkB": 8 + 2.8 * len(names[one]) if level else 20,
                    },
                    zorder=0,
                )
        for place, node in enumerate(order):
            x, y = places[node]
            colour = BUSY if place == step - 1 else DONE if place < step else IDLE
            box = {"boxstyle": "round,pad=0.45", "facecolor": colour}
            axis.text(x + shift, y, names[node], ha="center", va="center", color="black", bbox=box)
            if grads[node]:
                axis.text(
                    x + shift, y - 0.34, f"{grads[node]:g}", ha="center", va="top", color="C3"
                )
        middle = shift + (width - 1.1) / 2
        axis.text(middle, 1.72, title, ha="center", fontsize=10, color="black")
    n = len(next(iter(walks.values())))
    axis.set(
        xlim=(-0.5, len(walks) * width - 0.6), ylim=(-0.75, 2), xticks=[], yticks=[], frame_on=False
    )
    axis.set_xlabel("red: the gradient that has arrived at a node; orange: the node whose rule ran")
    axis.set_title(f"after {step} of {n} nodes", fontsize=10)


def draw_arcs(axis: Any, order: Sequence[Node], labels: Sequence[str]) -> None:
    """Draw an order as points on a line, with an arc from every input to its consumer."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    place = {node: k for k, node in enumerate(order)}
    n, tallest = len(order), 0.5
    for node in order:
        for one in node.inputs:
            if one is None:
                continue
            start, end = place[one], place[node]
            height = abs(end - start) ** 0.7
            tallest = max(tallest, 0.75 * height)  # the peak of a Bézier curve of this height
            lean = 0.15 * (end - start)
            corners = [(start, 0), (start + lean, height), (end - lean, height), (end, 0.1)]
            curve = Path(corners, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
            colour = "C0" if end > start else "C3"
            arrow = FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=9, color=colour)
            axis.add_patch(arrow)
    axis.plot(range(n), [0] * n, "o", color="black", markersize=4, zorder=3)
    axis.set(xlim=(-0.7, n - 0.3), ylim=(-0.15 * tallest, 1.2 * tallest), yticks=[], frame_on=False)
    axis.set_xticks(range(n), labels, rotation=90 if n > 8 else 0, fontsize=9)
