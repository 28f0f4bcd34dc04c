"""assert_dag: the right error, with the path, and no error where there is no cycle."""

from __future__ import annotations

from minigrad.course.l03_cycles import lesson
from minigrad.course.l03_cycles.common import (
    Web,
    check_path,
    drive,
    long_web,
    n_edges,
    random_web,
    wide_web,
)
from minigrad.course.l03_cycles.finding import (
    CHAIN,
    CHANGED,
    FAN,
    NONE,
    RING,
    SOME,
    WIDE,
    check_looks,
)
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

assert_dag = lesson.exercise(
    "assert_dag",
    difficulty=2,
    minutes=5,
    returns="None, or a GraphCycleError",
    hints=(
        "find_cycle does the work. What does it return where there is no cycle?",
        "Only a path that is not None is worth an error; GraphCycleError takes the path.",
        "path = find_cycle(root); if it is not None: raise GraphCycleError(path).",
    ),
)
SEARCHED = "How often is the whole graph searched?"


def check_assert(t: Tester, graph: Web, *, cyclic: bool, before: Web | None = None) -> None:
    """Check assert_dag on one graph; with `before`, call it first on that, over the same nodes."""
    shuffled = t.random.spawn(1)[0].permutation(len(graph.ops))  # lines reveal no order either
    lines = [f"model.py:{k + 3}" for k in shuffled]
    given = f"assert_dag({graph.name(graph.root)}) of {graph.shape()}"
    if before:
        given += f"; the call before, on the same nodes, was for {before.shape()}"
    answer = drive(t, "asserted", graph, before, lines, given=given)
    raised = answer["raised"]
    if before and (raised is not None) != cyclic:
        wanted = "a GraphCycleError" if cyclic else "no error"
        t.fail("kept", wanted, f"{raised['kinds'][0]}" if raised else "no error", CHANGED)
    check_quiet(t, answer)
    if not cyclic:
        if raised is not None:
            got = f"{raised['kinds'][0]}: {raised['text']}"
            say = "Which node of this graph depends on itself? Two ways to one node are no cycle."
            if not raised["is_it"]:
                say = "There is no cycle here, so nothing should be raised, nor break."
            t.fail("false_alarm", "no error: the root depends on no cycle", got, say)
        if answer["returned"] is not None:
            say = "It raises, or it returns nothing: nobody looks at an answer."
            t.fail("returned", "None", answer["returned"], say)
        return
    example = graph.cycle() or []
    wanted = f"a GraphCycleError with a path such as {graph.path(example)}"
    if raised is None:
        say = "An assertion does not answer with a value. What must it do when it fails?"
        if answer["returned"] is None:
            say = "Follow the inputs from the root by hand. Which node do you come back to?"
        t.fail("did_not_raise", wanted, "no error", say)
    if not raised["is_it"]:
        kind = raised["kinds"][0]
        say = "Callers catch GraphCycleError by its name, and look at its path."
        if kind in ("AttributeError", "TypeError"):
            say = "GraphCycleError is made from the path itself: from the list that was found."
        if kind == "RecursionError":
            say = "That is Python giving up on a search that does not end. Search for the cycle."
        t.fail("wrong_error", wanted, f"{kind}: {raised['text']}", say)
    if raised["path"] is None:
        t.fail("no_path", wanted, "an error whose path is None", "What does the error carry?")
    check_path(t, graph, raised["path"], what="in the error's path, ")
    names = [f"{graph.ops[k]} ({lines[k]})" for k in set(raised["path"])]
    if any(name not in raised["text"] for name in names):
        t.fail(
            "text",
            f"an error that names {', '.join(names)}",
            show(raised["text"]),
            "The class GraphCycleError makes its text from the path. Was it changed?",
        )


def check_quiet(t: Tester, answer: dict) -> None:
    """Fail if assert_dag printed something or wrote to a node."""
    if answer["printed"]:
        say = "Whoever catches the error decides who reads it. What else than raise does it do?"
        t.fail("printed", "nothing but the error", f"printed: {show(answer['printed'])}", say)
    if not answer["unchanged"]:
        say = (
            "Callers go on with this graph, or look at it to mend it. What else than raise is done?"
        )
        t.fail("changed", "nodes left as they were", "a node that was written to", say)


@assert_dag.check(points=1)
def raises(t: Tester) -> None:
    """It raises GraphCycleError, with the path, where there is a cycle."""
    for graph in SOME:
        check_assert(t, graph, cyclic=True)
    for n in sorted(int(n) for n in t.fixed.integers(3, 11, 20)):
        check_assert(t, random_web(t, n, cyclic=True), cyclic=True)
    check_assert(t, RING, cyclic=True, before=CHAIN)


@assert_dag.check(points=1)
def does_not_raise(t: Tester) -> None:
    """It raises nothing for diamonds, and for cycles that root does not depend on."""
    check_assert(t, SOME[1], cyclic=True)  # so that never raising earns nothing
    for graph in NONE:
        check_assert(t, graph, cyclic=False)
    for n in sorted(int(n) for n in t.fixed.integers(3, 11, 20)):
        check_assert(t, random_web(t, n, cyclic=False), cyclic=False)
    check_assert(t, CHAIN, cyclic=False, before=RING)


@assert_dag.check(points=1)
def each_edge(t: Tester) -> None:
    """It looks at each edge at most twice, and works 50,000 nodes deep."""
    for how, n, back in (
        ("asserted", 10, None),
        ("asserted", 10, 1),
        ("wide", 40, None),
        ("assert_long", 50_000, None),
    ):
        given = f"assert_dag(y) after y = leaf, and {n:,} times y = y + y"
        if back is not None:
            given += "; then the first y gets the last one as its input"
        graph = long_web(n, back)
        if how == "wide":
            how, graph, given = "asserted", wide_web(n), given + WIDE
        answer = drive(t, how, graph, given=given)
        raised = answer["raised"]
        kind = "no error" if raised is None else f"{raised['kinds'][0]}: {raised['text'][:80]}"
        if (raised is not None) != (back is not None) or (raised and not raised["is_it"]):
            wanted = "no error" if back is None else "a GraphCycleError"
            t.fail("deep", wanted, kind, "What is large here, and who cannot cope with it?")
        check_looks(t, answer["looks"], n_edges(graph), SEARCHED)
    for n in (1, 7):  # in a ring a search sees all edges before it can tell
        ring = Web(["tanh"] * n, [[(k + 1) % n] for k in range(n)], 0)
        given = f"assert_dag({ring.name(0)}) of {ring.shape()}"
        answer = drive(t, "asserted", ring, given=given)
        check_looks(t, answer["looks"], n, SEARCHED)
    given = f"assert_dag({FAN.name(FAN.root)}) of {FAN.shape()}"
    answer = drive(t, "asserted", FAN, given=given)
    check_looks(t, answer["looks"], 10, SEARCHED)
