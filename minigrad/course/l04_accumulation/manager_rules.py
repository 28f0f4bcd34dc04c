"""The GradManager: when it may be used, and what it leaves behind."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation.common import arrays, program
from minigrad.course.l04_accumulation.manager import BEGIN, boxes, check_grad, grad_manager
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

ENDED = ("gm.tape is None", "not TAPES")


def must_raise(
    t: Tester,
    lines: tuple[str, ...],
    last: str,
    error: str,
    key: str,
    attempt: str,
    left: tuple[str, ...],
) -> None:
    """Fail unless a program's last line raises this error and leaves all of `left` true."""
    _, given = program(*lines, last)
    kinds, text, values = t.drive("failing", list(lines), last, list(left), given=given)
    if kinds is None:
        t.fail(key, f"{a_kind(error)} from the last line", "no error", attempt)
    if error not in kinds:
        t.fail(
            key,
            f"{a_kind(error)} from the last line",
            f"{kinds[0]}: {text}".rstrip(": ")[:160],
            attempt,
        )
    broken = [one for one, holds in zip(left, values, strict=True) if holds is not True]
    if broken:
        t.fail(
            "not_released" if "not TAPES" in left else "tape_lost",
            f"after the {error}: {' and '.join(left)}",
            f"not so: {' and '.join(broken)}",
            "An error leaves a function at once. What has it done by then, and what not yet?",
        )


@grad_manager.check(points=1)
def misuse(t: Tester) -> None:
    """record twice, backward without record, and a loss of two elements raise; of one, not."""
    a, b = arrays(t, 2)
    for loss in ("add(a, b)", "a"):
        lines = [*BEGIN, boxes(a=a[:1], b=b[:1]), "gm.attach([a])", "gm.record()"]
        last = f"gm.backward({loss})"
        _, given = program(*lines, last)
        kinds, said, values = t.drive("failing", lines, last, ["a.grad"], given=given)
        if kinds is not None:
            t.fail(
                "one_element",
                "a.grad = [1]: the loss has one element, in shape (1,)",
                f"{kinds[0]}: {said}".rstrip(": ")[:160],
                "ndim counts axes, and len goes along the first one. What counts elements?"
                if "add" in loss
                else "An empty tape is a tape, too: it does record. And is the loss on a tape?",
            )
        check_grad(t, "a", values[0], np.ones(1))
    begin = (*BEGIN, boxes(a=a, b=b), "gm.attach([a])")
    must_raise(
        t,
        (*begin, "gm.record()"),
        "gm.record()",
        "RuntimeError",
        "records_twice",
        "It records already: what would become of the tape it has?",
        ("len(TAPES) == 1", "any(one is gm.tape for one in TAPES)"),
    )
    must_raise(
        t,
        (*begin, "loss = total(mul(a, b))"),
        "gm.backward(loss)",
        "RuntimeError",
        "no_recording",
        "Nothing was recorded, so there is nothing to walk back on. Say so at once.",
        (),
    )
    must_raise(
        t,
        (*begin, "gm.record()", "gm.backward(total(mul(a, b)))", "loss = total(a)"),
        "gm.backward(loss)",
        "RuntimeError",
        "no_recording",
        "backward ends the recording, so a second one finds nothing.",
        (),
    )
    for shape, how_many in (((2,), "two elements"), ((0,), "none"), ((1, 2), "two elements")):
        c = np.resize(a, shape)
        must_raise(
            t,
            (*BEGIN, boxes(a=c, b=c), "gm.attach([a])", "gm.record()", "loss = mul(a, b)"),
            "gm.backward(loss)",
            "ValueError",
            "no_number",
            f"A loss has one element, and this one {how_many}. Whose gradient would it be?",
            ("a.grad is None", *ENDED),
        )


