"""Traces a function to a program: what Tracers record, and what they refuse."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from minigrad.course.l14_compile import lesson
from minigrad.course.l14_compile.programs import (
    Draft,
    check_again,
    random_program,
    shown,
    unpack,
    with_names,
)
from minigrad.course.objects import Op, Program
from minigrad.grader.message import a_kind, counted, show
from minigrad.grader.tester import Tester
from minigrad.grader.wire import Other

trace = lesson.exercise(
    "trace",
    difficulty=3,
    minutes=15,
    returns="a Program",
    hints=(
        "Three parts. trace makes the Tracers and calls f; record is what all their operators "
        "end in; __bool__ is what Python calls for `if`. Which of them must know the tape?",
        "trace: an empty list, a copy of `inputs`, f called once with Tracer(tape, shapes, name) "
        "for each name. record: names in place of Tracers, a new name, its shape, one Op on the "
        "tape. __bool__: raise, never return.",
        "record: inputs = tuple(x.name if isinstance(x, Tracer) else x for x in operands); name = "
        'f"t{len(self.tape)}"; then self.shapes[name] = result_shape(op, …), self.tape.append('
        "Op(op, inputs, name)), and return Tracer(self.tape, self.shapes, name).",
    ),
)


def ask(t: Tester, program: Program, as_tuple: bool = True, *, nested: bool = False) -> list[Op]:
    """Trace a function that does what a program says; fail unless that program results.

    Returns the operations, with the names that `record` gave their results. `nested`: the function
    traces another one before it returns.
    """
    of = f"f: {shown(program)}"
    if not as_tuple:
        of += ", not as a tuple"
    if nested:
        of += "; before it returns, f calls trace for another function"
    asked: list[Any] = [text_of(program, as_tuple), shapes_of_inputs(program), nested]
    answer = t.drive("traced", *asked, given=of)
    if "kind" in answer:
        if answer["kind"] == "None":
            t.none("a Program")
        t.fail(
            "type", "a Program", a_kind(answer["kind"]), "Which class of minigrad.course.objects?"
        )
    if answer["n_calls"] != 1:
        attempt = "A function is run once, to be written down. The program is what is run again."
        t.fail("calls", "one call of f", counted(answer["n_calls"], "call"), attempt)
    if not answer["same_inputs"]:
        attempt = "`inputs` belongs to the caller. Whose dict do you write shapes into?"
        t.fail("changed_input", "`inputs` as it was", "more names in `inputs`", attempt)
    ops = unpack(answer["ops"])
    if ops is None:
        attempt = "On the tape stand Ops: a name, a tuple of inputs, the name of the output."
        t.fail("not_ops", "a list of Ops", show(answer["ops"])[:150], attempt)
    check_ops(t, program, ops)
    check_rest(t, program, ops, answer)
    check_again(t, answer, "traced", *asked, part=names_of_ops)
    return ops


PYTHON = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "greater": "{} > {}",
    "neg": "-{}",
    "matmul": "{} @ {}",
    "transpose": "{}.T",
    "exp": "{}.exp()",
    "tanh": "{}.tanh()",
    "sum": "{}.sum()",
    "sum_rows": "{}.sum_rows()",
}


def text_of(program: Program, as_tuple: bool) -> str:
    """Return the Python source of a function f of matrices that does what a program says.

    The Program itself is the expected answer, so it is not sent.
    """
    new = {name: f"v{k}" for k, name in enumerate(program.shapes)}
    lines = [f"def f({', '.join(new[name] for name in program.inputs)}):"]
    for op in program.ops:
        operands = [new[x] if isinstance(x, str) else repr(x) for x in op.inputs]
        lines.append(f"    {new[op.output]} = {PYTHON[op.name].format(*operands)}")
    results = ", ".join(new[name] for name in program.outputs)
    return "\n".join([*lines, f"    return ({results},)" if as_tuple else f"    return {results}"])


def shapes_of_inputs(program: Program) -> dict[str, tuple[int, int]]:
    """Return the shape of each input, by name."""
    return {name: program.shapes[name] for name in program.inputs}


def ask_names(t: Tester, program: Program, as_tuple: bool = True) -> None:
    """Check a trace, and again for inputs named like results, or like those that would follow."""
    made = [op.output for op in ask(t, program, as_tuple)]
    taken = [name for name in reversed(made) if not re.fullmatch("t[0-9]+", name)]
    if not taken:
        return
    head = taken[0].rstrip("0123456789")
    number = taken[0][len(head) :]
    following = [f"{head}{int(number) + k}" for k in range(1, 40)] if number else []
    others = [name for name in (*taken, *following) if name not in program.shapes]
    shapes = dict.fromkeys(others, (1, 1)) | program.shapes
    ask(t, replace(program, inputs=(*program.inputs, *others), shapes=shapes), as_tuple)
    ask(t, with_names(program, dict(zip(program.inputs, taken, strict=False))), as_tuple)


def names_of_ops(answer: dict) -> list[str]:
    """Return the operations' names in the result; values' names may differ again."""
    return [op[0] for op in answer.get("ops", ())]


def check_ops(t: Tester, program: Program, ops: list[Op]) -> None:
    """Fail unless the operations are those of the program, with names and numbers as inputs."""
    wanted, got = [op.name for op in program.ops], [op.name for op in ops]
    if wanted != got:
        attempt = "Each call is written down when it is made: an unused one, and one like another."
        t.fail("ops", f"ops {', '.join(wanted)}", f"ops {', '.join(got) or '(none)'}", attempt)
    for op in ops:
        if any(isinstance(x, Other) or not isinstance(x, str | float | int) for x in op.inputs):
            attempt = "A program outlives its Tracers. What of a Tracer stands in the Op?"
            got_text = f"inputs of {op.name}: ({', '.join(map(kind, op.inputs))})"
            t.fail("holds_tracers", "inputs that are names and numbers", got_text, attempt)
    names = [op.output for op in ops]
    if len({*names, *program.inputs}) < len(names) + len(program.inputs):
        attempt = "Two values of one name cannot be told apart. What differs from op to op?"
        if len({*names}) == len(names):
            attempt = "An input has that name. Which names does the docstring say are free?"
        got_text = f"inputs {', '.join(program.inputs)}; results {', '.join(names)}"
        t.fail("same_name", "a name of its own for each value", got_text, attempt)


def kind(x: Any) -> str:
    """Describe an input of an Op in words."""
    return a_kind(x.type_name) if isinstance(x, Other) else show(x)


def check_rest(t: Tester, program: Program, ops: list[Op], answer: dict) -> None:
    """Fail unless inputs, outputs and shapes fit, and the program computes what f does."""
    if answer["inputs"] != list(program.inputs):
        attempt = "The inputs of the program are the names that were given, in their order."
        t.fail("inputs", show(list(program.inputs)), show(answer["inputs"]), attempt)
    outputs, made = answer["outputs"], [op.output for op in ops]
    renamed = dict(zip([op.output for op in program.ops], made, strict=True))
    wanted = [renamed.get(name, name) for name in program.outputs]
    if outputs != wanted:
        attempt = "The outputs are the names of what f returned, in its order; nothing else."
        t.fail("outputs", f"outputs {', '.join(wanted)}", f"outputs {show(outputs)}", attempt)
    shapes = answer["shapes"]
    for value in program.shapes:
        here, shape = shapes.get(renamed.get(value, value)), program.shapes[value]
        if not isinstance(here, tuple | list) or tuple(here) != shape:
            attempt = "result_shape(op, *shapes) says it. What is the shape of a plain number?"
            of = f"shapes[{renamed.get(value, value)!r}]"
            of += "".join(f", of {op}" for op in program.ops if op.output == value)
            t.fail("shape", f"{of}: {shape}", show(here), attempt)
    if more := [key for key in shapes if key not in {*program.inputs, *made}]:
        attempt = "A value is an input, or what an op makes. What else do you write there?"
        t.fail("more_shapes", "shapes of all values", f"shapes[{show(more[0])}], too", attempt)
    for op, right in zip(ops, program.ops, strict=True):
        read = [renamed.get(x, x) if isinstance(x, str) else x for x in right.inputs]
        if [repr(x) for x in op.inputs] != [repr(x) for x in read]:
            attempt = "Do the names in each Op say what it really read, all of it, in its order?"
            if sorted(map(repr, op.inputs)) == sorted(map(repr, read)):
                attempt = "The same operands. Do they stand in their order?"
            elif [x for x in op.inputs if isinstance(x, str)] == [
                x for x in read if isinstance(x, str)
            ]:
                attempt = "A number stands in the Op as it is. What did you make of it?"
            t.fail("value", str(Op(op.name, tuple(read), op.output)), str(op), attempt)


def two(t: Tester) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return two random shapes that can be multiplied as matrices."""
    n, m, k = (int(i) for i in t.fixed.choice(range(2, 7), 3, replace=False))
    return (n, m), (m, k)


