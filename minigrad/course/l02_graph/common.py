"""Graphs as plain data: rows, inputs first. What the checks of lesson 02 share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from minigrad.grader.tester import Tester

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIGNS = {"add": "+", "mul": "*"}


@dataclass(frozen=True)
class Graph:
    """A graph whose nodes are known by place; the last one is the root unless `root` names another.

    Attributes:
        ops: each node's operation.
        inputs: each node's inputs: places (int), or constants (float).
        leaves: the numbers of the leaves, by place.
        root: the root's place; -1 is the last.
    """

    ops: list[str]
    inputs: list[list[int | float]]
    leaves: dict[int, float] = field(default_factory=dict)
    root: int = -1

    @property
    def top(self) -> int:
        """Return the place of the root, from 0."""
        return self.root % len(self.ops)

    def places(self) -> list[list[int | None]]:
        """Return each node's input places; a constant is None, as in a Node."""
        return [[i if isinstance(i, int) else None for i in row] for row in self.inputs]

    def edges(self, node: int) -> list[int]:
        """Return the places of a node's inputs that are nodes."""
        return [i for i in self.inputs[node] if isinstance(i, int)]

    def name(self, node: int) -> str:
        """Return a node's name for messages."""
        return LETTERS[node] if node < len(LETTERS) else f"n{node}"

    def reachable(self) -> list[int]:
        """Return the root and all that it depends on, inputs first."""
        reached = {self.top}
        for node in range(self.top, -1, -1):
            if node in reached:
                reached.update(self.edges(node))
        return sorted(reached)

    def shape(self) -> str:
        """Return the graph as a message shows it when numbers do not matter."""
        rows = [
            f"{self.name(k)} = {op}({', '.join(self._operand(i, 'None') for i in self.inputs[k])})"
            for k, op in enumerate(self.ops)
        ]
        return "; ".join(rows)

    def formulas(self) -> str:
        """Return the graph as a message shows it when numbers matter."""
        return "; ".join(f"{self.name(k)} = {self._formula(k)}" for k in range(len(self.ops)))

    def _formula(self, k: int) -> str:
        op, operands = self.ops[k], [self._operand(i) for i in self.inputs[k]]
        if op == "leaf":
            return f"leaf({self.leaves[k]:g})"
        return f" {SIGNS[op]} ".join(operands) if op in SIGNS else f"{op}({operands[0]})"

    def _operand(self, operand: int | float, constant: str = "") -> str:
        if isinstance(operand, int):
            return self.name(operand)
        return constant or f"{operand:g}"

    # ---- numbers --------------------------------------------------------------------------

    def values(self, moved: int | None = None, by: float = 0.0) -> list[float]:
        """Return every node's number, with one of them shifted."""
        values: list[float] = []
        for k, op in enumerate(self.ops):
            operands = [values[i] if isinstance(i, int) else i for i in self.inputs[k]]
            if op == "leaf":
                value = self.leaves[k]
            elif op == "tanh":
                value = math.tanh(operands[0])
            else:
                value = operands[0] + operands[1] if op == "add" else operands[0] * operands[1]
            values.append(value + by if k == moved else value)
        return values

    def saved(self) -> list[list[float]]:
        """Return what each node's rule needs."""
        values, rows = self.values(), []
        for k, op in enumerate(self.ops):
            operands = [values[i] if isinstance(i, int) else i for i in self.inputs[k]]
            rows.append({"leaf": [values[k]], "tanh": [values[k]], "mul": operands}.get(op, []))
        return rows

    def sends(self, node: int, dy: float) -> list[tuple[int, float]]:
        """Return the gradient that a node sends to each input that is a node."""
        saved = self.saved()[node]
        if self.ops[node] == "tanh":
            parts = [dy * (1 - saved[0] ** 2)]
        elif self.ops[node] == "mul":
            parts = [dy * saved[1], dy * saved[0]]
        else:
            parts = [dy, dy]
        return [(i, g) for i, g in zip(self.inputs[node], parts, strict=False) if type(i) is int]

    def slope(self, node: int, step: float = 1e-5) -> float:
        """Return the root's derivative by a node, by central difference."""
        ends = [self.values(node, sign * step)[self.top] for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step)


def first_met(graph: Graph, queue: bool = False, last_first: bool = False) -> list[int]:
    """Return the order in which a search meets the nodes: depth first, or breadth first."""
    order: list[int] = []
    waiting = [graph.top]
    while waiting:
        node = waiting.pop(0)
        if node not in order:
            order.append(node)
            edges = graph.edges(node)[:: -1 if last_first else 1]
            waiting = waiting + edges if queue else edges + waiting
    return order


def given_graph(ops: str, *inputs: list[int | float], root: int = -1) -> Graph:
    """Build a graph from the names of its ops, with a number for each leaf."""
    names = ops.split()
    leaves = {k: 0.5 + 0.25 * k for k, op in enumerate(names) if op == "leaf"}
    return Graph(names, list(inputs), leaves, root)


def ladder(n: int) -> Graph:
    """Return a graph of n times y = y + y on top of a leaf."""
    return Graph(["leaf"] + ["add"] * n, [[], *([k, k] for k in range(n))], {0: 1.0})


