"""Makes programs for the checks, small given ones and random ones; sends them as plain lists."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.course.objects import ELEMENTWISE, Op, Program, result_shape
from minigrad.grader.compare import comparable
from minigrad.grader.tester import Tester


class Draft:
    """A program in the making.

    Args:
        inputs: each input's shape.
    """

    def __init__(self, **inputs: tuple[int, int]) -> None:
        self.inputs = tuple(inputs)
        self.shapes = dict(inputs)
        self.ops: list[Op] = []

    def op(self, name: str, *inputs: Any) -> str:
        """Add an operation; return the name of its output."""
        shapes = [self.shapes[x] if isinstance(x, str) else (1, 1) for x in inputs]
        output = f"t{len(self.ops)}"
        self.shapes[output] = result_shape(name, *shapes)
        self.ops.append(Op(name, tuple(inputs), output))
        return output

    def returns(self, *outputs: str) -> Program:
        """Return the finished program."""
        return Program(tuple(self.ops), self.inputs, outputs, self.shapes)


def renamed(t: Tester, program: Program) -> Program:
    """Return a program with new names, for inputs and results from one pool.

    So the names reveal nothing: a result's name in one program is an input's in the next.
    """
    pool = [*string.ascii_lowercase, *(f"t{k}" for k in range(40))]
    new: dict[Any, str] = dict(
        zip(program.shapes, map(str, t.fixed.permutation(pool)), strict=False)
    )
    return with_names(program, new)


def with_names(program: Program, new: dict[Any, str]) -> Program:
    """Return a program with new names for some values."""
    return Program(
        tuple(
            Op(op.name, tuple(new.get(x, x) for x in op.inputs), new.get(op.output, op.output))
            for op in program.ops
        ),
        tuple(new.get(name, name) for name in program.inputs),
        tuple(new.get(name, name) for name in program.outputs),
        {new.get(name, name): shape for name, shape in program.shapes.items()},
    )


def check_again(
    t: Tester, answer: Any, name: str, *arguments: Any, part: Callable = comparable
) -> None:
    """Fail if the driver's function does not return the same again, or the same part of it.

    Runs last, after all else was right. `answer` may say whether it `stays` as it was returned.
    """
    if isinstance(answer, dict) and not answer.get("stays", True):
        got = "the call after it wrote into what this call had returned"
        say = "Who owns what you return? Make new lists and dicts in each call."
        t.fail("changed_result", "results that stay as they were returned", got, say)
    if part(t.drive(name, *arguments, given=t.given)) != part(answer):
        expected = "what the first call with the same arguments gave"
        say = "What outlives a call in your code: a default argument, a global, an attribute?"
        t.fail("kept", expected, "something else at the second call", say)


def packed(program: Program) -> list:
    """Return a program as lists to send."""
    ops = [[op.name, list(op.inputs), op.output] for op in program.ops]
    return [ops, list(program.inputs), list(program.outputs), dict(program.shapes)]


def shown(program: Program, most: int = 9) -> str:
    """Return a program for a message: its operations in one line, without the middle of many."""
    ops = [str(op) for op in program.ops]
    if len(ops) > most:
        ops = [*ops[:3], f"… {len(ops) - 6} more …", *ops[-3:]]
    return f"{'; '.join(ops)}; return {', '.join(program.outputs)}"


def unpack(ops: Any) -> list[Op] | None:
    """Return operations from received lists; None if they are none."""
    if not isinstance(ops, list):
        return None
    unpacked = []
    for op in ops:
        if not (isinstance(op, list) and len(op) == 3 and isinstance(op[1], list)):
            return None
        name, inputs, output = op
        if not (isinstance(name, str) and isinstance(output, str)):
            return None
        plain = [x.item() if isinstance(x, np.generic) else comparable(x) for x in inputs]
        unpacked.append(Op(name, tuple(plain), output))
    return unpacked


def arrays_for(t: Tester, program: Program) -> dict[str, np.ndarray]:
    """Return random inputs."""
    return {
        name: np.round(t.random.uniform(-1.5, 1.5, program.shapes[name]), 2)
        for name in program.inputs
    }


def random_program(
    t: Tester, n_ops: int, n_outputs: int, *, same_size: bool = False, most_reads: int = 6
) -> Program:
    """Return a random program of square matrices, rows and numbers; every input is square.

    Args:
        t: the tester whose generator is used.
        n_ops: the number of operations.
        n_outputs: how many results are returned: the last, and others.
        same_size: whether outputs are square too, like inputs.
        most_reads: how far back an operation reaches for its operands, in values.
    """
    n = int(t.fixed.integers(2, 5))
    draft = Draft(**dict.fromkeys(("a", "b", "c")[: int(t.fixed.integers(2, 4))], (n, n)))
    names = [*ELEMENTWISE, "matmul", "transpose", "sum_rows", "sum"]
    weights = np.array([5, 5, 5, 0, 2, 0, 4, 1, 3, 2, 1.5, 1])
    while len(draft.ops) < n_ops:
        name = str(t.fixed.choice(names, p=weights / weights.sum()))
        known = list(draft.shapes)
        recent = [*draft.inputs, *known[len(draft.inputs) :][-most_reads:]]
        square = [x for x in recent if draft.shapes[x] == (n, n)]
        pool = square if name in ("matmul", "transpose", "sum_rows", "sum") else recent
        two = name in ("add", "sub", "mul", "greater", "matmul")
        operands: list[str | float] = [str(t.fixed.choice(pool)) for _ in range(1 + two)]
        if name in ("add", "mul", "sub") and t.fixed.random() < 0.15:
            operands[int(t.fixed.integers(2))] = float(t.fixed.integers(2, 5)) / 4
        draft.op(name, *operands)
    made = [op.output for op in draft.ops]
    if same_size:
        made = [value for value in made if draft.shapes[value] == (n, n)]
    if len(made) < n_outputs:
        return random_program(t, n_ops, n_outputs, same_size=same_size, most_reads=most_reads)
    chosen = {made[-1], *t.fixed.choice(made[:-1], n_outputs - 1, replace=False)}
    return draft.returns(*(value for value in made if value in chosen))