@trace.check(points=2)
def writes_down(t: Tester) -> None:
    """Operations on two values are written down in order, with names and shapes."""
    x, w = two(t)
    draft = Draft(x=x, w=w)
    product = draft.op("matmul", "x", "w")
    bent = draft.op("tanh", product)
    scaled = draft.op("mul", bent, product)
    ask_names(t, draft.returns(draft.op("mul", scaled, bent)), as_tuple=False)
    draft = Draft(column=(x[0], 1), row=(1, w[1]))
    for name in ("add", "mul", "greater"):  # a result larger than either operand
        draft.op(name, *(("column", "row") if name == "add" else ("row", "column")))
    ask(t, draft.returns("column"))
    given = f"trace(f, {{'x': {x}, 'y': {(x[0] + 1, x[1])}}}), where f returns x + y"
    result = t.drive("misfit", x, (x[0] + 1, x[1]), given=given)
    if result is not None:
        attempt = "result_shape raises it, where shapes do not fit. Who asks it, or catches that?"
        t.fail("misfit", "a ValueError: these shapes do not fit", "no error", attempt)


@trace.check(points=1)
def numbers(t: Tester) -> None:
    """Plain numbers stand in the Op as they are, on either side."""
    n = round(float(t.fixed.uniform(2, 5)), 9)
    draft = Draft(x=two(t)[0])
    less = draft.op("sub", n, draft.op("mul", "x", "x"))
    ask(t, draft.returns(draft.op("div", less, n + 1)))
    draft = Draft(x=two(t)[0])
    same = draft.op("add", draft.op("mul", 1, "x"), 0)  # recorded though without effect
    turned = draft.op("transpose", draft.op("transpose", draft.op("sub", same, 0.0)))
    over = draft.op("div", 3, draft.op("div", turned, 1.0))
    ask(t, draft.returns(draft.op("greater", 2, draft.op("add", n, draft.op("greater", over, n)))))


