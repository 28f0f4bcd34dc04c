"""Runs programs: operation by operation, as fused loops, and in the memory of donated inputs.

The last two go entry by entry, in Python: slow, but exactly what a kernel does. So a group that
reads a sum too early, or an output that overwrites what is still needed, gives wrong numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.course.objects import Op, Program

SCALARS: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "exp": math.exp,
    "tanh": math.tanh,
    "greater": lambda a, b: float(a > b),
}
WHOLE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "exp": np.exp,
    "tanh": np.tanh,
    "greater": lambda a, b: np.greater(a, b).astype(float),
    "matmul": np.matmul,
    "transpose": lambda a: a.T.copy(),
    "sum": lambda a: np.sum(a, keepdims=True),
    "sum_rows": lambda a: np.sum(a, axis=0, keepdims=True),
}
Arrays = Mapping[str, np.ndarray]


def run(program: Program, arrays: Arrays) -> list[np.ndarray]:
    """Compute the outputs operation by operation, each result in memory of its own."""
    values = dict(arrays)
    for op in program.ops:
        operands = [values[x] if isinstance(x, str) else x for x in op.inputs]
        values[op.output] = np.asarray(WHOLE[op.name](*operands), dtype=float)
    return [values[name] for name in program.outputs]


def entries(shape: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield a matrix's positions, row by row."""
    for row in range(shape[0]):
        for column in range(shape[1]):
            yield row, column


def entry(value: Any, row: int, column: int) -> float:
    """Return the entry that an operation reads at a position: axes of length 1 are stretched."""
    if not isinstance(value, np.ndarray):
        return float(value)
    n_rows, n_columns = value.shape
    return float(value[row if n_rows > 1 else 0, column if n_columns > 1 else 0])


def run_groups(program: Program, groups: Sequence[Sequence[Op]], arrays: Arrays) -> list:
    """Compute the outputs, each group as one loop: a turn computes one entry of each operation.

    An operation reads what lies in memory at that moment: of a sum, the part so far.
    """
    memory: dict[Any, np.ndarray] = {name: np.array(a, float) for name, a in arrays.items()}
    for group in groups:
        for op in group:
            memory[op.output] = np.zeros(program.shapes[op.output])
        loop = program.loop(group[0])
        if loop is None:
            for op in group:
                operands = [memory[x] if isinstance(x, str) else x for x in op.inputs]
                memory[op.output] = np.asarray(WHOLE[op.name](*operands), dtype=float)
            continue
        for row, column in entries(loop):
            for op in group:
                turn(op, memory, row, column)
    return [memory[name] for name in program.outputs]


def turn(op: Op, memory: dict[Any, np.ndarray], row: int, column: int) -> None:
    """Compute one entry of an elementwise operation, or add one entry to a sum."""
    operands = [entry(memory[x] if isinstance(x, str) else x, row, column) for x in op.inputs]
    out = memory[op.output]
    if op.is_elementwise:
        out[row, column] = SCALARS[op.name](*operands)
    else:
        out[0, column if op.name == "sum_rows" else 0] += operands[0]


def run_in_place(program: Program, arrays: Arrays, taken: Mapping[str, str]) -> list[np.ndarray]:
    """Compute the outputs, and write those in `taken` into the memory of their donated inputs.

    Each operation runs entry by entry, and writes each as soon as it is computed.
    """
    memory: dict[Any, np.ndarray] = {name: np.array(a, float) for name, a in arrays.items()}
    for op in program.ops:
        shape = program.shapes[op.output]
        given = memory[taken[op.output]] if op.output in taken else np.zeros(shape)
        operands = [memory[x] if isinstance(x, str) else x for x in op.inputs]
        write(op, operands, given.reshape(shape))
        memory[op.output] = given.reshape(shape)
    return [memory[name].copy() for name in program.outputs]


def write(op: Op, operands: list, out: np.ndarray) -> None:
    """Compute one operation into `out`, entry by entry; `out` may be one of the operands."""
    if op.is_sum:
        out[...] = 0.0
        for row, column in entries(operands[0].shape):
            place = (0, column if op.name == "sum_rows" else 0)
            out[place] += operands[0][row, column]
        return
    for row, column in entries(out.shape):
        if op.name == "matmul":
            out[row, column] = operands[0][row, :] @ operands[1][:, column]
        elif op.name == "transpose":
            out[row, column] = operands[0][column, row]
        else:
            out[row, column] = SCALARS[op.name](*(entry(x, row, column) for x in operands))


def in_order_of(groups: Sequence[Sequence[Op]], program: Program) -> Program:
    """Return the program with its operations in the groups' running order."""
    ops = tuple(op for group in groups for op in group)
    return Program(ops, program.inputs, program.outputs, program.shapes)