@grad_manager.check(points=1)
def release(t: Tester) -> None:
    """After backward or release nothing records, nothing is saved, and .grad stays."""
    a, b = arrays(t, 2)
    begin = (
        *BEGIN,
        boxes(a=a, b=b),
        "gm.attach([a])",
        "gm.record()",
        "c = mul(a, b)",
        "d = mul(b, b)",
    )
    wanted = ["len(TAPES)", "gm.tape", "c.node.saved, d.node.saved", "mul(a, b).node.op", "a.grad"]
    _, given = program(*begin, "gm.release()", "gm.release()")
    kinds, said, _ = t.drive("failing", [*begin, "gm.release()"], "gm.release()", given=given)
    if kinds is not None:
        t.fail(
            "releases_twice",
            "no error: the second release finds nothing to do",
            f"{kinds[0]}: {said}".rstrip(": ")[:160],
            "What is gm.tape after the first release? Ask before you work on it.",
        )
    for end in ("gm.backward(total(c))", "gm.release(); gm.release()"):
        lines, given = program(*begin, end)
        n_tapes, tape, saved, op, grad = t.drive("run", lines, wanted, given=given)
        if n_tapes != 0 or op != "leaf":
            t.fail(
                "still_recording",
                "no tape left in TAPES: what comes next is not recorded",
                f"{show(n_tapes)} in TAPES",
                "Whoever begins to record also ends it. Where does the tape leave TAPES?",
            )
        if tape is not None:
            t.fail("tape", "gm.tape = None", f"gm.tape = {show(tape)}", "It records no longer.")
        if saved != ((), ()):
            t.fail(
                "still_saved",
                "saved = () in the nodes of c and d, so that their arrays can be freed",
                show(saved),
                "As long as c and d live, so do their nodes. What do these still hold?",
            )
        if "backward" in end:
            check_grad(t, "a", grad, b)
    for name, other in (("gm", "outer"), ("outer", "gm")):
        lines, given = program(
            "outer, gm = GradManager(), GradManager()",
            "outer.record()",
            "gm.record()",
            f"{name}.release()",
        )
        left = ["len(TAPES)", f"any(one is {other}.tape for one in TAPES)"]
        n, is_there = t.drive("run", lines, left, given=given)
        if is_there is True and n != 1:
            attempt = "Nothing was recorded, so its tape is empty. Is that the same as no tape?"
            both = f"{name}'s tape is there as well"
            t.fail("wrong_tape", f"{other}.tape alone, still in TAPES", both, attempt)
        if is_there is not True:
            t.fail(
                "wrong_tape",
                f"{other}.tape, still in TAPES",
                "another one, or none",
                "Two tapes with equal content are two. Which function takes out this very one?",
            )


@grad_manager.check(points=1)
def an_error_on_the_way(t: Tester) -> None:
    """When a rule raises, the recording ends and every .grad is as it was."""
    a, b = arrays(t, 2)
    for error in ("ZeroDivisionError", "KeyboardInterrupt"):
        # On the way back b is reached first; then the rule of d raises.
        lines = [
            *BEGIN,
            boxes(a=a, b=b),
            "gm.keep_empty_grad = True",
            "gm.attach([a, b])",
            "gm.record()",
            "d = recorded('bad', b.data, (a,), ())",
            f"def bad(dy): raise {error}",
            "RULES['bad'] = bad",
            "loss = total(mul(b, d))",
        ]
        last = "gm.backward(loss)"
        _, given = program(*lines, last)
        wanted = ["RULES.pop('bad') and len(TAPES)", "gm.tape is None", "a.grad", "b.grad"]
        kinds, _, values = t.drive("failing", lines, last, wanted, given=given)
        if kinds is None or error not in kinds:
            t.fail(
                "swallowed",
                f"the rule's own error, {error}",
                "no error" if kinds is None else kinds[0],
                "Who calls backward must hear of it. Let the error pass, and clean up behind it.",
            )
        n_tapes, ended, of_a, of_b = values
        if n_tapes != 0 or ended is not True:
            t.fail(
                "not_released",
                "the recording has ended: no tape in TAPES, gm.tape is None",
                f"{show(n_tapes)} in TAPES",
                "An error leaves a function at once. Which block of Python runs even then?",
            )
        for name, grad in (("a", of_a), ("b", of_b)):
            if grad is not None:
                t.fail(
                    "half_written",
                    f"{name}.grad = None, as before",
                    f"{name}.grad = {show(grad)}",
                    "Some boxes got a gradient, others not. When may the first .grad be written?",
                )
