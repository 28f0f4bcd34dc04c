"""find_cycle: three colours, a path that is verified edge by edge, and no edge looked at thrice."""

from __future__ import annotations

from typing import Any

from minigrad.course.l03_cycles import lesson
from minigrad.course.l03_cycles.common import (
    Web,
    check_path,
    drive,
    long_web,
    n_edges,
    random_web,
    web,
    wide_web,
)
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

find_cycle = lesson.exercise(
    "find_cycle",
    difficulty=4,
    minutes=30,
    returns="None, or a list of Nodes [a, ..., a]",
    hints=(
        "It is the walk of topo_order with one more question. When you meet a node again, it is "
        "either finished (all behind it was searched), or still open: on the way to where you are.",
        "Keep the way from root to here in a list: nodes enter it when they are first met and "
        "leave it when they are finished. An input that stands in this list closes a cycle.",
        "path, iterators, finished: for the next input of path[-1]: skip None and finished ones; "
        "if it is on the path, return path from there on, plus itself; if new, push it.",
    ),
)

NONE = (
    web("leaf tanh exp", [], [0], [1]),
    web("leaf tanh exp mul", [], [0], [0], [1, 2]),
    web("leaf mul", [], [0, 0]),
    web("leaf tanh add exp mul", [], [0], [1, 0], [1], [2, 3]),
    web("leaf mul add", [], [0, None], [1, 0]),
    web("leaf tanh mul exp", [], [0], [1, 3], [2], root=1),
    web("leaf where where", [], [None, 0, None, 0], [0, 1, 1, 0]),
)
SOME = (
    web("tanh", [0]),
    web("mul tanh", [None, 1], [0]),
    web("leaf mul tanh", [], [0, 2], [1]),
    web("mul tanh exp", [None, 1], [0], [1]),
    web("leaf tanh mul exp add", [], [0], [0, 4], [2], [1, 3]),
    web("leaf mul tanh mul exp", [], [0, 2], [1], [0, 3], [2]),
    web("mul tanh add exp", [1, None], [0], [3, 1], [2]),
    web("leaf where tanh", [], [0, None, 2, 0], [1]),
    web("leaf where where exp", [], [0, 0, 1], [0, None, 0, 1], [2]),
)


# A node that is pushed five times before it is finished once
FAN = web("leaf where sum", [], [0] * 5, [1] * 5)
# The same three nodes, without a cycle and with one: a graph changes from call to call.
CHAIN, RING = web("leaf tanh exp", [], [0], [1]), web("leaf tanh exp", [2], [0], [1])
CHANGED = "The graph is another one since the last call. What of that call do you still go by?"


def ask(t: Tester, graph: Web, before: Web | None = None) -> Any:
    """Return the result of find_cycle for a graph; with `before`, call it first on that."""
    given = f"find_cycle({graph.name(graph.root)}) of {graph.shape()}"
    if before:
        given += f"; the call before, on the same nodes, was for {before.shape()}"
    answer = drive(t, "find", graph, before, given=given)
    if not answer["unchanged"]:
        got = "another op, line or inputs, or something new, in a node"
        t.fail("changed", "nodes left as they were", got, "Look only.")
    if not answer["stays"]:
        got = "a later call wrote into the list that this one had returned"
        t.fail("changed_result", "a list that stays as it was returned", got, "Make a new list.")
    return answer["found"]


def check_none(t: Tester, graph: Web) -> None:
    """Fail unless find_cycle finds none."""
    cycle = ask(t, graph)
    if cycle is None:
        return
    of_nodes = isinstance(cycle, list) and all(isinstance(k, int) for k in cycle)
    got = graph.path(cycle) if of_nodes else show(cycle)
    looked_at = [i for n in graph.reachable() for i in graph.edges(n)]
    shared = [k for k in cycle if looked_at.count(k) > 1] if of_nodes else []
    if shared:
        say = f"Two ways lead to {graph.name(shared[0])}. Was it still open when you met it again?"
        t.fail("two_ways", "None: no node depends on itself", got, say)
    if not of_nodes or not cycle:
        say = "None where there is no cycle, and a list of Nodes where there is one: nothing else."
        t.fail("type", "None", got, say)
    say = "From which node of yours can one come back to itself, along inputs?"
    t.fail("false_alarm", "None: no node that the root depends on depends on itself", got, say)


