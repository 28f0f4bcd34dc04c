"""A topological order: every node once, after all of its inputs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from minigrad.course.l02_graph import lesson
from minigrad.course.l02_graph.common import (
    Graph,
    drive,
    first_met,
    given_graph,
    ladder,
    names,
    random_graph,
    same_one,
)
from minigrad.grader.message import Failed, show
from minigrad.grader.tester import Tester

topo_order = lesson.exercise(
    "topo_order",
    difficulty=3,
    minutes=20,
    returns="a list of Nodes, root the last",
    hints=(
        "When may a node be entered into the list? When all of its inputs are in it. Follow the "
        "first input down to a leaf by hand: that leaf is the first that can be entered.",
        "Going down, remember the way you came: a stack of nodes that are begun and not finished. "
        "A node is finished, and entered, when it has no input left that is not seen yet.",
        "Keep a stack of (node, iter(node.inputs)) and a set of seen nodes. Look at the top: take "
        "its next input; if that is new, mark it and push it; when none is left, enter and pop.",
    ),
)

CHAIN = given_graph("leaf tanh tanh", [], [0], [1])
TREE = given_graph("leaf leaf mul leaf add", [], [], [0, 1], [], [2, 3])
DIAMOND = given_graph("leaf tanh tanh mul", [], [0], [0], [1, 2])
CONSTANT = given_graph("leaf mul tanh add", [], [0, 3.0], [1], [2, 0])
TWICE = given_graph("leaf mul mul mul", [], [0, 0], [3.0, 1], [1, 2])
LATE = given_graph("leaf tanh mul add", [], [0], [1, 0], [2, 1])
NUMBERS = given_graph("mul leaf add", [2.0, 3.0], [], [0, 1])  # no inputs, yet no leaf
ALONE = given_graph("leaf", []), given_graph("mul", [2.0, 3.0])
THREE = given_graph("leaf leaf leaf where", [], [], [], [0, 1, 2])
SMALL = (CHAIN, TREE, DIAMOND, CONSTANT, TWICE, LATE, NUMBERS, *ALONE, THREE)


def check_order(
    t: Tester, graph: Graph, answer: object, *, root_first: bool = False, attempt: str
) -> None:
    """Fail unless the answer has each node once, on the correct side of its inputs."""
    entries = answer["found"] if isinstance(answer, dict) else answer
    right = graph.reachable()[::-1] if root_first else graph.reachable()
    wanted = f"{len(right)} nodes, each once: {names(graph, right)}"
    if entries is None:
        t.none(wanted)
    if not isinstance(entries, list):
        name = getattr(entries, "type_name", type(entries).__name__)
        t.fail(
            "type",
            f"a list of {wanted}",
            f"an object of type {name}",
            "Put the nodes into a list: [...].",
        )
    for one in entries:
        if not isinstance(one, int):
            said = "An input that is None is no node: it does not belong to the list."
            other = "Only Nodes of the graph itself belong to the list. What is this entry?"
            t.fail("strange_entry", wanted, f"a list with {one}", said if one == "None" else other)
    check_each_once(t, graph, entries, right, wanted)
    sides = [(entries.index(k), entries.index(i), k, i) for k in right for i in graph.edges(k)]
    wrong = [(k, i) for at, before, k, i in sides if (at > before) == root_first]
    if not wrong:
        if isinstance(answer, dict) and not answer["unchanged"]:
            changed = "one with other values, or with one more attribute"
            t.fail("changed", "nodes left as they were", changed, "Look only.")
        if isinstance(answer, dict) and not answer["is_new"]:
            same_one(t, "list")
        if isinstance(answer, dict) and answer["again"] != entries:
            t.given += ", called again"
            attempt = "What does your function still know of the first call in the second?"
            try:
                check_order(t, graph, answer["again"], root_first=root_first, attempt=attempt)
            except Failed as failed:  # the first call was right
                raise Failed(replace(failed.message, attempt=attempt)) from None
        return
    k, i = (graph.name(node) for node in wrong[0])
    expected = f"{i} after {k}, of which it is an input" if root_first else f"{i}, then {k}"
    expected += f": such as {names(graph, right)}"
    got = names(graph, entries)
    if len(wrong) == len(sides):
        t.fail("reversed", expected, got, "All are there, in a right order from the wrong end.")
    met = [first_met(graph, queue, back) for queue in (False, True) for back in (False, True)]
    if entries in met or entries[::-1] in met:
        t.fail(
            "when_met",
            expected,
            got,
            "When does a node get its place in your list? By then, which of the nodes that must "
            "come before it were there, each counted as often as it is an input?",
        )
    t.fail("early", expected, got, attempt)


def check_each_once(t: Tester, graph: Graph, entries: list, right: list[int], wanted: str) -> None:
    """Fail unless the list has exactly these nodes: compare lengths first, then nodes."""
    got = f"{len(entries)} in the list: {names(graph, entries)}" if entries else "an empty list"
    twice = sorted({k for k in entries if entries.count(k) > 1}) if len(entries) < 1000 else []
    met = set(entries)
    missing = [k for k in right if k not in met]
    if twice:
        t.fail(
            "twice",
            wanted,
            f"{got}; {names(graph, twice)} more than once",
            f"Two ways lead to {graph.name(twice[0])}. What does your walk do the second time?",
        )
    if missing:
        attempt = "Which line enters a node, and for which nodes is it never reached?"
        if missing == [graph.top]:
            attempt = "The root itself belongs to the list."
        t.fail("missing", wanted, f"{got}; without {names(graph, missing)}", attempt)
    if len(entries) != len(right):
        t.fail("length", wanted, got, "Which nodes does the root not depend on?")


def ask(t: Tester, graph: Graph, name: str = "topo_order") -> object:
    """Return an order function's result for a graph."""
    given = f"{name}({graph.name(graph.top)}) of {graph.shape()}"
    return drive(t, "order", graph, name, given=given)


