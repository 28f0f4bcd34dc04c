"""Gives instructions with formulas one form, the Piece: a domain, formulas over it, outputs.

elementwise, rows and reduce differ only in where their results go. `store`: one per element; `row`:
one per row; `columns`: reduced over the rows; `all`: reduced over everything; only in a Loop,
`total`: one value per row, reduced over the rows.
"""

from typing import NamedTuple

from minigrad.array.layout import size_of
from minigrad.compiler.program.domain import seen_as
from minigrad.compiler.program.program import Instruction, Ref, Value
from minigrad.formulas.expression import IDENTITY, Expression, Program, call, symbol


class PieceOutput(NamedTuple):
    """A formula and its destination: `strides` over the domain, 0 along reduced axes."""

    formula: Expression
    value: Value
    offset: int
    strides: tuple
    mode: str
    how: str = "sum"


class Piece(NamedTuple):
    """What one instruction does at each element of its domain.

    dims: the domain. rows: how many leading axes are rows, None if that does not matter.
    inputs: {name in the formulas: a number, or (Ref, strides over dims)}.
    """

    dims: tuple
    rows: int | None
    inputs: dict
    outputs: list
    instruction: Instruction

    @property
    def size(self):
        return size_of(self.dims)


def piece_of(instruction):
    """Return the Piece of an instruction, or None if it computes no formula."""
    maker = _MAKERS.get(instruction.op)
    return maker(instruction) if maker else None


def _inputs(program, inputs, shape):
    return {
        name: (x, seen_as(x, shape)) if isinstance(x, Ref) else x
        for name, x in zip(program.inputs, inputs, strict=True)
    }


def _dims(shape):
    return tuple(n for n in shape if n != 1)


def _elementwise(i):
    program, shape = i.attributes["program"], i.outputs[0].shape
    if 0 in shape:
        return Piece((0,), None, {}, [], i)
    outputs = [
        PieceOutput(e, r.value, r.offset, seen_as(r, shape), "store")
        for e, r in zip(program.outputs, i.outputs, strict=True)
    ]
    return Piece(_dims(shape), None, _inputs(program, i.inputs, shape), outputs, i)


def _rows(i):
    program, shape = i.attributes["program"], i.attributes["shape"]
    if 0 in shape:
        return _filled(i, 0.0)
    outputs, rows = [], len(_dims(shape[:-1]))
    for e, r, mode in zip(program.outputs, i.outputs, i.attributes["modes"], strict=True):
        strides = seen_as(Ref(r.value, r.shape, r.strides), shape)  # broadcasts where reduced
        if mode == "row" and r.shape[-1:] != (1,):
            raise AssertionError(f"a row output of shape {r.shape}")
        outputs.append(PieceOutput(e, r.value, r.offset, strides, mode))
    return Piece(_dims(shape), rows, _inputs(program, i.inputs, shape), outputs, i)


EMPTY = {"sum": 0.0, "mean": float("nan"), "prod": 1.0, "any": False, "all": True}


def _reduce(i):
    program, how = i.attributes["program"], i.attributes["how"]
    shape, axes, out = i.attributes["shape"], i.attributes["axes"], i.outputs[0]
    if 0 in shape:
        return _filled(i, EMPTY.get(how, 0.0))
    kept = [d for d in range(len(shape)) if d not in axes and shape[d] != 1]
    gone = [d for d in axes if shape[d] != 1]
    steps = iter(out.strides)
    of_axis = {d: next(steps) for d in range(len(shape)) if d not in axes}
    formula, inputs = program.outputs[0], _inputs(program, i.inputs, shape)
    natural = [d for d in range(len(shape)) if shape[d] != 1]
    moves = {d: k for k, d in enumerate(natural)}

    def moved(order):
        return {
            name: x if not isinstance(x, tuple) else (x[0], tuple(x[1][moves[d]] for d in order))
            for name, x in inputs.items()
        }

    def piece(order, rows, e, mode):
        strides = tuple(of_axis[d] if d in kept else 0 for d in order)
        output = PieceOutput(e, out.value, out.offset, strides, mode, how)
        return Piece(tuple(shape[d] for d in order), rows, moved(order), [output], i)

    if not gone:
        return piece(natural, None, _single(formula, how), "store")
    if not kept:
        return piece(natural, None, formula, "all")
    if natural[-1] in gone:
        return piece([*kept, *gone], len(kept), Expression(f"row_{how}", formula), "row")
    return piece([*gone, *kept], len(gone), formula, "columns")


def _single(formula, how):
    """Return the formula of a reduction over one element."""
    return call("not_equal", formula, 0.0) if how in ("any", "all") else formula


def _filled(i, value):
    """Return a Piece that fills the output of a reduction over no elements."""
    out = i.outputs[0]
    program = Program(["x"], [symbol("x")])
    fills = [
        Instruction("elementwise", (value,), (r,), {"program": program}, i.name, i.line)
        for r in i.outputs
        if r.size
    ]
    if not fills:
        return Piece((0,), None, {}, [], i)
    assert len(fills) == 1, f"{i.op} over nothing with several outputs: {out}"
    return _elementwise(fills[0])


_MAKERS = {"elementwise": _elementwise, "rows": _rows, "reduce": _reduce}


def copy_of(ref, out, name="copy", line=""):
    """Return an instruction that copies one Ref into another of the same shape."""
    return Instruction("elementwise", (ref,), (out,), {"program": IDENTITY}, name, line)