@trace.check(points=1)
def several_results(t: Tester) -> None:
    """Several results come in order, also an input; what is not returned stays on the tape."""
    x, w = two(t)
    draft = Draft(x=x, w=w, b=(1, w[1]))
    y = draft.op("add", draft.op("matmul", "x", "w"), "b")
    draft.op("exp", y)
    draft.op("exp", y)  # equal operations are recorded as often as f does them
    ask(t, draft.returns(draft.op("sum_rows", y), y, "w"))
    ask(t, draft.returns(y, "w", y))
    ask(t, Draft(x=x).returns("x"), as_tuple=False)
    ask(t, Draft(x=x).returns("x"))
    for n_ops in (5, 8, 12):
        ask_names(t, random_program(t, n_ops, 2))
    ask(t, random_program(t, 4, 1), nested=True)


@trace.check(points=2)
def branches(t: Tester) -> None:
    """`if` on a traced value raises TracedBranchError, with the name of the value."""
    for how, shape in (
        ("if x > 0", (2, 3)),
        ("if not x", (2, 3)),
        ("x and 2 * x", (1, 1)),
        ("if x > 0", (1, 1)),
    ):
        name = str(t.fixed.choice(["x", "loss", "reward", "step"]))
        named = how.replace("x", name)
        given = f"trace(f, {{{name!r}: {shape}}}), where f has `{named}`"
        answer = t.drive("branch", name, how, shape, given=given)
        expected = "a TracedBranchError"
        if "returned" in answer:
            attempt = "One of two sides was taken, for all calls to come. What asks for the truth?"
            t.fail("did_not_raise", expected, "no error: it went on", attempt)
        if answer["raised"] != expected.removeprefix("a "):
            attempt = "Which class of errors does __bool__ raise? It stands above Tracer."
            t.fail("another_error", expected, show(answer["raised"][:100]), attempt)
        about = answer["of"] if how == "if x > 0" else name
        if about not in answer["text"]:
            attempt = "Who reads this looks for the line. Which value was asked for?"
            t.fail("text", f"a text that contains {about!r}", show(answer["text"][:100]), attempt)
