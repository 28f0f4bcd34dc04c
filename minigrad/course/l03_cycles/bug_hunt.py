"""The bug hunt: an in-place operation that re-uses the node of its target."""

from __future__ import annotations

import math
from typing import Any

from minigrad.course.diagnosis import named_one, not_it
from minigrad.course.l03_cycles import lesson
from minigrad.course.l03_cycles.common import Web
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Mistake, Tester

recurrent = lesson.exercise(
    "recurrent",
    difficulty=3,
    minutes=20,
    returns="the Number h after all steps",
    hints=(
        "explain_cycle(find_cycle(h.node)) after one step names all who take part. In a recorded "
        "graph an input is older than its consumer. Between which two is it the other way?",
        "Each operation makes a new Node for its result, in place or not: the value is replaced, "
        "the history is not. Which of the four methods makes none?",
        "store_ writes its inputs into the node that `times` has as its input already. It needs a "
        "node of its own, whose input is other.node, as tanh_ has one.",
    ),
)
OPS = ("mul", "add", "tanh", "store")
STEP = 1e-6
STEPS = "How many steps are asked for, how many run, and what does each of them compute?"


@recurrent.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the operation that ties the cycle."""
    start = "Run one step, and let explain_cycle(find_cycle(h.node)) say who takes part."
    op = named_one(t, "op", OPS, start)
    if op != "store":
        not_it(
            t,
            "the operation that writes into a node that others have as their input",
            f"{op}, which makes a new node for its result",
            "All four are on the cycle. For which of them is `self.node` the same one afterwards?",
        )


@recurrent.check(points=3)
def repair(t: Tester) -> None:
    """The graph has no cycle, and its gradients are those of the network."""
    start, factor = (float(v) for v in t.fixed.choice([0.5, 1.5, 2.0, 3.0], 2, replace=False))
    given = f"h = Number({start:g}); w = Number({factor:g}); u = h.times(w); h.store_(u)"
    answer = t.drive("store", start, factor, given=given)
    t.close(answer["value"], start * factor, attempt="store_ takes over the value.", what="h.value")
    gradients = backward(t, answer)
    if answer["ops"][0] != "leaf":
        say = "Others hold that Node. Is h.node after store_ a Node of its own?"
        t.fail("renamed", "h's first node a leaf, as it was", f"a {answer['ops'][0]} now", say)
    if answer["of_u"] != "mul":
        say = "u is still what mul made of h and w. Does store_ make a node, or rename one?"
        t.fail("renamed", "a mul as the node of u", a_kind(answer["of_u"]), say)
    attempt = "The gradient goes to each input of the node that store_ records. Which are they?"
    check_gradient(t, answer, gradients[0], factor, "h at the start", attempt)
    check_gradient(t, answer, gradients[1], start, "w", attempt)
    if answer["value_of_u"] != start * factor:
        say = "h takes over the value of u. What does store_ write into the other Number?"
        t.fail("changed_input", f"u.value = {start * factor:g}", show(answer["value_of_u"]), say)
    known = {3: (0.0, 0.9, 0.0), 4: (0.5, 0.9, 0.0)}  # an unchanged value; added zeros
    for steps in (1, 2, 5, 0, *known):
        numbers = t.fixed.choice([0.3, 0.5, 0.7, 0.9, 1.1], 3, replace=False)
        h, w, x = (float(v) for v in known.get(steps, numbers))
        given = f"recurrent(Number({h:g}), Number({w:g}), Number({x:g}), {steps})"
        answer = t.drive("run", h, w, x, steps, given=given)
        t.close(answer["value"], network([h, w, x], steps), attempt=STEPS, what="h.value")
        if not answer["same"]:
            say = "The state is changed in place, and returned. Which Number is it that you return?"
            t.fail("another_number", "h itself", "another Number", say)
        if not steps:
            continue
        gradients = backward(t, answer)
        counts = [answer["ops"].count(op) for op in OPS[:3]]
        if any(counts) and counts != [steps] * 3:
            say = "A step records a node of each kind, whatever its numbers are. Does yours?"
            wanted = f"a mul, an add and a tanh for each step: {[steps] * 3}"
            t.fail("left_out", wanted, show(counts), say)
        for k, name in enumerate(("h at the start", "w", "x")):
            more, less = [h, w, x], [h, w, x]
            more[k] += STEP
            less[k] -= STEP
            true = (network(more, steps) - network(less, steps)) / (2 * STEP)
            check_gradient(t, answer, gradients[k], true, name, attempt)
    check_recorded(t)


def check_recorded(t: Tester) -> None:
    """Fail unless store_ recorded a new node, with the line of its call."""
    for factor in (3, 1):  # the second call stores the value that h already has
        given = f"h = Number(2); w = Number({factor}); u = h.times(w); h.store_(u)"
        answer = t.drive("store", 2.0, float(factor), given=given)
        root, lines = answer["root"], answer["lines"]
        if (op := answer["ops"][root]) != "store":
            say = "Each method records a Node for what it does. Whose node is this?"
            wanted = "h.node, a Node with the op store"
            t.fail("not_recorded", wanted, f"a Node with the op {op}", say)
        if answer["kind"] != "tuple":
            say = "The head of the file says of what kind the inputs of a Node are."
            t.fail("not_a_tuple", "h.node.inputs, a tuple", a_kind(answer["kind"]), say)
        if lines[root] != answer["line"]:
            say = "Errors show the line of each node. Where do the other methods get theirs from?"
            t.fail("line", f"{answer['line']}, the line of h.store_(u)", show(lines[root]), say)


def network(numbers: list[float], steps: int) -> float:
    """Return the state after some steps."""
    h, w, x = numbers
    for _ in range(steps):
        h = math.tanh(w * h + x)
    return h


def check_gradient(
    t: Tester, answer: dict, got: float, true: float, name: str, attempt: str
) -> None:
    """Compare a gradient along the recorded graph with differences."""
    history = "The walk from h does not come to it. What is the input of the stored value?"
    t.close(
        got,
        true,
        rtol=1e-5,
        atol=1e-8,
        attempt=attempt,
        mistakes=[Mistake("cut", 0.0, history)],
        what=f"gradient of {name}",
    )


def backward(t: Tester, answer: dict[str, Any]) -> list[float]:
    """Return every row's gradient; fail if the graph has a cycle."""
    ops, inputs, saved = answer["ops"], answer["inputs"], answer["saved"]
    graph = Web(ops, inputs, answer["root"])
    if cycle := graph.cycle():
        t.fail(
            "still_cyclic",
            "a graph in which no node depends on itself",
            " -> ".join(ops[k] for k in cycle),
            "Which method changes a node that exists already, instead of making one?",
        )
    grads = [0.0] * len(ops)
    grads[graph.root] = 1.0
    for k in consumers_first(graph):
        sent = sends(t, ops[k], saved[k], grads[k], inputs[k])
        for i, g in zip(inputs[k], sent, strict=False):
            if i is not None:
                grads[i] += g
    return grads


def sends(t: Tester, op: str, saved: list[float], dy: float, inputs: list) -> list[float]:
    """Return the gradients that a node of this op sends to its inputs."""
    if op == "mul" and len(saved) == 2:
        return [dy * saved[1], dy * saved[0]]
    if op == "tanh" and len(saved) == 1:
        return [dy * (1 - saved[0] ** 2)]
    if op not in ("add", "store", "leaf") or (op == "leaf" and inputs):
        say = "A leaf has no inputs; a mul keeps two numbers, a tanh one. Change only the culprit."
        t.fail("strange_node", "nodes as their methods make them", f"{op} with {show(saved)}", say)
    return [dy] * len(inputs)


def consumers_first(graph: Web) -> list[int]:
    """Return the nodes' places, each before its inputs."""
    left, order = set(graph.reachable()), []
    while left:
        ready = {k for k in left if not any(k in graph.edges(n) for n in left)}
        order += sorted(ready)
        left -= ready
    return order