def check_some(t: Tester, graph: Web) -> None:
    """Fail unless find_cycle finds a cycle."""
    cycle = ask(t, graph)
    if cycle is None:
        example = graph.cycle() or []
        say = "Follow the inputs by hand. On the way, when is a node met that is still open?"
        if len(example) == 2:
            say = "A node may be its own input. When does your search compare a node with itself?"
        t.fail("overlooked", f"a cycle: {graph.path(example)}", "None", say)
    check_path(t, graph, cycle)


@find_cycle.check(points=1)
def no_cycle(t: Tester) -> None:
    """It returns None for chains, diamonds, and cycles that root does not depend on."""
    for graph in NONE:
        check_none(t, graph)
    for n in sorted(int(n) for n in t.fixed.integers(3, 11, 60)):
        check_none(t, random_web(t, n, cyclic=False))
    check_some(t, SOME[1])  # so that always returning None earns nothing
    if (cycle := ask(t, CHAIN, before=RING)) is not None:
        t.fail("kept", "None: no node depends on itself", show(cycle), CHANGED)


@find_cycle.check(points=2)
def some_cycle(t: Tester) -> None:
    """It returns a cycle, verified edge by edge: a self-loop, two nodes, longer ones, several."""
    for graph in SOME:
        check_some(t, graph)
    for n in sorted(int(n) for n in t.fixed.integers(3, 11, 60)):
        check_some(t, random_web(t, n, cyclic=True))
    cycle = ask(t, RING, before=CHAIN)
    if cycle is None:
        t.fail("kept", f"a cycle: {RING.path(RING.cycle() or [])}", "None", CHANGED)
    check_path(t, RING, cycle)


@find_cycle.check(points=1)
def deep_and_wide(t: Tester) -> None:
    """It looks at each edge at most twice, and works 50,000 nodes deep."""
    for how, n, back in (
        ("find", 12, None),
        ("find", 300, 200),
        ("wide", 40, None),
        ("find_long", 5_000, None),  # too deep for recursion, and short enough for slow searches
        ("find_compared", 300, None),
        ("find_long", 50_000, None),
        ("find_long", 50_000, 1),
    ):
        given = f"find_cycle(y) after y = leaf, and {n:,} times y = y + y"
        if back is not None:
            given += f"; then the input of node {back:,} becomes the last node"
        graph = long_web(n, back)
        if how == "wide":
            how, graph, given = "find", wide_web(n), given + WIDE
        answer = drive(t, how, graph, given=given)
        cycle = answer["found"]
        check_looks(t, answer["looks"], n_edges(graph))
        most = 40 * n  # `in` over a list of all nodes compares n * n / 2 times
        if answer.get("compared", 0) > most:
            say = "`in` compares with the entries of a list one by one. What answers at once?"
            wanted = f"at most {most:,} comparisons of one node with another"
            t.fail("slow_in", wanted, f"{answer['compared']:,} comparisons", say)
        if back is None and cycle is not None:
            say = "No way leads from a node back to itself here. What does yours take for one?"
            t.fail("false_alarm", "None", show(cycle)[:80], say)
        if back is None:
            continue
        if not isinstance(cycle, list):
            say = "The way from the last node back to itself is long. Where does yours leave it?"
            t.fail("overlooked", "the cycle", show(cycle), say)
        ring = [back, *range(n, back - 1, -1)]
        start = cycle.index(back) if back in cycle else 0
        turned = [*cycle[start:], *cycle[1 : start + 1]] if start else cycle
        if turned != ring:
            say = "A cycle goes from node to node, each once. Which step forgets the way?"
            got = f"{len(cycle):,} entries"
            t.fail("value", f"the cycle, a list of {len(ring):,} entries", got, say)
    given = f"find_cycle({FAN.name(FAN.root)}) of {FAN.shape()}"
    answer = drive(t, "find", FAN, given=given)
    check_looks(t, answer["looks"], 10)


WIDE = "; then y = sum of all of these, from the leaf on"
AGAIN = "A node that is finished once need not be searched again. Does yours remember it?"


def check_looks(t: Tester, looks: int, edges: int, attempt: str = AGAIN) -> None:
    """Fail if edges were looked at more than twice."""
    if looks > 2 * edges:
        t.fail(
            "cost",
            f"at most {2 * edges:,} looks at an edge: two for each of {edges:,}",
            f"{looks:,} looks",
            attempt,
        )
