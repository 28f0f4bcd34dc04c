"""Outputs in the memory of donated inputs, and the inputs that are refused."""

from __future__ import annotations

from typing import Any

from minigrad.course.l14_compile import lesson
from minigrad.course.l14_compile.aliasing import reason
from minigrad.course.l14_compile.costs import op_by_op, peak_bytes, plan
from minigrad.course.l14_compile.machine import run, run_in_place
from minigrad.course.l14_compile.programs import (
    Draft,
    arrays_for,
    check_again,
    packed,
    random_program,
    renamed,
    shown,
)
from minigrad.course.objects import Program
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

donate = lesson.exercise(
    "donate",
    difficulty=3,
    minutes=15,
    returns="(taken, refused): two dicts",
    hints=(
        "may_alias answers for one input and one output. What else must be true of the output, and "
        "what do you do where several could take the input?",
        "For each donated input make three lists: the outputs of its size; those of them that may "
        "alias it; those of these that have got no memory yet. Which list is the first that is "
        "empty?",
        "If the third list has entries: taken[third[0]] = i. Else refused[i] = TAKEN if the second "
        "has, STILL_READ if the first has, NO_SIZE if none has. Before all that: raise ValueError "
        "for what is no input, or was donated already.",
    ),
)
NO_SIZE, STILL_READ, TAKEN = range(3)
WHY_NOT = {
    "size": "whose size is another",
    "returned": "which the caller gets",
    "later": "which is read later",
    "place": "which is still read elsewhere while it is written",
}
WHAT = ("NO_SIZE", "STILL_READ", "TAKEN")


