"""Generates Python source for groups, one function each, and compiles it with Numba.

Matrices that another kernel reads lie in memory; all other values are local variables of the loop.
Matmul and transpose are left to NumPy, whose BLAS is hard to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.course.l14_compile.costs import in_memory, reads
from minigrad.course.objects import Op, Program

EXPRESSIONS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "exp": "exp({})",
    "tanh": "tanh({})",
    "greater": "1.0 if {} > {} else 0.0",
}


def source(program: Program, group: Sequence[Op], number: int = 0) -> str:
    """Return a group's source: one loop, whose locals are named like the values.

    Its arguments are the values that it reads, then those that it writes (called `to_…`).
    """
    stored = in_memory_of(program, group)
    loop = program.loop(group[0])
    assert loop is not None, "matmul and transpose have no loop over entries"
    arguments = [*reads(group), *(f"to_{value}" for value in stored)]
    lines = [f"def kernel_{number}({', '.join(arguments)}):"]
    sums = [op for op in group if op.is_sum]
    for op in sums:
        size = program.shapes[op.output][1]
        lines.append(f"    {op.output} = zeros({size})" if size > 1 else f"    {op.output} = 0.0")
    lines += [f"    for i in range({loop[0]}):", f"        for j in range({loop[1]}):"]
    made = {op.output for op in group}
    for op in group:
        operands = [x if x in made else at(program, x) for x in op.inputs]
        if op.is_sum:
            place = "[j]" if program.shapes[op.output][1] > 1 else ""
            lines.append(f"            {op.output}{place} += {operands[0]}")
        else:
            lines.append(f"            {op.output} = {EXPRESSIONS[op.name].format(*operands)}")
            if op.output in stored:
                lines.append(f"            to_{op.output}[i, j] = {op.output}")
    lines += [f"    to_{op.output}[0] = {op.output}" for op in sums]
    return "\n".join(lines) + "\n"


def in_memory_of(program: Program, group: Sequence[Op]) -> list[str]:
    """Return a group's values that go to memory: those that others read, and outputs."""
    others = {x for op in program.ops if op not in group for x in op.inputs}
    return [op.output for op in group if op.output in others or op.output in program.outputs]


def at(program: Program, x: Any) -> str:
    """Return the expression that reads an operand from memory."""
    if not isinstance(x, str):
        return repr(x)
    n_rows, n_columns = program.shapes[x]
    return f"{x}[{'i' if n_rows > 1 else 0}, {'j' if n_columns > 1 else 0}]"


class Compiled:
    """A program as a list of kernels; a call takes arrays and returns a list of arrays.

    Args:
        program: what to compute.
        groups: the result of `fuse` for it.
        taken: maps outputs to the donated inputs whose memory they take over; a call overwrites
            those arrays.

    Attributes:
        sources: each group's text, None for a matmul and a transpose.
    """

    def __init__(
        self, program: Program, groups: Sequence[Sequence[Op]], taken: Mapping[str, str]
    ) -> None:
        self.program, self.taken = program, dict(taken)
        self.stored = in_memory(program, groups)
        self.sources = [
            None if program.loop(group[0]) is None else source(program, group, number)
            for number, group in enumerate(groups)
        ]
        self.steps = [
            self._step(group, text) for group, text in zip(groups, self.sources, strict=True)
        ]
        kept = self.stored - set(program.outputs)
        self.temporaries = {value: np.empty(program.shapes[value]) for value in kept}

    def _step(self, group: Sequence[Op], text: str | None) -> tuple[Callable, list[str]]:
        op = group[0]
        names = [str(x) for x in op.inputs] + [op.output]
        if op.name == "matmul":
            return (lambda a, b, out: np.matmul(a, b, out=out)), names
        if op.name == "transpose":
            return (lambda a, out: np.copyto(out, a.T)), names
        import numba

        assert text is not None
        made = {"exp": np.exp, "tanh": np.tanh, "zeros": np.zeros}
        exec(text, made)
        (kernel,) = (f for name, f in made.items() if name.startswith("kernel_"))
        arguments = reads(group) + [one.output for one in group if one.output in self.stored]
        return numba.njit(error_model="numpy")(kernel), arguments

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Return the outputs."""
        memory = dict(zip(self.program.inputs, arrays, strict=True)) | self.temporaries
        for value in self.program.outputs:
            given = self.taken.get(value)
            shape = self.program.shapes[value]
            memory[value] = memory[given].reshape(shape) if given else np.empty(shape)
        for kernel, names in self.steps:
            kernel(*(memory[name] for name in names))
        return [memory[value] for value in self.program.outputs]
