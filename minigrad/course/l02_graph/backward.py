"""The backward pass: every rule once, when what arrives is complete."""

from __future__ import annotations

from minigrad.course.l02_graph import lesson
from minigrad.course.l02_graph.common import (
    Graph,
    by_node,
    drive,
    first_met,
    ladder,
    random_graph,
    twice,
)
from minigrad.grader.compare import agree
from minigrad.grader.message import counted
from minigrad.grader.tester import Mistake, Tester

backward = lesson.exercise(
    "backward",
    difficulty=3,
    minutes=20,
    returns="a dict with a gradient for each node",
    hints=(
        "The gradient of root with respect to itself is 1.0. Who can be next? A node all of whose "
        "consumers have sent their share. Which end of topo_order gives them in this order?",
        "Begin with 0.0 for every node and 1.0 for root. Walk along reversed(order); for a node "
        "that is no leaf, ask its rule once and hand out what it returns.",
        "sent = RULES[node.op](grads[node], *node.saved); for one, dy in zip(node.inputs, sent): "
        "add dy to what `one` has already, unless one is None.",
    ),
)

ADDED = "Two shares arrive at this node. What happens to the first when the second comes?"
TOO_EARLY = "When this node's rule ran, had all of its consumers sent their share?"
AGAIN = "A share was passed on more than once. How often may the rule of a node run?"
DROPPED = "The rule's own slope is right. What becomes of the dy that arrived at the node?"
ENDS = "From which end of the list must the gradient go? Who has 1.0 at the start?"


def in_order(graph: Graph, order: list[int], *, dropped=False, dedupe=False):
    """Return the gradients of a walk along an order; the flags are common mistakes."""
    grads = dict.fromkeys(graph.reachable(), 0.0)
    grads[graph.top] = 1.0
    for node in order:
        if graph.ops[node] == "leaf":
            continue
        sent = graph.sends(node, 1.0 if dropped else grads[node])
        for i, g in dict(sent).items() if dedupe else sent:
            grads[i] += g
    return grads


def keeps_one_share(graph: Graph, got: dict[int, object]) -> bool:
    """Return whether every node has only one of the shares that arrived, whichever it is."""
    shares = {node: [] for node in graph.reachable() if node != graph.top}
    for node in graph.reachable():
        value = got[node]
        if not isinstance(value, int | float):
            return False
        for i, g in graph.sends(node, value) if graph.ops[node] != "leaf" else ():
            shares[i].append(g)
    return all(any(_same(got[node], g) for g in arrived) for node, arrived in shares.items())


def each_path_again(graph: Graph) -> dict[int, float]:
    """Return the gradients of a recursion that adds to a node and passes the whole sum on again."""
    grads = dict.fromkeys(graph.reachable(), 0.0)
    grads[graph.top] = 1.0
    waiting, steps = [graph.top], 0
    while waiting and steps < 2000:
        node = waiting.pop(0)
        steps += 1
        if graph.ops[node] == "leaf":
            continue
        sent = graph.sends(node, grads[node])
        for i, g in sent:
            grads[i] += g
        waiting = [i for i, _ in sent] + waiting
    return grads


def wrong_walks(graph: Graph) -> list[tuple[str, dict[int, float], str]]:
    """Return (key, gradients, Try line) for common mistakes."""
    right = graph.reachable()[::-1]
    return [
        ("overwritten", in_order(graph, right, dedupe=True), ADDED),
        ("dropped_upstream", in_order(graph, right, dropped=True), DROPPED),
        ("too_early", in_order(graph, first_met(graph)), TOO_EARLY),
        ("too_early", in_order(graph, first_met(graph, queue=True)), TOO_EARLY),
        ("again", each_path_again(graph), AGAIN),
        ("wrong_end", in_order(graph, right[::-1]), ENDS),
    ]


def check_backward(t: Tester, graph: Graph) -> None:
    """Compare the gradient of every node with differences of the forward pass."""
    given = f"backward({graph.name(graph.top)}) of {graph.formulas()}"
    answer = drive(t, "gradients", graph, saved=True, given=given)
    got, again = twice(t, graph, answer, "the gradient")
    said = [
        (key, say)
        for key, grads, say in wrong_walks(graph)
        if all(_same(got[k], g) for k, g in grads.items())
    ]
    if keeps_one_share(graph, got):
        said.append(("overwritten", ADDED))
    for node in graph.reachable()[::-1]:
        t.close(
            got[node],
            graph.slope(node),
            rtol=1e-6,
            atol=1e-7,
            attempt=look_at(graph, node, got[node]),
            mistakes=[Mistake(key, got[node], say) for key, say in said],
            what=f"gradient of {graph.name(node)}",
        )
        t.close(
            again[node],
            graph.slope(node),
            rtol=1e-6,
            atol=1e-7,
            attempt="The first call was right. What of it is still there when the second begins?",
            what=f"gradient of {graph.name(node)}, when called again",
            key="kept",
        )


