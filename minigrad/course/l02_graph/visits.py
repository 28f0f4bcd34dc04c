"""How often a walk visits each node: as often as paths lead to it, or once."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.l02_graph import lesson
from minigrad.course.l02_graph.common import Graph, drive, given_graph, ladder, random_graph, twice
from minigrad.grader.tester import Tester

count_visits = lesson.exercise(
    "count_visits",
    difficulty=3,
    minutes=15,
    returns="a dict with a number of visits for each node",
    hints=(
        "Each visit of a consumer causes one visit of each of its inputs. If c is visited 8 times, "
        "and is the only consumer of b, how often is b visited?",
        "A node's visits are the sum, over its consumers, of theirs. That is a walk along the "
        "order which adds: you have written one just like it.",
        "visits[root] = 1; for node in reversed(order): for one in node.inputs: "
        "add visits[node] to visits[one]. It is backward with every slope 1.",
    ),
)


SMALL = (
    given_graph("leaf tanh", [], [0]),
    given_graph("leaf", []),
    given_graph("leaf tanh add", [], [0], [1, 0]),
    given_graph("leaf mul", [], [0, 0]),
    given_graph("leaf mul add", [], [2.0, 3.0], [1, 0]),
    ladder(2),
    given_graph("leaf mul add tanh mul", [], [0, 3.0], [1, 0], [2], [2, 3]),
    ladder(5),
    given_graph("leaf leaf where", [], [], [0, 1, 0]),
)
WALK = "Write down every call of visit by hand for this graph: who calls visit of this node?"


def naive(graph: Graph, *, per_consumer=False, distinct=False, root=1) -> dict[int, int]:
    """Return the visits per node; the flags are common mistakes."""
    visits = dict.fromkeys(graph.reachable(), 0)
    visits[graph.top] = root
    for node in graph.reachable()[::-1]:
        edges = set(graph.edges(node)) if distinct else graph.edges(node)
        for i in edges:
            visits[i] += 1 if per_consumer else visits[node]
    return visits


def wrong_counts(graph: Graph) -> list[tuple[str, dict[int, int], str]]:
    """Return (key, visits, Try line) for common mistakes."""
    arrive = "One visit of a consumer causes one visit here. And if the consumer has four?"
    again = "The same node may be an input twice; visit goes there twice then."
    first = "visit(root) is a visit too: who has one at the start?"
    once = dict.fromkeys(graph.reachable(), 1)
    return [
        ("per_consumer", naive(graph, per_consumer=True), arrive),
        ("distinct", naive(graph, distinct=True), again),
        ("distinct", naive(graph, distinct=True, per_consumer=True), again),
        ("as_sorted", once, "That is what the sorted walk does. The naive one keeps no list."),
        ("no_root", {**naive(graph), graph.top: 0}, first),
        ("no_root", naive(graph, root=0), first),
    ]


def check_visits(t: Tester, graph: Graph, algorithm: str, right: dict[int, int], text: str) -> None:
    """Compare the number of visits of every node."""
    given = f'count_visits({graph.name(graph.top)}, "{algorithm}") of {text or graph.shape()}'
    answer = drive(t, "visits", graph, algorithm, given=given)
    got, again = twice(t, graph, answer, "the visits")
    if _agree(got, right):
        if not _agree(again, right):
            t.fail(
                "kept",
                "the same visits when it is called again",
                "others",
                "The first call was right. What of it is still there when the second begins?",
            )
        return
    wrong = next(k for k in graph.reachable()[::-1] if not _agree(got, {k: right[k]}))
    expected = f"{right[wrong]} {'visit' if right[wrong] == 1 else 'visits'} of {graph.name(wrong)}"
    if not _whole(got[wrong]):
        whole = "A number of visits is an int: 1, and not 1.0."
        t.fail("float", f"{expected}, an int", repr(got[wrong])[:40], whole)
    if abs(int(got[wrong]) - right[wrong]) < 1e-9 * right[wrong]:
        whole = "Its first 16 digits are right: a float has no more. Which step makes one?"
        t.fail("float", expected, str(got[wrong]), whole)
    if algorithm == "naive":
        for key, counts, say in wrong_counts(graph):
            if _agree(got, counts):
                t.fail(key, expected, str(got[wrong]), say)
    elif _agree(got, naive(graph)):
        say = "That is the naive walk. How often does a node stand in the list of topo_order?"
        t.fail("swapped", expected, str(got[wrong]), say)
    t.fail("value", expected, str(got[wrong]), WALK)


def _agree(got: dict[int, Any], counts: dict[int, int]) -> bool:
    return all(_whole(got[k]) and int(got[k]) == n for k, n in counts.items())


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@count_visits.check(points=1)
def naive_walk(t: Tester) -> None:
    """It is right about the naive walk, in small graphs and in random ones."""
    for graph in (*SMALL, *(random_graph(t, n) for n in (4, 6, 8, 9, 10))):
        check_visits(t, graph, "naive", naive(graph), "")


@count_visits.check(points=1)
def sorted_walk(t: Tester) -> None:
    """It is right about the sorted walk."""
    for graph in (*SMALL, random_graph(t, 7)):
        check_visits(t, graph, "sorted", dict.fromkeys(graph.reachable(), 1), "")


@count_visits.check(points=1)
def without_walking(t: Tester) -> None:
    """It counts 2**200 visits without making them."""
    text = "y = leaf, and {} times y = y + y"
    given = f'count_visits(y, "naive") after {text.format(12)}'
    looks = drive(t, "looks", ladder(12), given=given)
    if looks > 10 * 13:
        t.fail(
            "cost",
            f"a few looks at the inputs of each of 13 nodes, at most {10 * 13} together",
            f"{looks} looks",
            "The walk was really made. Can the visits of a node be computed from others'?",
        )
    graph = ladder(200)
    check_visits(t, graph, "naive", naive(graph), text.format(200) + " (a is the leaf)")
    inputs = [[], *([k + again, k] for k in range(0, 80, 2) for again in (0, 1))]
    graph = Graph(["leaf"] + ["add"] * 80, list(inputs), {0: 1.0})
    text = "y = leaf, and 40 times t = y + y, y = t + y"
    check_visits(t, graph, "naive", naive(graph), text)  # 3 ** 40, which float64 cannot represent
    n = 5000  # too deep for one recursive call per node
    graph = Graph(["leaf"] + ["tanh"] * n, [[], *([k] for k in range(n))], {0: 1.0})
    check_visits(t, graph, "naive", naive(graph), f"y = leaf, and {n:,} times y = tanh(y)")


@count_visits.check(points=1, only_with=("naive_walk", "sorted_walk"))
def other_algorithms(t: Tester) -> None:
    """It raises ValueError for an algorithm that does not exist."""
    for name in ("random", "Naive", "topological", "naive ", "n", "sort", "", None):
        for graph in (given_graph("leaf tanh", [], [0]), given_graph("leaf", [])):
            check_refused(t, graph, name)


def check_refused(t: Tester, graph: Graph, name: str | None) -> None:
    """Fail unless a ValueError is raised for this algorithm."""
    given = f"count_visits({graph.name(graph.top)}, {name!r}) of {graph.shape()}"
    raised = drive(t, "refused", graph, name, given=given)
    kinds = raised.get("raised", []) if isinstance(raised, dict) else []
    if not kinds:
        t.fail(
            "did_not_raise",
            "a ValueError",
            "no error",
            "What should happen for an algorithm that does not exist?",
        )
    if "NotImplementedError" in kinds:
        check_visits(t, graph, "naive", naive(graph), "")
    if "ValueError" not in kinds:
        t.fail(
            "wrong_error",
            "a ValueError",
            f"{kinds[0]}: {raised['text']}",
            "Which exception says that an argument has a value that makes no sense?",
        )
