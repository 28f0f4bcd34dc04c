"""Graphs that may have cycles, as plain data. What the checks of lesson 03 share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from minigrad.grader.message import show
from minigrad.grader.tester import Tester

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Web:
    """A graph that may have cycles; a node is known by its place.

    Attributes:
        ops: each node's operation.
        inputs: the places of each node's inputs, None for an input without a gradient.
        root: the place of the root.
    """

    ops: list[str]
    inputs: list[list[int | None]]
    root: int

    def edges(self, node: int) -> list[int]:
        """Return the places of a node's inputs that are nodes."""
        return [i for i in self.inputs[node] if i is not None]

    def behind(self, start: int) -> set[int]:
        """Return the nodes that a node reaches by at least one edge."""
        reached: set[int] = set()
        waiting = self.edges(start)
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached.add(node)
                waiting += self.edges(node)
        return reached

    def reachable(self) -> set[int]:
        """Return the root and all that it depends on."""
        return self.behind(self.root) | {self.root}

    def cycle(self) -> list[int] | None:
        """Return the shortest cycle that the root depends on, None if there is none."""
        best = None
        for start in sorted(k for k in self.reachable() if k in self.behind(k)):
            way = self._way_back(start)
            if best is None or len(way) < len(best):
                best = way
        return best

    def _way_back(self, start: int) -> list[int]:
        came_from: dict[int, int] = {}
        waiting = [start]
        for node in waiting:  # the list grows: nearest nodes come first
            for i in self.edges(node):
                if i not in came_from:
                    came_from[i] = node
                    waiting.append(i)
        way = [start]
        while len(way) == 1 or way[0] != start:
            way.insert(0, came_from[way[0]])
        return way

    def name(self, node: int) -> str:
        """Return a node's name for messages."""
        return LETTERS[node] if node < len(LETTERS) else f"n{node}"

    def path(self, nodes: list[int]) -> str:
        """Return a path as messages show it."""
        shown = [self.name(k) for k in nodes]
        if len(shown) > 12:
            shown = [*shown[:5], "…", *shown[-5:]]
        return f"[{', '.join(shown)}]"

    def shape(self) -> str:
        """Return the graph as messages show it."""
        rows = []
        for k, op in enumerate(self.ops):
            inputs = ["None" if i is None else self.name(i) for i in self.inputs[k]]
            rows.append(f"{self.name(k)} = {op}({', '.join(inputs)})")
        return "; ".join(rows)


def web(ops: str, *inputs: list[int | None], root: int = -1) -> Web:
    """Build a graph from the names of its ops."""
    names = ops.split()
    return Web(names, list(inputs), root % len(names))


def long_web(n: int, back: int | None) -> Web:
    """Return a leaf and n times y = y + y; node `back`, if given, has the last node as input."""
    inputs: list[list[int | None]] = [[], *([k, k] for k in range(n))]
    if back is not None:
        inputs[back] = [n]
    return Web(["leaf"] + ["add"] * n, inputs, n)


def wide_web(n: int) -> Web:
    """Return a long graph with a root whose inputs are all its nodes."""
    graph = long_web(n, None)
    return Web([*graph.ops, "sum"], [*graph.inputs, list(range(n + 1))], n + 1)


