"""Operations that one loop can compute together."""

from __future__ import annotations

from collections.abc import Sequence

from minigrad.course.l14_compile import lesson
from minigrad.course.l14_compile.costs import temporaries
from minigrad.course.l14_compile.machine import run, run_groups
from minigrad.course.l14_compile.programs import (
    Draft,
    arrays_for,
    check_again,
    packed,
    random_program,
    renamed,
    shown,
    unpack,
)
from minigrad.course.objects import ELEMENTWISE, Op, Program
from minigrad.grader.compare import agree
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

fuse = lesson.exercise(
    "fuse",
    difficulty=4,
    minutes=20,
    returns="a list of groups, each a list of Ops",
    hints=(
        "Remember for each value the number of the group that makes it. Which of these numbers "
        "decides where an operation can go? What must be true there?",
        "The group with the highest number among its inputs' is the only one to ask: all others "
        "have run by then. It may join if the loops are equal, are not None, and all of its "
        "inputs that this very group makes come from elementwise operations.",
        "place = {}; for op: last = max((place[x] for x in op.inputs if x in place), default="
        "None); if it is None or op may not join groups[last]: append a new group. Then add op "
        "to it, and place[op.output] = its number.",
    ),
)


def by_the_rules(program: Program) -> list[list[Op]]:
    """Return the groups."""
    groups: list[list[Op]] = []
    place: dict[str | float, int] = {}
    for op in program.ops:
        last = max((place[x] for x in op.inputs if x in place), default=-1)
        loop = program.loop(op)
        can_join = (
            last >= 0
            and loop is not None
            and loop == program.loop(groups[last][0])
            and all(o.is_elementwise for o in groups[last] if o.output in op.inputs)
        )
        if not can_join:
            last = len(groups)
            groups.append([])
        groups[last].append(op)
        place[op.output] = last
    return groups


def names(groups: Sequence[Sequence[Op]]) -> str:
    """Return groups for a message: the results of each."""
    return ", ".join(f"[{' '.join(op.output for op in group)}]" for group in groups)


def ask(t: Tester, program: Program) -> None:
    """Fuse; fail unless the groups can run and are as few as by the rules."""
    answer = t.drive("fused", packed(program), given=shown(program))
    if "kind" in answer:
        if answer["kind"] == "None":
            t.none("a list of groups")
        t.fail(
            "type", "a list of lists of Ops", a_kind(answer["kind"]), "A group is a list of Ops."
        )
    if not answer["unchanged"]:
        attempt = "Others still read it. Put the Ops into new lists."
        t.fail("changed", "the given program as it was", "it was written to", attempt)
    groups = []
    for group in answer["groups"]:
        ops = unpack(group)
        if not ops:
            attempt = "Each group is a list of one Op or more."
            t.fail("type", "a list of lists of Ops", show(answer["groups"])[:150], attempt)
        groups.append(ops)
    check_each_once(t, program, groups)
    for number, group in enumerate(groups):
        check_group(t, program, groups, number, group)
    wanted = by_the_rules(program)
    if len(groups) > len(wanted):
        attempt = "Which of them could run in the loop of the group that makes its input?"
        n = f"{len(wanted)} group{'s' * (len(wanted) > 1)}"
        t.fail("too_many", f"{n}: {names(wanted)}", names(groups), attempt)
    left, needed = temporaries(program, groups), temporaries(program, wanted)
    if len(left) > len(needed):
        attempt = where_it_parts(program, groups, wanted)
        expected = f"{len(needed)} values go through memory: {', '.join(needed) or 'none'}"
        t.fail("temporaries", expected, f"{len(left)}: {', '.join(left)}", attempt)
    arrays = arrays_for(t, program)
    for got, right in zip(run_groups(program, groups, arrays), run(program, arrays), strict=True):
        if not agree(got, right, rtol=1e-9, atol=1e-9):
            attempt = "Run group by group, it gives other numbers. What is read too early?"
            t.fail("value", show(right), show(got), attempt)
    if groups != wanted:
        t.fail("order", names(wanted), names(groups), where_it_parts(program, groups, wanted))
    check_again(t, answer, "fused", packed(program))


def where_it_parts(program: Program, groups: list[list[Op]], wanted: list[list[Op]]) -> str:
    """Return the Try line for the first operation that the rules put in another group."""
    for op in program.ops:
        mine, right = (
            next(group[: group.index(op)] for group in one if op in group)
            for one in (groups, wanted)
        )
        if mine != right and right:
            return f"Look at `{op}`: may it join {names([right])}? Go through the rules for it."
        if mine != right:
            return f"Look at `{op}`: which rule keeps it out of {names([mine])}?"
    return "A new group runs after all the others so far, and an op after those before it."


def check_each_once(t: Tester, program: Program, groups: list[list[Op]]) -> None:
    """Fail unless every operation is in one group."""
    flat = [op for group in groups for op in group]
    for op in program.ops:
        if op not in flat:
            attempt = "Each op goes into a group, also one that has no maker to join."
            t.fail("lost", f"`{op}` in some group", "it is in none", attempt)
        if flat.count(op) > 1:
            attempt = "Computed twice is work done twice. Which one group makes it?"
            t.fail("twice", f"`{op}` in one group", f"it is in {flat.count(op)}", attempt)
    if len(flat) > len(program.ops):
        strange = next(op for op in flat if op not in program.ops)
        t.fail("lost", "the ops of the program", f"`{strange}`", "Keep the Ops as they are.")