def by_the_rules(program: Program, names: list[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return what is taken, and for each refused input the number of the reason."""
    taken: dict[str, str] = {}
    refused: dict[str, int] = {}
    for i in names:
        why = {o: reason(program, i, o) for o in program.outputs}
        possible = [o for o in program.outputs if not why[o]]
        free = [o for o in possible if o not in taken]
        if free:
            taken[free[0]] = i
        elif possible:
            refused[i] = TAKEN
        else:
            refused[i] = NO_SIZE if set(why.values()) == {"size"} else STILL_READ
    return taken, refused


def ask(t: Tester, program: Program, names: list[str]) -> None:
    """Donate inputs; fail unless each goes where it may, or is refused for the right reason."""
    given = f"donate(program, [{', '.join(map(repr, names))}]); program: {shown(program, 7)}"
    answer = t.drive("donated", packed(program), names, given=given)
    if "raised" in answer:
        attempt = "All of these are inputs, each donated once. What do you compare?"
        t.fail("false_alarm", "(taken, refused)", f"ValueError: {answer['raised'][:100]}", attempt)
    if not answer["same_names"]:
        attempt = "The caller may want to know what it gave away. Whose list do you change?"
        t.fail("changed_input", "`donated` as it was", "it was written to", attempt)
    taken, refused = t.pair(answer["returned"], 2, "taken, refused")
    if not (isinstance(taken, dict) and isinstance(refused, dict)):
        t.fail("type", "two dicts", f"{show(taken)} and {show(refused)}"[:150], "Return two dicts.")
    check_taken(t, program, names, taken)
    wanted, why = by_the_rules(program, names)
    for i in names:
        n = (i in taken.values()) + (i in refused)
        if n != 1:
            attempt = "Whoever gives memory away wants to know what became of it: of each."
            t.fail("silent", f"{i} is taken or refused", f"neither: {show(taken)}, {show(refused)}"
                   if not n else "both", attempt)  # fmt: skip
        if i in refused and i in wanted.values():
            o = next(o for o in wanted if wanted[o] == i)
            attempt = "Which outputs may alias it, and are still free when its turn comes?"
            t.fail("missed", f"{o} takes the memory of {i}", f"{i} is refused", attempt)
    if taken != wanted:
        attempt = "In the order of `donated`, each goes to the first output that may take it."
        t.fail("order", f"taken: {show_dict(wanted)}", show_dict(taken), attempt)
    if more := [i for i in refused if i not in why]:
        attempt = "Whoever reads this looks for what was given. Was that one donated?"
        t.fail("stranger", f"refused: {', '.join(why) or 'none'}", f"{show(more[0])}, too", attempt)
    reasons = answer["reasons"]
    if any(reasons.count(one) > 1 for one in reasons):
        attempt = "Three reasons, three texts. They stand above donate as they came."
        t.fail("reasons", f"{', '.join(WHAT)}: another text each", show(reasons), attempt)
    for i, number in why.items():
        if refused[i] != reasons[number]:
            got = next((WHAT[k] for k in range(3) if refused[i] == reasons[k]), "")
            attempt = "Is there an output of its size? Could one take it, were it free?"
            t.fail("reason", f"{i}: {WHAT[number]}", f"{i}: {got or show(refused[i])}", attempt)
    check_memory(t, program, taken)
    check_again(t, answer, "donated", packed(program), names)


def show_dict(taken: dict) -> str:
    """Return a mapping of outputs to inputs for a message."""
    return ", ".join(f"{o} over {i}" for o, i in taken.items()) or "nothing"


def check_taken(t: Tester, program: Program, names: list[str], taken: dict[Any, Any]) -> None:
    """Fail unless `taken` maps outputs to inputs, each used once and none still needed."""
    for o, i in taken.items():
        if o in program.inputs and i in program.outputs:
            attempt = "taken[output] = input: you look up whose memory an output gets."
            t.fail("direction", f"{{{i!r}: {o!r}}}", f"{{{o!r}: {i!r}}}", attempt)
        if o not in program.outputs or i not in names:
            attempt = "taken has outputs as keys and donated inputs as values."
            t.fail("strange", "an output: a donated input", f"{show(o)}: {show(i)}", attempt)
        if why := reason(program, i, o):
            attempt = "What does may_alias(program, input, output) say of this pair?"
            expected = f"{o} not in the memory of {i}, {WHY_NOT[why]}"
            t.fail("unsafe", expected, f"{o} over {i}", attempt)
    twice = [i for i in names if list(taken.values()).count(i) > 1]
    if twice:
        attempt = "Two outputs are alive at the end. Can they lie in the same bytes?"
        t.fail("double", f"{twice[0]} goes to one output", show_dict(taken), attempt)


def check_memory(t: Tester, program: Program, taken: dict[str, str]) -> None:
    """Fail unless the program runs right in this memory, and needs less by what was taken."""
    arrays = arrays_for(t, program)
    results = run_in_place(program, arrays, taken)
    for got, right in zip(results, run(program, arrays), strict=True):
        if not agree(got, right, rtol=1e-9, atol=1e-9):
            t.fail("value", show(right), show(got), "Run in place, it gives other numbers.")
    groups = op_by_op(program)
    before, after = (peak_bytes(plan(program, groups, x)) for x in ({}, taken))
    if after > before:
        t.fail("peak", f"at most {before} bytes", f"{after} bytes", "Donation never costs memory.")


@donate.check(points=1)
def an_update(t: Tester) -> None:
    """The new weights take the memory of the old ones, whose sizes tell them apart."""
    n, m = (int(i) for i in t.fixed.choice(range(2, 6), 2, replace=False))
    draft = Draft(w=(n, m), b=(1, m), dw=(n, m), db=(1, m))
    rate = round(float(t.random.uniform(0.1, 0.9)), 1)
    new_b = draft.op("sub", "b", draft.op("mul", "db", rate))
    new_w = draft.op("sub", "w", draft.op("mul", "dw", rate))
    ask(t, draft.returns(new_b, new_w), ["w", "b"])


@donate.check(points=2)
def each_once(t: Tester) -> None:
    """An output takes one input, and an input goes to one output."""
    n = int(t.fixed.integers(2, 6))
    draft = Draft(a=(n, 2), b=(n, 2))
    total = draft.op("add", "a", "b")
    ask(t, draft.returns(total), ["b", "a"])
    more = draft.op("tanh", total)
    ask(t, draft.returns(total, more), ["a"])
    ask(t, draft.returns(total, more), ["a", "b"])


@donate.check(points=2)
def refused_with_a_reason(t: Tester) -> None:
    """What cannot be used is refused, for the reason that holds."""
    n = int(t.fixed.integers(2, 5))
    draft = Draft(x=(n, n), w=(n, n), v=(n, n), row=(1, n), z=(n, n))
    new_v = draft.op("mul", "v", 0.9)
    product = draft.op("matmul", "x", "w")
    scaled = draft.op("add", product, "row")
    program = draft.returns(new_v, draft.op("mul", scaled, "x"))
    ask(t, program, ["row", "v"])
    ask(t, program, ["w", "z", "row", "v"])
    draft = Draft(x=(n, n), w=(n, n))
    ask(t, draft.returns(draft.op("matmul", "x", "w")), ["w", "x"])
    draft = Draft(w=(2, 3), x=(3, 2), y=(2, 3))  # only the number of bytes counts
    bent, turned = draft.op("tanh", "y"), draft.op("transpose", "w")
    ask(t, draft.returns(turned), ["w"])
    ask(t, draft.returns(bent), ["x"])
    ask(t, draft.returns(turned, bent), ["y"])
    ask(t, draft.returns(turned, bent), ["x", "y", "w"])
    draft = Draft(w=(n, n), x=(n, n))
    small = draft.op("sum", draft.op("mul", "w", "x"))
    ask(t, draft.returns(small), ["w"])
    ask(t, draft.returns(small), [])


@donate.check(points=1)
def no_such_gift(t: Tester) -> None:
    """What is donated twice, or is no input, raises ValueError with its name."""
    draft = Draft(a=(2, 3), b=(2, 3), c=(5, 5))
    total = draft.op("add", "a", "b")
    program = draft.returns(draft.op("tanh", total))
    for names, name, why in (
        (["b", "a", "b"], "b", "it is donated twice"),
        (["a", "b", "b"], "b", "it is donated twice"),
        (["b", "b", "a"], "b", "it is donated twice"),
        ([total], total, "it is not an input"),
        (["a", "nobody"], "nobody", "it is not an input"),
        (["c", "c"], "c", "it is donated twice, and refused the first time"),
    ):
        given = f"donate(program, {names}); program: {shown(program)}"
        answer = t.drive("donated", packed(program), names, given=given)
        expected = f"a ValueError that names {name}: {why}"
        if "raised" not in answer:
            attempt = "A misspelt name would be ignored in silence. What should the caller hear?"
            if name == total:
                attempt = f"{name} is what an operation makes. With which names do you compare?"
            elif names == ["b", "a", "b"]:
                attempt = "Another one stands between the two. How do you look for them?"
            elif name in program.inputs:
                attempt = "JAX once waited for ever on this. Who should notice it, and when?"
            t.fail("did_not_raise", expected, "no error", attempt)
        if name not in answer["raised"]:
            attempt = "Who reads the error must know which one. What does it say?"
            t.fail("text", expected, show(answer["raised"][:100]), attempt)


@donate.check(points=2)
def random_ones(t: Tester) -> None:
    """It is right for random programs, and they run right in the memory that it plans."""
    for n_ops in (4, 5, 5, 6, 7, 7, 8, 9, 10, 12, 12, 14):
        program = renamed(t, random_program(t, n_ops, 2, same_size=True))
        names = [str(name) for name in t.fixed.permutation(program.inputs)]
        ask(t, program, names)