AFTER = "Which line enters a node? Are all of its inputs in the list by then?"


@topo_order.check(points=1)
def small_graphs(t: Tester) -> None:
    """It is right for a chain, a tree, a diamond, a constant, and an input used twice."""
    for graph in SMALL:
        check_order(t, graph, ask(t, graph), attempt=AFTER)


@topo_order.check(points=2)
def random_graphs(t: Tester) -> None:
    """It is right for 200 random graphs, small ones first."""
    for n in sorted(int(n) for n in t.fixed.integers(3, 14, 200)):
        graph = random_graph(t, n)
        check_order(t, graph, ask(t, graph), attempt=AFTER)


@topo_order.check(points=1)
def deep_graphs(t: Tester) -> None:
    """It works 50,000 nodes deep: without recursion, and without looking through lists."""
    check_depth(t, "topo_order", root_first=False)


def check_depth(t: Tester, name: str, *, root_first: bool) -> None:
    """Fail if a chain is too deep for it, or if it compares nodes with each other."""
    n = 500
    given = f"{name}(y) after y = leaf, and {{:,}} times y = y + y"
    answer = drive(t, "long_order", ladder(n), name, given=given.format(n))
    check_long(t, answer, n, root_first)
    compared = drive(t, "comparisons", ladder(n), name, given=given.format(n))
    if compared > 10 * n:
        t.fail(
            "cost",
            f"at most a few comparisons of a node with others; {10 * n:,} would do",
            f"{compared:,} comparisons",
            "`node in a_list` compares one entry after another. What finds a node at once?",
        )
    answer = drive(t, "long_order", ladder(50_000), name, given=given.format(50_000))
    check_long(t, answer, 50_000, root_first)


def check_long(t: Tester, answer: dict, n: int, root_first: bool) -> None:
    """Fail unless the order of a chain is its only topological order."""
    order = answer["found"]
    if not isinstance(order, list) or len(order) != n + 1:
        got = f"{len(order):,} nodes" if isinstance(order, list) else show(order)
        t.fail(
            "length",
            f"a list of {n + 1:,} nodes",
            got,
            "What is large here, and what does it change?",
        )
    if any((a < b) == root_first for a, b in pairwise(order)):
        t.fail(
            "early",
            "the order of the chain",
            "another one",
            "A chain has only one order. Where does yours change sides?",
        )
