"""The bug hunt: nodes in the order in which a search meets them, which is right on trees."""

from __future__ import annotations

from minigrad.course.l02_graph import lesson
from minigrad.course.l02_graph.common import Graph, first_met, random_graph
from minigrad.course.l02_graph.topo import (
    ALONE,
    CHAIN,
    DIAMOND,
    THREE,
    TREE,
    TWICE,
    ask,
    check_depth,
    check_order,
)
from minigrad.grader.message import counted
from minigrad.grader.tester import Tester

hasty_order = lesson.exercise(
    "hasty_order",
    difficulty=4,
    minutes=20,
    returns="a list of Nodes, root the first",
    hints=(
        "On a tree there is one way to each node. So your graph needs a node with two consumers. "
        "Which of them must be met late for the order to be wrong?",
        "The root has two inputs. The search goes down the first of them to the end before it "
        "looks at the second. Let the first be an input of the second as well.",
        "Counterexample: x, a made from x, b made from a, root = mul(a, b). Repair: you have "
        "written a right order already, inputs first. What must be done with it here?",
    ),
)
MOST = 5
KINDS = {("leaf", 0), ("add", 2), ("mul", 2), ("tanh", 1)}


@hasty_order.check(points=2)
def diagnosis(t: Tester) -> None:
    """counterexample builds a small graph for which the order is wrong."""
    where = t.runner.line_of("counterexample")
    rows = t.drive("counterexample", given="counterexample(), and hasty_order of what it returns")
    wanted = f"the root of a graph of at most {MOST} nodes, a Node"
    if "not_a_node" in rows:
        result = rows["not_a_node"]
        if result is None:
            returns = "Does counterexample end in return?"
            t.fail("none", wanted, "None", returns, where=where)
        name = getattr(result, "type_name", type(result).__name__)
        t.fail(
            "type",
            wanted,
            f"an object of type {name}",
            "Return the last node that you built.",
            where=where,
        )
    n = len(rows["ops"])
    if n > MOST:
        more = "100 or more" if n >= 100 else str(n)
        smaller = "Which nodes play no part in the mistake? A constant can be a plain number."
        t.fail("too_big", wanted, f"{more} nodes", smaller, where=where)
    kinds = {(op, len(inputs)) for op, inputs in zip(rows["ops"], rows["inputs"], strict=True)}
    if strange := kinds - KINDS:
        op, n_inputs = min(strange)
        four = "leaf, add, mul and tanh make all that it takes."
        got = f"a node {op!r} with {counted(n_inputs, 'input')}"
        t.fail("strange_op", "nodes made by leaf, add, mul and tanh", got, four, where=where)
    graph = sorted_rows(rows["ops"], rows["inputs"])
    if graph is None:
        acyclic = "A graph without cycles: build each node from nodes that exist already."
        t.fail("cycle", wanted, "a graph with a cycle", acyclic, where=where)
    met = first_met(graph)
    wrong = [(k, i) for k in met for i in graph.edges(k) if met.index(i) < met.index(k)]
    harmful = [i for _, i in wrong if graph.edges(i) or graph.ops[i] != "leaf"]
    order = ", ".join(graph.name(k) for k in met)
    if wrong and not harmful:
        leaf = graph.name(wrong[0][1])
        t.fail(
            "only_leaf",
            "a node that is no leaf before one of its consumers",
            f"{graph.shape()}: in its order, {order}, only {leaf} is, a leaf",
            f"{leaf} passes nothing on, so it may come early. Who must not?",
            where=where,
        )
    if not wrong:
        shared = any(sum(graph.edges(k).count(i) for k in met) > 1 for i in met)
        attempt = "It has a node with two consumers. Which of the two does the search reach first?"
        if not shared:
            attempt = "Here one way leads to each node. What must a graph have to be no tree?"
        t.fail(
            "still_right",
            "a graph for which some node comes before one of its consumers",
            f"{graph.shape()}: its order, {order}, is right",
            attempt,
            where=where,
        )


def sorted_rows(ops: list[str], inputs: list[list[int | None]]) -> Graph | None:
    """Return the graph with its rows sorted inputs first, None if it has a cycle."""
    left, order = list(range(len(ops))), []
    while left:
        ready = [k for k in left if all(i is None or i in order for i in inputs[k])]
        if not ready:
            return None
        order.append(ready[-1])  # rows come from a search, so leaves are at the end
        left.remove(ready[-1])
    place = {k: number for number, k in enumerate(order)}
    rows = [[0.0 if i is None else place[i] for i in inputs[k]] for k in order]
    return Graph([ops[k] for k in order], rows, root=place[0])


@hasty_order.check(points=2)
def repair(t: Tester) -> None:
    """hasty_order gives every node before its inputs, on all graphs."""
    shared = Graph(["leaf", "tanh", "tanh", "mul"], [[], [0], [1], [1, 2]])
    attempt = "A node may come only when all of its consumers have come. Who knows that?"
    for graph in (CHAIN, TREE, DIAMOND, TWICE, shared, *ALONE, THREE):
        check_order(t, graph, ask(t, graph, "hasty_order"), root_first=True, attempt=attempt)
    for n in sorted(int(n) for n in t.fixed.integers(3, 12, 100)):
        graph = random_graph(t, n)
        check_order(t, graph, ask(t, graph, "hasty_order"), root_first=True, attempt=attempt)
    check_depth(t, "hasty_order", root_first=True)
