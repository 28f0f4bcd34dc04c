"""The GradManager: what it computes, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.course.l04_accumulation import lesson
from minigrad.course.l04_accumulation.common import arrays, program, text
from minigrad.grader.message import counted, show
from minigrad.grader.samples import numbers
from minigrad.grader.tester import Mistake, Tester

grad_manager = lesson.exercise(
    "GradManager",
    difficulty=4,
    minutes=30,
    returns="no error, and gradients in .grad of the attached boxes",
    hints=(
        "The tape is in the order in which things were computed, so its reverse is an order in "
        "which every node has got all its gradients before it hands them on. No sorting.",
        "backward: grads = {loss.node: ones}; for each node of the reversed tape that is in grads, "
        "ask its rule and accumulate into its inputs. Then look at the attached boxes only. "
        "Everything inside try, and self.release() in finally.",
        "record: raise RuntimeError if self.tape is not None; self.tape = []; TAPES.append(it). "
        "release: stop(self.tape), saved = () for its nodes, self.tape = None. "
        "attach: append each box that is not in self.attached.",
    ),
)
BEGIN = ("gm = GradManager()",)
BY_HAND = (
    "Write the tape down, oldest node first; go through it from its end, with what is kept by then."
)


def boxes(**values: np.ndarray) -> str:
    """Return a program's line that makes boxes."""
    made = ", ".join(f"Box({value.tolist()})" for value in values.values())
    return f"{', '.join(values)} = {made}"


def grads(*names: str) -> list[str]:
    """Return the expressions for the gradients of boxes."""
    return [f"{name}.grad" for name in names]


def check_grad(
    t: Tester, name: str, got: Any, right: np.ndarray, mistakes: Sequence[Mistake] = ()
) -> None:
    """Fail unless a box has this gradient."""
    if got is None:
        t.fail(
            "no_grad",
            f"{name}.grad = {show(right)}",
            f"{name}.grad = None",
            "Go back along the tape: which node has a gradient first, and to which does it send? "
            f"Is {name}.node reached, and {name} attached?",
        )
    t.close(got, right, rtol=1e-12, attempt=BY_HAND, mistakes=mistakes, what=f"{name}.grad")


def untouched(t: Tester, name: str, got: Any, key: str, attempt: str) -> None:
    """Fail unless a box has no gradient."""
    if got is not None:
        t.fail(key, f"{name}.grad = None", f"{name}.grad = {show(got)}", attempt)


def check_tape(t: Tester, lines: list[str]) -> None:
    """Fail unless the tape holds the two nodes that a program made."""
    kept = "gm.tape if gm.tape is None else [getattr(node, 'op', '?') for node in gm.tape]"
    ops = t.drive("run", lines, [kept], given="; ".join(lines))[0]
    if ops != ["mul", "total"]:
        t.fail(
            "not_recorded",
            "gm.tape with two nodes, made by mul and total",
            f"gm.tape = {show(ops)}"
            if ops is None
            else f"gm.tape with {counted(len(ops), 'node')}",
            "Operations write to each tape in TAPES. Is this very list among them?",
        )


