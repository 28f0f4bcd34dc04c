"""Reduces the values of a GPU's threads to one: operation, start, shuffles in a warp."""

from typing import NamedTuple

from minigrad.array.dtypes import int64
from minigrad.devices.gpu.kernel_text import WARP, GpuEmitter
from minigrad.formulas.codegen import operand_names, renamed_outputs
from minigrad.formulas.emitter import Operand
from minigrad.formulas.row_loops import combine, reduced_kind, start_value


class Accumulator(NamedTuple):
    """A reduction. kind: 'f', 'i', or 'b' for truth values as int32 0 or 1."""

    how: str
    kind: str
    type: str
    start: str

    def combined(self, a, b):
        """Return the text that combines two partial results."""
        if self.kind == "b":
            return f"I4({a} {'|' if self.how == 'any' else '&'} {b})"
        return combine(self.how, a, b, self.kind)


def accumulator(how: str, kind, dtype, real):
    """Return the Accumulator for formulas of a kind ('f', 'i' or 'b') into a dtype."""
    kind = reduced_kind(how, kind)
    if kind == "b":
        how = {"max": "any", "min": "all"}.get(how, how)
        return Accumulator(how, "b", "I4", f"I4({int(how == 'all')})")
    start = start_value(how, kind, real, dtype if dtype.kind == "i" else int64)
    return Accumulator(how, kind, real if kind == "f" else "I8", start)


def formula_kind(program, kinds, real):
    """Return the kind of a program's one formula: 'f', 'i' or 'b'."""
    names, _ = operand_names(program, 1)
    operands = [Operand(n, k, "0", True) for n, k in zip(names, kinds, strict=False)]
    return GpuEmitter(operands, real).kind(renamed_outputs(program)[0])


def shuffled(indent, text, names, accumulators, team):
    """Add lines that give every thread of a team within a warp the team's result."""
    step = team // 2
    while step:
        for name, a in zip(names, accumulators, strict=True):
            text.line(indent, f"other = cuda.shfl_xor_sync({WARP:#x}, {name}, {step})")
            text.line(indent, f"{name} = {a.combined(name, 'other')}")
        step //= 2


def meet_warps(indent, text, names, accumulators, arrays, warps):
    """Add lines that give every thread the block's result; arrays: shared, one place per warp."""
    text.line(indent, "if t % 32 == 0:")
    for name, array in zip(names, arrays, strict=True):
        text.line(indent + 1, f"{array}[t // 32] = {name}")
    text.line(indent, "cuda.syncthreads()")
    for name, array in zip(names, arrays, strict=True):
        text.line(indent, f"{name} = {array}[t % {warps}]")
    shuffled(indent, text, names, accumulators, warps)