def random_graph(t: Tester, n: int) -> Graph:
    """Return a graph of n nodes with moderate numbers, shared nodes and constants."""
    while True:
        ops, inputs, leaves = ["leaf"], [[]], {0: _number(t)}
        for k in range(1, n):
            if t.fixed.random() < 0.15:
                ops.append("leaf")
                inputs.append([])
                leaves[k] = _number(t)
                continue
            op = str(t.fixed.choice(["add", "mul", "tanh"]))
            row: list[int | float] = [_recent(t, k) for _ in range(1 if op == "tanh" else 2)]
            if op != "tanh" and t.fixed.random() < 0.2:
                row[int(t.fixed.integers(2))] = _number(t)
            ops.append(op)
            inputs.append(row)
        graph = Graph(ops, inputs, leaves, int(t.fixed.integers(2 * n // 3, n)))
        if max(map(abs, graph.values())) < 20:
            return graph


def _recent(t: Tester, k: int) -> int:
    """Return a place below k, mostly one of the last three: that makes deep graphs."""
    start = max(0, k - 3) if t.fixed.random() < 0.7 else 0
    return int(t.fixed.integers(start, k))


def _number(t: Tester) -> float:
    return float(np.round(t.random.choice([-1, 1]) * t.random.uniform(0.3, 2), 1))


def drive(t: Tester, name: str, graph: Graph, *others: Any, saved: bool = False, given: str) -> Any:
    """Call a driver's function on a graph; return its result, with the graph's own places.

    Sends the rows in a shuffled order: the graph's own order, inputs first, is an answer already,
    and the learner's code can look at what the driver holds. `saved` also sends what nodes saved.
    """
    at = t.random.spawn(1)[0].permutation(len(graph.ops)).tolist()  # takes no number from `random`
    rows = sorted(range(len(at)), key=at.__getitem__)
    places = graph.places()
    inputs = [[None if i is None else at[i] for i in places[k]] for k in rows]
    if saved:
        values = graph.saved()
        others = ([values[k] for k in rows], *others)
    ops = [graph.ops[k] for k in rows]
    answer = t.drive(name, ops, inputs, at[graph.top], *others, given=given)
    if isinstance(answer, dict):
        for key in {"found", "again", "grads"} & answer.keys():
            answer[key] = _with_places(answer[key], rows)
    return answer


def _with_places(result: Any, rows: list[int]) -> Any:
    """Return a list, or a dict of two lists, with places replaced by the numbers of rows."""
    if isinstance(result, dict) and "keys" in result:
        return {**result, "keys": _with_places(result["keys"], rows)}
    if not isinstance(result, list):
        return result
    is_place = [type(one) is int and 0 <= one < len(rows) for one in result]
    return [rows[one] if known else one for one, known in zip(result, is_place, strict=True)]


def twice(t: Tester, graph: Graph, answer: object, what: str) -> list[dict[int, Any]]:
    """Return the results of two calls per place, as `by_node` does."""
    if not isinstance(answer, dict) or not {"found", "again"} <= answer.keys():
        return [by_node(t, graph, answer, what)] * 2
    if not answer["is_new"] and isinstance(answer["found"], dict):
        same_one(t, "dict")
    return [by_node(t, graph, answer[call], what) for call in ("found", "again")]


def same_one(t: Tester, kind: str) -> NoReturn:
    """Fail because two calls returned the same object."""
    t.fail(
        "same_one",
        f"a new {kind} in each call",
        f"the {kind} that the call before had returned",
        f"Whoever has the first {kind} sees it change now. Which line makes it, and how often?",
    )


def by_node(t: Tester, graph: Graph, result: object, what: str) -> dict[int, Any]:
    """Return a dict's value per place; fail if it is no dict or lacks nodes."""
    expected = f"a dict with {what} of each of {len(graph.reachable())} nodes"
    if result is None:
        t.none(expected)
    if not isinstance(result, dict) or "keys" not in result:
        name = getattr(result, "type_name", type(result).__name__)
        t.fail(
            "type", expected, f"an object of type {name}", "Return a dict whose keys are the Nodes."
        )
    strange = [key for key in result["keys"] if not isinstance(key, int)]
    if strange:
        t.fail(
            "strange_key",
            expected,
            f"a dict with the key {strange[0]}",
            "The keys are the Nodes of the graph. What is this one, and where did it come in?",
        )
    named = dict(zip(result["keys"], result["values"], strict=True))
    missing = [k for k in graph.reachable() if k not in named]
    if missing:
        t.fail(
            "missing",
            f"{expected}: {names(graph, graph.reachable())}",
            f"{len(named)} of them, without {names(graph, missing)}",
            "Each has its own entry: root, leaves, those in the middle, and where only 0 arrives.",
        )
    return named


def names(graph: Graph, nodes: list[int]) -> str:
    """Return the names of some nodes."""
    shown = ", ".join(graph.name(k) for k in nodes[:12])
    return f"{shown}, …" if len(nodes) > 12 else shown
