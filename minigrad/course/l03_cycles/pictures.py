"""Drawings of lesson 03: a search in three colours, step by step, and graphs with a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from minigrad.course.objects import Node

WHITE, GREY, BLACK = "white", "#b0bec5", "#263238"


@dataclass(frozen=True)
class Moment:
    """One moment of a search: the open nodes in order, the finished ones, what happened."""

    open: tuple[Node, ...]
    finished: frozenset[Node]
    edge: tuple[Node, Node] | None
    text: str
    cycle: tuple[Node, ...] = ()


def search_moments(root: Node, names: Mapping[Node, str]) -> list[Moment]:
    """Return every moment of a depth-first search for a cycle."""
    path, todo, finished = [root], [list(root.inputs)], set()
    moments = [Moment((root,), frozenset(), None, f"begin at {names[root]}: it is open")]

    def note(edge: tuple[Node, Node] | None, text: str, cycle: Sequence[Node] = ()) -> None:
        moments.append(Moment(tuple(path), frozenset(finished), edge, text, tuple(cycle)))

    while path:
        here = path[-1]
        if not todo[-1]:
            finished.add(path.pop())
            todo.pop()
            note(None, f"{names[here]} has no further input: finished")
            continue
        one = todo[-1].pop(0)
        if one is None:
            continue
        if one in path:
            note((here, one), f"{names[one]} is open: a cycle", [*path[path.index(one) :], one])
            return moments
        if one in finished:
            note((here, one), f"{names[one]} is finished: no cycle here")
            continue
        path.append(one)
        todo.append(list(one.inputs))
        note((here, one), f"{names[one]} is new: open it")
    return moments


def draw_search(
    axis: Any,
    moment: Moment,
    names: Mapping[Node, str],
    places: Mapping[Node, tuple[float, float]],
) -> None:
    """Draw a moment of a search: white unseen, grey open, black finished."""
    colours = dict.fromkeys(places, WHITE)
    colours |= dict.fromkeys(moment.open, GREY) | dict.fromkeys(moment.finished, BLACK)
    red = [*pairwise(moment.cycle)] or ([moment.edge] if moment.edge else [])
    draw_graph(axis, names, places, colours, red)
    axis.set_xlabel("white: unseen; grey: open; black: finished", fontsize=9)
    axis.set_title(moment.text, fontsize=10)


def draw_graph(
    axis: Any,
    names: Mapping[Node, str],
    places: Mapping[Node, tuple[float, float]],
    colours: Mapping[Node, str],
    red: Iterable[tuple[Node, Node]] = (),
) -> None:
    """Draw a graph with an arrow from each node to its inputs, some of them in red."""
    marked = {(id(a), id(b)) for a, b in red}
    for node, (x, y) in places.items():
        for one in {i for i in node.inputs if i is not None}:
            is_red = (id(node), id(one)) in marked
            arrow = {
                "arrowstyle": "-|>",
                "color": "C3" if is_red else "gray",
                "linewidth": 2.2 if is_red else 1,
                "shrinkA": 17,
                "shrinkB": 17,
            }
            axis.annotate("", places[one], (x, y), arrowprops=arrow, zorder=0)
        ink = "white" if colours[node] == BLACK else "black"
        axis.scatter([x], [y], s=620, color=colours[node], edgecolors="black", zorder=2)
        axis.text(x, y, names[node], ha="center", va="center", color=ink, fontsize=9, zorder=3)
    across, along = zip(*places.values(), strict=True)
    axis.set(
        xlim=(min(across) - 0.5, max(across) + 0.5),
        ylim=(min(along) - 0.5, max(along) + 0.5),
        xticks=[],
        yticks=[],
        frame_on=False,
    )