def check_group(
    t: Tester, program: Program, groups: list[list[Op]], number: int, group: list[Op]
) -> None:
    """Fail unless a group is one loop that reads only existing values."""
    before = {*program.inputs, *(op.output for g in groups[:number] for op in g)}
    made: dict[str, Op] = {}
    for op in group:
        for x in op.inputs:
            if not isinstance(x, str) or x in before:
                continue
            if x not in made:
                attempt = "A group runs after those before it. Which group is the last it needs?"
                got = f"group {number} of {names(groups)} reads {x}, which is not there yet"
                t.fail("too_early", f"{x} is made before `{op}`", got, attempt)
            if not made[x].is_elementwise:
                got = f"`{op}` in the same group, {names([group])}, as `{made[x]}`"
                key, attempt = (
                    ("not_complete", "In the first turn of the loop, how much of the sum is there?")
                    if made[x].is_sum
                    else ("alone", "That one reads whole rows. Which loop could both have?")
                )
                t.fail(key, f"all of {x} is there when `{op}` reads it", got, attempt)
        made[op.output] = op
    loops = {op.output: program.loop(op) for op in group}
    if len(group) > 1 and None in loops.values():
        attempt = "matmul and transpose read elsewhere than they write: they have no such loop."
        t.fail("alone", "matmul and transpose alone in a group", names([group]), attempt)
    if len({*loops.values()}) > 1:
        text = ", ".join(f"{value} over {loop}" for value, loop in loops.items())
        attempt = "One loop runs over one shape. What does program.loop(op) say of each?"
        t.fail("loops", f"one loop for the group {names([group])}", text, attempt)
    for op in group[1:]:
        if not made.keys() & {*op.inputs}:
            attempt = "An op joins a group for what it reads of it. Of which group does this one?"
            expected = f"`{op}` in another group: it reads nothing that this one makes"
            t.fail("stranger", expected, f"it is in {names([group])}", attempt)


@fuse.check(points=1)
def a_chain(t: Tester) -> None:
    """Elementwise operations, each reading the one before, are one kernel."""
    shape = (int(t.fixed.integers(2, 5)), 3)
    draft = Draft(a=shape, b=shape)
    value = draft.op("mul", "a", "b")
    for name in ELEMENTWISE:
        operands = (value,) if name in ("neg", "exp", "tanh") else (value, 0.5)
        value = draft.op(name, *operands)
    ask(t, draft.returns(draft.op("add", value, "b")))


@fuse.check(points=2)
def around_matmul(t: Tester) -> None:
    """A matmul and a transpose are alone; what comes after a matmul is one kernel."""
    n, m, k = (int(i) for i in t.fixed.choice(range(2, 7), 3, replace=False))
    draft = Draft(x=(n, m), w=(m, k), b=(1, k))
    y = draft.op("add", draft.op("matmul", "x", "w"), "b")
    h = draft.op("tanh", y)
    z = draft.op("matmul", draft.op("transpose", h), h)
    ask(t, draft.returns(draft.op("neg", draft.op("exp", z))))


@fuse.check(points=2)
def after_a_sum(t: Tester) -> None:
    """A sum runs in the loop of what it adds up; who reads the sum waits for the loop's end."""
    shape = (int(t.fixed.integers(2, 5)), 3)
    draft = Draft(x=shape)
    e = draft.op("exp", "x")
    s = draft.op(str(t.fixed.choice(["sum", "sum_rows"])), e)
    ask(t, draft.returns(draft.op("div", e, s)))
    for name in ("sum", "sum_rows"):  # two inputs come from one group, and one is a sum
        for places in ((0, 1), (1, 0)):
            draft = Draft(x=shape)
            e = draft.op("exp", "x")
            both = draft.op(name, e), draft.op("neg", e)
            ask(t, draft.returns(draft.op("mul", *(both[k] for k in places))))
    draft = Draft(x=(1, 1))  # even of one entry, the sum is no value of the loop
    ask(t, draft.returns(draft.op("mul", draft.op("sum", draft.op("neg", "x")), "x")))
    draft = Draft(x=(1, 3))
    ask(t, draft.returns(draft.op("sum", draft.op("sum_rows", "x"))))


@fuse.check(points=1)
def other_loops(t: Tester) -> None:
    """Operations over different shapes are different loops, also where one reads the other."""
    m = int(t.fixed.integers(2, 5))
    draft = Draft(a=(m + 1, m), b=(1, m))
    scaled = draft.op("mul", "b", 0.5)
    total = draft.op("add", "a", scaled)
    ask(t, draft.returns(draft.op("sub", total, "a"), draft.op("neg", scaled)))
    draft = Draft(a=(1, 1), b=(1, m))
    ask(t, draft.returns(draft.op("add", draft.op("neg", "a"), "b")))
    ask(t, Draft(a=(2, 2)).returns())


@fuse.check(points=2)
def the_last_maker(t: Tester) -> None:
    """An operation with several makers goes to the last of their groups."""
    shape = (3, 3)
    draft = Draft(a=shape, b=shape)
    early = draft.op("tanh", "a")
    product = draft.op("matmul", early, "b")
    late = draft.op("exp", product)
    both = draft.op("mul", early, late)
    ask(t, draft.returns(draft.op("add", both, early)))
    for n_ops in (5, 6, 7, 8, 8, 10, 12, 14, 16, 20, 24, 30):
        ask(t, renamed(t, random_program(t, n_ops, int(t.fixed.integers(1, 4)))))