@grad_manager.check(points=2)
def gradients(t: Tester) -> None:
    """The gradients of attached boxes are right, also of boxes used several times."""
    a, b = arrays(t, 2)
    lines, given = program(
        *BEGIN,
        boxes(a=a, b=b),
        "gm.attach([a, b])",
        "gm.record()",
        "loss = total(mul(a, b))",
        "gm.backward(loss)",
    )
    check_tape(t, lines[:-1])
    of_a, of_b = t.drive("run", lines, ["a.grad", "b.grad"], given=given)
    check_grad(t, "a", of_a, b, [Mistake("swapped", a, "Which gradient belongs to which input?")])
    check_grad(t, "b", of_b, a)
    lines, given = program(
        *BEGIN,
        boxes(a=a, b=b),
        "gm.attach([a, b])",
        "gm.record()",
        "c = mul(a, b)",
        "gm.backward(total(add(c, mul(mul(c, c), b))))",
    )
    of_a, of_b = t.drive("run", lines, ["a.grad", "b.grad"], given=given)
    c, dc = a * b, 1 + 2 * a * b * b
    late = "A node hands on what has arrived so far. Has everything arrived when it does?"
    check_grad(t, "a", of_a, dc * b, [Mistake("too_early", b, late)])
    check_grad(t, "b", of_b, dc * a + c * c, [Mistake("too_early", a + c * c, late)])
    for swap in ("add(z, q)", "add(q, z)"):
        lines, given = program(
            *BEGIN,
            boxes(a=a, b=b),
            "gm.attach([a, b])",
            "gm.record()",
            "q = mul(a, a)",
            "z = add(a, b)",
            f"gm.backward(total({swap}))",
        )
        for_both = t.drive("run", lines, ["a.grad", "b.grad"], given=given)
        check_grad(t, "a", for_both[0], 1 + 2 * a)
        one = "One array came for a and for b, and was added into. Whose array is it?"
        check_grad(t, "b", for_both[1], np.ones(2), [Mistake("shared", 1 + 2 * a, one)])
    a = numbers(t.random, (2, 1), low=0.5)
    lines, given = program(
        *BEGIN,
        boxes(a=a, b=a),
        "gm.attach([a])",
        "gm.record()",
        "c = mul(a, b)",
        "loss = total(c)",
        "gm.attach([b, c, loss])",
        "total(add(c, a))",
        "gm.backward(loss)",
    )
    of_a, of_b, of_c, of_loss = t.drive("run", lines, grads("a", "b", "c", "loss"), given=given)
    begins = "Whose gradient is asked for? That node gets the ones, wherever it is on the tape."
    check_grad(t, "a", of_a, a, [Mistake("from_the_end", a + 1, begins)])
    check_grad(t, "b", of_b, a)
    check_grad(t, "c", of_c, np.ones((2, 1)))
    check_grad(t, "loss", of_loss, np.ones(()))
    a = numbers(t.random, (1, 1))
    lines, given = program(
        *BEGIN, boxes(a=a), "gm.attach([a])", "gm.record()", "gm.backward(mul(a, a))"
    )
    check_grad(t, "a", t.drive("run", lines, ["a.grad"], given=given)[0], 2 * a)


@grad_manager.check(points=1)
def only_attached(t: Tester) -> None:
    """Only attached boxes get a gradient, and only by what the manager itself recorded."""
    a, b = arrays(t, 2)
    lines, given = program(
        *BEGIN,
        boxes(a=a, b=b),
        "gm.attach([a])",
        "gm.record()",
        "c = mul(a, b)",
        "mul(b, b)",
        "gm.backward(total(c))",
    )
    of_a, *others = t.drive("run", lines, ["a.grad", "b.grad", "c.grad"], given=given)
    for name, grad in zip("bc", others, strict=True):
        untouched(t, name, grad, "unattached", "Whom was this manager asked to differentiate?")
    check_grad(t, "a", of_a, b)
    lines, given = program(
        "gm, other = GradManager(), GradManager()",
        boxes(a=a),
        "other.record()",
        "c = mul(a, a)",
        "gm.attach([a, c])",
        "gm.record()",
        "gm.backward(total(mul(c, a)))",
    )
    of_a, of_c = t.drive("run", lines, grads("a", "c"), given=given)
    before = "c was computed before gm began to record. Is the node of c on gm.tape?"
    check_grad(t, "a", of_a, a * a, [Mistake("from_before", 3 * a * a, before)])
    check_grad(t, "c", of_c, a)


