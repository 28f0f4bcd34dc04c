"""Operations on which no output depends."""

from __future__ import annotations

from minigrad.course.l14_compile import lesson
from minigrad.course.l14_compile.programs import (
    Draft,
    check_again,
    packed,
    random_program,
    renamed,
    shown,
    unpack,
)
from minigrad.course.objects import Op, Program
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

eliminate_dead = lesson.exercise(
    "eliminate_dead",
    difficulty=2,
    minutes=8,
    returns="a Program",
    hints=(
        "An operation is dead if all who read its result are dead. From which end do you know?",
        "Walk from the last operation to the first, with a set of values that are needed. At first "
        "these are the outputs. What does an operation that is needed need itself?",
        "for op in reversed(program.ops): if op.output in needed: keep it, needed.update("
        "op.inputs). Put what you kept back in order, and make a new Program.",
    ),
)


def ask(t: Tester, program: Program) -> None:
    """Eliminate dead operations; fail unless exactly those are gone."""
    answer = t.drive("without_dead", packed(program), given=shown(program))
    if "kind" in answer:
        if answer["kind"] == "None":
            t.none("a Program")
        t.fail("type", "a Program", a_kind(answer["kind"]), "Make a new Program of what is left.")
    if not answer["unchanged"]:
        attempt = "Which part of it do you change: ops, inputs, outputs, shapes? Make a new one."
        t.fail("changed", "the given program as it was", "it was written to", attempt)
    ops = unpack(answer["ops"])
    if ops is None:
        t.fail("not_ops", "a list of Ops", show(answer["ops"])[:150], "Keep the Ops as they are.")
    for what, wanted in (("inputs", program.inputs), ("outputs", program.outputs)):
        if answer[what] != list(wanted):
            attempt = "Callers know the program by its inputs and outputs: both stay."
            t.fail(what, f"{what} {', '.join(wanted)}", f"{what} {show(answer[what])}", attempt)
    check_ops(t, program, ops)
    for value in (*program.inputs, *(op.output for op in ops)):
        here, shape = answer["shapes"].get(value), program.shapes[value]
        if not isinstance(here, tuple | list) or tuple(here) != shape:
            attempt = "`shapes` has the shape of each value of the new Program: of which are they?"
            t.fail("shapes", f"shapes[{value!r}]: {shape}", show(here), attempt)
    check_again(t, answer, "without_dead", packed(program))


def check_ops(t: Tester, program: Program, ops: list[Op]) -> None:
    """Fail unless the operations are exactly those that an output needs."""
    needed: set[str | float] = set(program.outputs)
    wanted: list[Op] = []
    for op in reversed(program.ops):
        if op.output in needed:
            needed.update(op.inputs)
            wanted.insert(0, op)
    strangers = [op for op in ops if op not in program.ops]
    if strangers:
        attempt = "Only leave operations out; those that stay are as they were."
        t.fail("other_op", "ops of the given program", str(strangers[0]), attempt)
    read = {x for op in program.ops for x in op.inputs}
    for op in program.ops:
        if op in wanted and op not in ops:
            attempt = "Some output needs it, maybe over others. Follow the inputs all the way."
            if op.output in program.outputs and op.output not in read:
                attempt = "Nobody in the program reads it. And the caller?"
            t.fail("dropped_live", f"`{op}` stays", "it is gone", attempt)
    for op in ops:
        if op not in wanted:
            key, attempt = "kept_dead", "No output depends on it. What is needed, to begin with?"
            if op.output in read:
                key = "kept_chain"
                attempt = "It is read, but by whom? Follow the readers: who reads the last?"
            t.fail(key, f"`{op}` is gone", "it is still there", attempt)
    if len(ops) > len(wanted):
        t.fail("twice", f"{len(wanted)} ops", f"{len(ops)} ops", "Each op stays at most once.")
    if ops != wanted:
        attempt = "Those that stay keep their order. In which order do you hand them on?"
        t.fail("order", "; ".join(map(str, wanted)), "; ".join(map(str, ops)), attempt)


@eliminate_dead.check(points=1)
def nobody_reads_it(t: Tester) -> None:
    """An operation that nobody reads goes; one that the caller gets stays."""
    draft = Draft(a=(2, 3), b=(2, 3))
    total = draft.op("add", "a", "b")
    for name in ("exp", "neg", "tanh", "sum", "sum_rows", "transpose"):
        draft.op(name, "b")
    for name in ("add", "div", "greater"):
        draft.op(name, 2.0, total)
    last = draft.op("mul", total, "a")
    ask(t, draft.returns(last))
    ask(t, draft.returns(last, total, last))
    ask(t, draft.returns())


@eliminate_dead.check(points=2)
def chains(t: Tester) -> None:
    """Whole chains go, of which the ends are dead, and an output in the middle stays."""
    draft = Draft(a=(2, 3), b=(2, 3), unread=(1, 2))
    draft.op("neg", "unread")
    middle = draft.op("mul", "a", 2.0)
    value = draft.op("exp", "a")
    for _ in range(int(t.fixed.integers(1, 4))):
        value = draft.op(str(t.fixed.choice(["neg", "tanh"])), value)
    last = draft.op("sub", "b", "a")
    draft.op("add", value, middle)
    ask(t, draft.returns(middle, last))
    ask(t, draft.returns("a", last))
    draft = Draft(a=(2, 3))  # two alike, both needed, with numbers as first operands
    alike = [draft.op("sub", 1.0, draft.op("mul", 2.0, draft.op("tanh", "a"))) for _ in "12"]
    ask(t, draft.returns(*reversed(alike)))
    draft = Draft(a=(2, 3), b=(2, 3))
    for start in "ab":  # long chains, one needed and one not
        last = start
        for _ in range(150):
            last = draft.op("tanh", last)
        draft.op("exp", last)
    ask(t, draft.returns(last))


@eliminate_dead.check(points=2)
def random_ones(t: Tester) -> None:
    """It is right for random programs, and leaves those alone in which nothing is dead."""
    for n_ops in (4, 5, 6, 7, 8, 9, 10, 12, 20, 40):
        ask(t, renamed(t, random_program(t, n_ops, int(t.fixed.integers(1, 4)))))
    draft = Draft(a=(2, 3), b=(2, 3))
    ask(t, draft.returns(draft.op("tanh", draft.op("add", "a", 1.0))))
    ask(t, draft.returns("b"))
    ask(t, Draft(a=(2, 3)).returns("a"))
