"""Which output may be written into the memory of which input."""

from __future__ import annotations

from minigrad.course.l14_compile import lesson
from minigrad.course.l14_compile.programs import Draft, packed, random_program, renamed, shown
from minigrad.course.objects import ELEMENTWISE, Program
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

may_alias = lesson.exercise(
    "may_alias",
    difficulty=3,
    minutes=12,
    returns="True or False",
    hints=(
        "Find the operation that writes o. Who reads i before it, who at the same time, who after?",
        "Four reasons for False: other bytes; the caller gets i; an operation after the writer "
        "reads i; the writer itself reads i, and is not elementwise. What is read before is no "
        "reason.",
        "written = the place in program.ops of the op whose output is o. i in "
        "program.ops[written].inputs is harmless if that op is elementwise; i in the inputs of "
        "any of program.ops[written + 1:] never is.",
    ),
)


def reason(program: Program, i: str, o: str) -> str:
    """Return why o may not alias i: size, returned, place or later; '' if it may."""
    if program.nbytes(i) != program.nbytes(o):
        return "size"
    if i in program.outputs:
        return "returned"
    written = next(k for k, op in enumerate(program.ops) if op.output == o)
    if any(i in op.inputs for op in program.ops[written + 1 :]):
        return "later"
    writer = program.ops[written]
    return "place" if i in writer.inputs and not writer.is_elementwise else ""


def ask(t: Tester, program: Program, i: str, o: str) -> None:
    """Fail unless may_alias says whether o may alias i."""
    given = f"may_alias(program, {i!r}, {o!r}); program: {shown(program, 7)}"
    got = t.drive("alias", packed(program), i, o, given=given)
    if got is None:
        t.none("True or False")
    if not isinstance(got, bool):
        t.fail("type", "True or False", show(got), "A question for yes or no.")
    why = reason(program, i, o)
    if got == (not why):
        return
    written = next(op for op in program.ops if op.output == o)
    reader = next((op for op in reversed(program.ops) if i in op.inputs), None)
    if why:
        n_i, n_o = program.nbytes(i), program.nbytes(o)
        expected, attempt = {
            "size": (
                f"False: {i} has {n_i} bytes, {o} has {n_o}",
                "Which of the two is larger, and what does the docstring ask of them?",
            ),
            "returned": (f"False: the caller gets {i}", "Who looks at i after the last operation?"),
            "later": (
                f"False: `{reader}` reads {i} after `{written}`",
                "What does that one find in the memory of i?",
            ),
            "place": (
                f"False: `{written}` still needs {i} while it writes",
                "Half of the output is written. Which entries of i does it still need?",
            ),
        }[why]
        if why == "place" and written.is_sum:
            attempt = (
                "Any sum reads other entries than it writes. What says so: a size, or its kind?"
            )
        t.fail(why, expected, "True", attempt)
    key, attempt = "strict", "Name somebody who reads i after its bytes are gone. Is there one?"
    if reader is written:
        key = "same_place"
        attempt = "It reads an entry, then writes that very one. Who else has i itself as an input?"
    elif program.shapes[i] != program.shapes[o]:
        key, attempt = "shape", "Memory has bytes and no shape. How many are asked for?"
    elif reader is None:
        key, attempt = "unread", "Nobody reads i at all. Whom could a write disturb?"
    t.fail(key, f"True: nobody needs {i} when {o} is written", "False", attempt)


def pair(t: Tester) -> tuple[int, int]:
    """Return two different small numbers."""
    n, m = (int(i) for i in t.fixed.choice(range(2, 6), 2, replace=False))
    return n, m


@may_alias.check(points=2)
def read_later(t: Tester) -> None:
    """What is read after the write must stay; what is read before may go."""
    n, m = pair(t)
    draft = Draft(a=(n, m), b=(n, m))
    first = draft.op("tanh", "a")
    second = draft.op("mul", first, "b")
    third = draft.op("sub", second, "b")
    program = draft.returns(first, third)
    ask(t, program, "a", third)
    ask(t, program, "b", first)
    ask(t, program, "b", third)
    ask(t, program, "a", first)
    last = draft.op("neg", "a")
    ask(t, draft.returns(first, third, last), "a", third)
    for late in "bw":  # the same names, another answer; a value made from w earlier is not w
        draft = Draft(w=(n, n), b=(n, n))
        turned, less = draft.op("transpose", "w"), draft.op("neg", "w")
        new = draft.op("sub", "w", "b")
        both = draft.op("matmul", draft.op("add", less, turned), late)
        ask(t, draft.returns(new, turned, both), "w", new)


@may_alias.check(points=1)
def bytes_fit(t: Tester) -> None:
    """Both need the same number of bytes, whatever their shapes."""
    n, m = pair(t)
    draft = Draft(a=(n, m), b=(m, n), row=(1, m), c=(m, n), flat=(1, n * m))
    draft.op("neg", "b")
    turned = draft.op("transpose", "a")
    total = draft.op("add", "a", "row")
    program = draft.returns(turned, total)
    ask(t, program, "b", total)
    ask(t, program, "row", total)
    ask(t, program, "row", turned)
    ask(t, program, "b", turned)
    ask(t, program, "c", turned)
    ask(t, program, "flat", turned)


@may_alias.check(points=2)
def read_while_it_is_written(t: Tester) -> None:
    """The writer may read the input at the place that it writes, and nowhere else."""
    n, _ = pair(t)
    draft = Draft(a=(n, n), b=(n, n), c=(n, n), d=(n, n), row=(1, n), one=(1, 1))
    squared = draft.op("mul", "a", "a")
    product = draft.op("matmul", "b", squared)
    turned = draft.op("transpose", "c")
    doubled = draft.op("add", squared, "d")
    other = draft.op("matmul", squared, "d")
    sums = draft.op("sum_rows", "row"), draft.op("sum", "one")
    program = draft.returns(squared, product, turned, doubled, other, *sums)
    ask(t, program, "a", squared)
    ask(t, program, "b", product)
    ask(t, program, "c", turned)
    ask(t, program, "a", product)
    ask(t, program, "d", other)  # as the second operand
    ask(t, program, "d", doubled)
    ask(t, program, "row", sums[0])  # a sum of one row or entry has its size
    ask(t, program, "one", sums[1])
    for name in ELEMENTWISE:
        for operands in (("a",),) if name in ("neg", "exp", "tanh") else (("a", 2.0), (2.0, "a")):
            draft = Draft(a=(n, n))
            ask(t, draft.returns(out := draft.op(name, *operands)), "a", out)


@may_alias.check(points=1)
def the_caller_reads_too(t: Tester) -> None:
    """An input that is returned stays as it is; one that nobody reads may go."""
    n, m = pair(t)
    draft = Draft(a=(n, m), b=(n, m), c=(n, m))
    total = draft.op("add", "a", "b")
    program = draft.returns(total, "a")
    ask(t, program, "a", total)
    ask(t, draft.returns("b", "a", total), "a", total)
    ask(t, program, "c", total)
    ask(t, program, "b", total)
    ask(t, draft.returns(total), "a", total)  # the same operations, another caller, other shapes
    row = Draft(a=(1, m), b=(n, m))
    ask(t, row.returns(row.op("add", "a", "b")), "a", total)


@may_alias.check(points=2)
def random_ones(t: Tester) -> None:
    """It is right for every input and output of random programs."""
    for n_ops in (4, 5, 5, 6, 7, 7, 8, 9, 10, 12, 12, 14):
        program = renamed(t, random_program(t, n_ops, 2))
        for i in program.inputs:
            for o in program.outputs:
                ask(t, program, i, o)