def random_web(t: Tester, n: int, *, cyclic: bool) -> Web:
    """Return a random graph of n nodes whose root depends on a cycle, or on none."""
    while True:
        ops, inputs = ["leaf"], [[]]
        for k in range(1, n):
            op = str(t.fixed.choice(["add", "mul", "tanh", "exp"]))
            count = 2 if op in ("add", "mul") else 1
            row: list[int | None] = [int(i) for i in t.fixed.integers(max(0, k - 4), k, count)]
            if count == 2 and t.fixed.random() < 0.2:
                row[int(t.fixed.integers(2))] = None
            ops.append(op)
            inputs.append(row)
        root = int(t.fixed.integers(n // 2, n))
        if cyclic or t.fixed.random() < 0.5:  # an edge to a later node, perhaps out of reach
            k = int(t.fixed.integers(1, n))
            inputs[k][int(t.fixed.integers(len(inputs[k])))] = int(t.fixed.integers(k, n))
        graph = Web(ops, inputs, root)
        if (graph.cycle() is not None) == cyclic:
            return graph


def drive(
    t: Tester,
    name: str,
    graph: Web,
    before: Web | None = None,
    lines: Sequence[str] | None = None,
    *,
    given: str,
) -> Any:
    """Call a driver's function on a graph; return its result, with the graph's own places.

    Sends the rows in a shuffled order: in the graph's own order, an input with a higher row would
    reveal a cycle.

    Args:
        t: the check's tester.
        name: the driver's function.
        graph: the graph.
        before: the same nodes with other inputs, to call it on first.
        lines: each node's line.
        given: what the message's first part says.
    """
    at = t.random.spawn(1)[0].permutation(len(graph.ops)).tolist()  # takes no number from `random`
    rows = sorted(range(len(at)), key=at.__getitem__)

    def shuffled(inputs: list[list[int | None]]) -> list[list[int | None]]:
        return [[None if i is None else at[i] for i in inputs[k]] for k in rows]

    more: list[Any] = [] if before is None else [shuffled(before.inputs)]
    if lines is not None:
        more = [*(more or [None]), [lines[k] for k in rows]]
    ops, inputs = [graph.ops[k] for k in rows], shuffled(graph.inputs)
    answer = t.drive(name, ops, inputs, at[graph.root], *more, given=given)
    for holder, key in ((answer, "found"), (answer.get("raised"), "path")):
        if holder and isinstance(holder.get(key), list | tuple):
            path = holder[key]
            holder[key] = type(path)(rows[k] if _is_place(k, rows) else k for k in path)
    return answer


def _is_place(k: object, rows: list[int]) -> bool:
    return type(k) is int and 0 <= k < len(rows)


def check_path(t: Tester, graph: Web, path: object, what: str = "") -> None:
    """Fail unless `path` is a cycle of the graph, verified edge by edge."""
    example = graph.cycle() or []
    wanted = f"{what}a list of Nodes [a, …, a] along inputs, such as {graph.path(example)}"
    if not isinstance(path, list) or not path:
        name = getattr(path, "type_name", type(path).__name__)
        got = "an empty list" if isinstance(path, list) else f"{show(path)}, of type {name}"
        t.fail("type", wanted, got, "Return the nodes of the cycle, in a list.")
    strange = [one for one in path if not isinstance(one, int)]
    if strange:
        t.fail(
            "strange_entry",
            wanted,
            f"a list with {strange[0]}",
            "Only Nodes of the graph belong to the path. What is this entry?",
        )
    got = graph.path(path)
    if path[0] != path[-1] or len(path) < 2:
        seen_before = path.index(path[-1]) < len(path) - 1
        if seen_before:
            say = "The way from the root into the cycle is no part of it. Where does it begin?"
            t.fail("tail", wanted, got, say)
        t.fail("open", wanted, got, "The first and the last entry are the same Node.")
    missing = [(a, b) for a, b in pairwise(path) if b not in graph.edges(a)]
    if missing:
        a, b = (graph.name(k) for k in missing[0])
        if all(a in graph.edges(b) for a, b in pairwise(path)):
            say = "Is each entry an input of the one before it? This is a cycle only backwards."
            t.fail("direction", wanted, got, say)
        say = "Nodes that were seen and left again are no part of the way. What is, at this moment?"
        t.fail("no_edge", wanted, f"{got}; but {b} is no input of {a}", say)
    if len(set(path)) != len(path) - 1:
        say = "One round is enough: a node other than the first occurs twice."
        t.fail("twice", wanted, got, say)


def n_edges(graph: Web) -> int:
    """Return the number of edges of the nodes that the root depends on."""
    return sum(len(graph.edges(k)) for k in graph.reachable())
