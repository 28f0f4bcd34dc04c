"""The GradManager: what it computes, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.course.l04_accumulation.common import arrays, program
from minigrad.course.l04_accumulation.lesson import lesson
from minigrad.grader.message import show
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
BY_HAND = "Write the tape down, oldest node first, and go through it from its end."


def boxes(**values: np.ndarray) -> str:
    """Return the line of a program that makes boxes."""
    made = ", ".join(f"Box({value.tolist()})" for value in values.values())
    return f"{', '.join(values)} = {made}"


def check_grad(
    t: Tester, name: str, got: Any, right: np.ndarray, mistakes: Sequence[Mistake] = ()
) -> None:
    """Fail unless a box has this gradient."""
    if got is None:
        t.fail(
            "no_grad",
            f"{name}.grad = {show(right)}",
            f"{name}.grad = None",
            "Go through the tape from its end. Which node has a gradient first, and to which nodes "
            f"does it send? Is {name}.node reached, and is {name} attached?",
        )
    t.close(got, right, attempt=BY_HAND, mistakes=mistakes, what=f"{name}.grad")


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
            f"gm.tape = {show(ops)}" if ops is None else f"gm.tape with {len(ops)} nodes",
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


@grad_manager.check(points=1)
def only_attached(t: Tester) -> None:
    """Boxes that are not attached get no gradient; operations that do not matter do no harm."""
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
    lines, given = program(*BEGIN, boxes(a=a, b=b), "gm.attach([a])", *span, *span)
    of_a = t.drive("run", lines, ["a.grad"], given=given)[0]
    replaced = "The gradient of the first pass is gone. Who may throw it away?"
    check_grad(t, "a", of_a, 2 * b, [Mistake("overwrites", b, replaced)])
    lines, given = program(*BEGIN, boxes(a=a, b=c), "gm.attach([a])", "gm.attach([a, a])", *span)
    of_a, n = t.drive("run", lines, ["a.grad", "len(gm.attached)"], given=given)
    twice = "It was attached more than once and is still one box. What does attach ask first?"
    doubled = [Mistake("twice", factor * c, twice) for factor in (2, 3)]
    check_grad(t, "a", of_a, c, doubled)
    if n != 1:
        t.fail("twice", "one box in gm.attached", f"{show(n)}", twice)


@grad_manager.check(points=1)
def keep_empty_grad(t: Tester) -> None:
    """Boxes that were not reached keep None, or get zeros where they are asked for."""
    a, b, c = arrays(t, 3)
    for keep in (False, True):
        lines, given = program(
            f"gm = GradManager(keep_empty_grad={keep})",
            boxes(a=a, b=b, c=c),
            f"c.grad = np.array({a.tolist()})",
            "gm.attach([a, b, c])",
            "gm.record()",
            "gm.backward(total(mul(a, a)))",
        )
        of_a, of_b, of_c = t.drive("run", lines, ["a.grad", "b.grad", "c.grad"], given=given)
        check_grad(t, "a", of_a, 2 * a)
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
            t.close(of_b, np.zeros(2), attempt="b was not reached at all.", what="b.grad")
        if of_c is None or not np.any(of_c):
            t.fail(
                "wiped",
                f"c.grad = {show(a)}, as before",
                f"c.grad = {show(of_c)}",
                "c was not reached, and had a gradient before: whose is it to wipe out?",
            )
        t.close(of_c, a, attempt="c was not reached in this pass.", what="c.grad")