def look_at(graph: Graph, node: int, got: object) -> str:
    """Return the Try line for a node's wrong gradient that fits no known mistake."""
    if node == graph.top:
        return "How much does the root change if the root changes by 1?"
    consumers = [k for k in graph.reachable() if node in graph.edges(k)]
    whose = f"What does {graph.name(node)} get from {' and from '.join(map(graph.name, consumers))}"
    if got == 0:
        return f"{whose}? None of that has arrived. Was each of them asked?"
    if any(len(graph.edges(k)) < len(graph.inputs[k]) for k in consumers):
        return f"{whose}? A rule sends something to a constant as well: which share is whose?"
    return f"{whose}? Add that up by hand, with what had arrived there by then."


def _same(got: object, value: float) -> bool:
    return isinstance(got, int | float) and agree(got, value, rtol=1e-6, atol=1e-6)


def number(t: Tester) -> float:
    """Return a number for which no two mistakes give the same value."""
    return float(t.random.choice([1.3, 1.7, 2.0, 2.5, 3.0]))


@backward.check(points=1)
def without_sharing(t: Tester) -> None:
    """It is right where every node is used once."""
    a, b = number(t), number(t)
    for graph in (
        Graph(["leaf", "mul"], [[], [3.0, 0]], {0: a}),
        Graph(["leaf", "mul", "mul"], [[], [0, 2.0], [5.0, 1]], {0: b}),
        Graph(["leaf", "leaf", "mul", "tanh"], [[], [], [0, 1], [2]], {0: a / 5, 1: b / 5}),
        Graph(["leaf"], [[]], {0: a}),
    ):
        check_backward(t, graph)


@backward.check(points=2)
def with_sharing(t: Tester) -> None:
    """It is right where nodes are shared: x * x, a diamond, and 100 random graphs."""
    a = number(t)
    for graph in (
        Graph(["leaf", "mul"], [[], [0, 0]], {0: a}),
        Graph(["leaf", "mul", "add"], [[], [3.0, 0], [1, 0]], {0: a}),
        Graph(["leaf", "mul", "add", "mul"], [[], [0, 0], [1, 1], [5.0, 2]], {0: a}),
        Graph(["leaf", "mul", "add", "mul"], [[], [0, 0], [3.0, 1], [1, 2]], {0: a}),
        Graph(["leaf", "tanh", "mul", "add"], [[], [0], [1, 0.0], [2, 2]], {0: a}),  # zeros arrive
    ):
        check_backward(t, graph)
    for n in sorted(int(n) for n in t.fixed.integers(3, 12, 100)):
        check_backward(t, random_graph(t, n))


@backward.check(points=1)
def each_rule_once(t: Tester) -> None:
    """It calls the rule of every node once, for y = y + y over and over, and for constants."""
    small = Graph(["leaf", "mul", "add"], [[], [2.0, 3.0], [1, 0]], {0: number(t)})
    zero = Graph(["leaf", "tanh", "mul", "add"], [[], [0], [1, 0.0], [2, 0]], {0: 0.5})
    for graph in (ladder(10), ladder(200), small, zero):
        n = sum(op != "leaf" for op in graph.ops)
        given = f"backward(y) after y = leaf(1), and {n} times y = y + y"
        if graph in (small, zero):
            given = f"backward({graph.name(graph.top)}) of {graph.formulas()}"
        answer = drive(t, "rule_calls", graph, saved=True, given=given)
        calls = answer["calls"]
        if calls == 0:
            t.fail(
                "own_rules",
                f"{n} calls of rules in RULES",
                "none",
                "Ask RULES[node.op] for what a node sends, instead of writing its rule again.",
            )
        if calls == 2 * n:
            t.fail(
                "per_input",
                f"{n} calls of a rule: one for each node that is no leaf",
                f"{calls} calls: two for each node",
                "One call of a rule gives what *all* inputs get. Is it called again for each?",
            )
        if calls < n:
            t.fail(
                "left_out",
                f"{n} calls of a rule: one for each node that is no leaf",
                counted(calls, "call"),
                "Which node was left out? One whose inputs are all None, or one where 0 arrives?",
            )
        if calls != n:
            t.fail(
                "cost",
                f"{n} calls of a rule: one for each node that is no leaf",
                counted(calls, "call"),
                "How often does the walk come to one and the same node?",
            )
        got = by_node(t, graph, answer["grads"], "the gradient")
        slope = 1.0 if graph in (small, zero) else 2.0**n
        t.close(got[0], slope, attempt="Each y = y + y doubles.", what="gradient of the leaf")