@grad_manager.check(points=1)
def adds_up(t: Tester) -> None:
    """A second backward pass adds to .grad; a box that is attached twice counts once."""
    a, b, c = arrays(t, 3)
    span = ("gm.record()", "gm.backward(total(mul(a, b)))")
    lines, given = program(*BEGIN, boxes(a=a, b=b), "gm.attach([a])", *span)
    if t.drive("run", lines, ["gm.tape is None"], given=given)[0] is not True:
        t.fail(
            "records_on",
            "gm.tape = None: the recording has ended",
            "a tape in gm.tape still",
            "backward also ends the recording, and what ends it sets the tape to None.",
        )
    more = ("gm.record()", "gm.backward(total(mul(a, add(b, b))))")
    lines, given = program(*BEGIN, boxes(a=a, b=b), "gm.attach([a])", *span, *more)
    of_a = t.drive("run", lines, ["a.grad"], given=given)[0]
    replaced = "The gradient of the first pass is gone. Who may throw it away?"
    check_grad(t, "a", of_a, 3 * b, [Mistake("overwrites", 2 * b, replaced)])
    span = ("gm.record()", "gm.backward(total(add(a, b)))")
    more = ("gm.record()", "gm.backward(total(add(add(a, b), add(a, b))))")
    lines, given = program(*BEGIN, boxes(a=a, b=b), "gm.attach([a, b])", *span, *more)
    for name, grad in zip("ab", t.drive("run", lines, grads("a", "b"), given=given), strict=True):
        overwritten = Mistake("overwrites", np.full(2, 2.0), replaced)
        check_grad(t, name, grad, np.full(2, 3.0), [overwritten])
    attach = ("mine = [b]", "gm.attach(mine)", "gm.attach([a, a])", "gm.attach([a])")
    span = ("gm.record()", "gm.backward(total(mul(a, b)))")
    lines, given = program(*BEGIN, boxes(a=a, b=c), *attach, *span)
    wanted = [*grads("a", "b"), "isinstance(gm.attached, list) and len(gm.attached)", "len(mine)"]
    of_a, of_b, n, n_mine = t.drive("run", lines, wanted, given=given)
    twice = "It was attached more than once and is still one box. What does attach ask first?"
    doubled = [Mistake("twice", factor * c, twice) for factor in (2, 3)]
    check_grad(t, "a", of_a, c, doubled)
    check_grad(t, "b", of_b, a)
    if n != 2:
        t.fail("twice", "two boxes in gm.attached, a list", f"{show(n)}", twice)
    if n_mine != 1:
        t.fail(
            "wrote_to_list",
            "the list that attach was given, left as it was",
            f"{show(n_mine)} boxes in it",
            "gm.attached is a list of the manager's own. Where does it come to be another's?",
        )


@grad_manager.check(points=1)
def keep_empty_grad(t: Tester) -> None:
    """Boxes that were not reached keep None, or get zeros where they are asked for."""
    a, b, c = numbers(t.random, (2,)), numbers(t.random, (2, 3)), numbers(t.random, ())
    for keep in (False, True):
        lines, given = program(
            f"gm = GradManager(keep_empty_grad={keep})",
            boxes(a=a, b=b, c=c, d=0 * a),
            f"c.grad = {text(c)}",
            "gm.attach([a, b, c, d])",
            "gm.record()",
            "mul(b, b)",
            "gm.backward(total(add(mul(a, a), mul(d, d))))",
        )
        of_a, of_b, of_c, of_d = t.drive("run", lines, grads("a", "b", "c", "d"), given=given)
        check_grad(t, "a", of_a, 2 * a)
        check_grad(t, "d", of_d, 0 * a)  # reached, and 0
        if not keep:
            untouched(t, "b", of_b, "empty_zeros", "Nobody asked for zeros here.")
        elif of_b is None:
            t.fail(
                "empty_none",
                "b.grad = zeros of b's shape",
                "b.grad = None",
                "The loss does not depend on b. What was this manager asked to do then?",
            )
        else:
            t.close(of_b, np.zeros((2, 3)), attempt="b was not reached at all.", what="b.grad")
        if of_c is None or not np.any(of_c):
            t.fail(
                "wiped",
                f"c.grad = {show(c)}, as before",
                f"c.grad = {show(of_c)}",
                "c was not reached, and had a gradient before: whose is it to wipe out?",
            )
        t.close(of_c, c, attempt="c was not reached in this pass.", what="c.grad")
