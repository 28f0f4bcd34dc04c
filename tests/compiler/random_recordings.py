"""Recordings made by hypothesis: formulas over several shapes, views, in-place writes, products."""

import numpy as np
from hypothesis import strategies as st

from minigrad.array.dtypes import bool_, float32, float64, int64
from minigrad.array.layout import contiguous_strides, size_of
from minigrad.compiler.program.program import (
    ARGUMENT,
    CAPTURED,
    TEMPORARY,
    Instruction,
    Recording,
    Ref,
    Value,
    whole,
)
from minigrad.formulas import expression as e
from minigrad.formulas.expression import IDENTITY, Program, symbol

A, B = symbol("a"), symbol("b")
UNARY = [
    Program(["a"], [f])
    for f in (e.tanh(A), e.exp(-A * A), A * 0.5, -A, e.where(A > 0.0, A, 0.1 * A), e.sigmoid(A))
]
BINARY = [
    Program(["a", "b"], [f])
    for f in (A + B, A * B, A - B, e.maximum(A, B), e.where(A < B, A, B), A / (1.0 + B * B))
]
TWO = Program(["a", "b"], [A * 0.5 + B, A - B])
ROWS = [
    (Program(["a"], [e.exp(A - e.row_max(A)) / e.row_sum(e.exp(A - e.row_max(A)))]), ("store",)),
    (Program(["a"], [e.row_mean(A * A)]), ("row",)),
    (Program(["a"], [A - e.row_mean(A), e.row_sum(A)]), ("store", "row")),
    (Program(["a"], [A * e.row_max(A), A * 2.0]), ("store", "columns")),
    (Program(["a"], [e.where(e.equal(e.column_of(A), 1), A, 0.0)]), ("store",)),
]
BASES = [(4, 3), (2, 3, 5), (6,), (1, 7), (3, 1, 4), (70, 3), (5, 66), (2, 2, 2, 3)]


class Builder:
    """Makes a recording call by call; `draw` decides."""

    def __init__(self, draw):
        self.draw, self.instructions, self.arguments, self.data = draw, [], [], []
        self.refs, self.captured = [], []
        base = draw(st.sampled_from(BASES))
        self.shapes = [base, base[-1:], (*base[:-1], 1), (), base[::-1], (size_of(base),)]
        self.dtype = draw(st.sampled_from([float32, float32, float32, float64]))
        for kind in (ARGUMENT, ARGUMENT, CAPTURED, CAPTURED):
            self.source(kind, draw(st.sampled_from(self.shapes)))
        self.source(ARGUMENT, base)

    def source(self, kind, shape):
        """An argument or captured memory with random contents."""
        rng = np.random.default_rng(len(self.data))
        values = rng.standard_normal(size_of(shape)).astype(self.dtype.numpy)
        value = Value(kind, self.dtype, max(1, values.size), index=len(self.arguments))
        ref = Ref(value, shape, contiguous_strides(shape))
        if kind == ARGUMENT:
            self.arguments.append(value)
        else:
            self.captured.append((ref, values))
        self.data.append((value, values))
        self.refs.append(ref)

    def pick(self, shape=None):
        """A Ref, or a view of it, that broadcasts to a shape."""
        fitting = [r for r in self.refs if shape is None or _broadcasts(r.shape, shape)]
        fitting = [r for r in fitting if r.dtype is self.dtype]
        return self.draw(st.sampled_from(fitting)) if fitting else 1.5

    def new(self, shape, dtype=None):
        """A new temporary."""
        dtype = dtype or self.dtype
        return whole(Value(TEMPORARY, dtype, max(1, size_of(shape))), shape)

    def add(self, op, inputs, outputs, **attributes):
        """One more instruction."""
        self.instructions.append(Instruction(op, tuple(inputs), tuple(outputs), attributes))
        self.refs += [o for o in outputs if o not in self.refs]

    def view(self):
        """A view: transposed, sliced or reshaped."""
        r = self.pick()
        if not isinstance(r, Ref) or not r.shape:
            return
        how = self.draw(st.sampled_from(["transpose", "slice", "flat", "step"]))
        if how == "transpose":
            new = Ref(r.value, r.shape[::-1], r.strides[::-1], r.offset)
        elif how == "slice" and r.shape[0] > 1:
            new = Ref(r.value, (r.shape[0] - 1, *r.shape[1:]), r.strides, r.offset + r.strides[0])
        elif how == "step" and r.shape[-1] > 1:
            n = -(-r.shape[-1] // 2)
            new = Ref(r.value, (*r.shape[:-1], n), (*r.strides[:-1], 2 * r.strides[-1]), r.offset)
        elif r.is_contiguous:
            new = Ref(r.value, (r.size,), (1,), r.offset)
        else:
            return
        self.refs.append(new)
        if new.shape not in self.shapes:
            self.shapes.append(new.shape)

    def step(self):
        """One random instruction."""
        kind = self.draw(st.integers(0, 11))
        shape = self.draw(st.sampled_from(self.shapes))
        if kind <= 1:
            self.add("elementwise", [self.pick(shape)], [self.new(shape)],
                     program=self.draw(st.sampled_from(UNARY)))  # fmt: skip
        elif kind <= 4:
            self.add("elementwise", [self.pick(shape), self.pick(shape)], [self.new(shape)],
                     program=self.draw(st.sampled_from(BINARY)))  # fmt: skip
        elif kind == 5:
            self.add("elementwise", [self.pick(shape), self.pick(shape)],
                     [self.new(shape), self.new(shape)], program=TWO)  # fmt: skip
        elif kind == 6:
            self.view()
        elif kind == 7:
            self.in_place()
        elif kind == 8:
            self.reduce()
        elif kind == 9 and shape:
            self.rows(shape)
        elif kind == 10:
            self.product()
        elif kind == 11:
            mask = self.new(shape, bool_)
            program = Program(["a", "b"], [A < B])
            self.add("elementwise", [self.pick(shape), self.pick(shape)], [mask], program=program)
            count = self.new((), int64)
            self.add("reduce", [mask], [count], program=IDENTITY, how="sum", shape=shape,
                     axes=tuple(range(len(shape))))  # fmt: skip

    def in_place(self):
        """A write to what was there before."""
        target = self.pick()
        if not isinstance(target, Ref) or 0 in target.strides:
            return
        other = self.pick(target.shape)
        if isinstance(other, Ref) and other.value is target.value and other != target:
            return  # the device copies operands that overlap first
        program = self.draw(st.sampled_from([BINARY[0], BINARY[1], Program(["a", "b"], [B])]))
        self.add("elementwise", [target, other], [target], program=program)

    def reduce(self):
        """A reduction over some axes."""
        x = self.pick()
        if not isinstance(x, Ref):
            return
        axes = tuple(d for d in range(len(x.shape)) if self.draw(st.booleans()))
        kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
        how = self.draw(st.sampled_from(["sum", "sum", "mean", "max", "min", "prod"]))
        program = self.draw(
            st.sampled_from([IDENTITY, Program(["x"], [symbol("x") * symbol("x")])])
        )
        self.add("reduce", [x], [self.new(kept)], program=program, how=how, shape=x.shape,
                 axes=axes)  # fmt: skip

    def rows(self, shape):
        """Formulas along the last axis."""
        program, modes = self.draw(st.sampled_from(ROWS))
        x = self.pick(shape)
        if not isinstance(x, Ref):
            return
        outs = {"store": shape, "row": (*shape[:-1], 1), "columns": shape[-1:]}
        self.add("rows", [x], [self.new(outs[m]) for m in modes], program=program, modes=modes,
                 shape=shape)  # fmt: skip

    def product(self):
        """A matrix product of what fits."""
        x = self.pick()
        if not isinstance(x, Ref) or len(x.shape) != 2 or not x.size:
            return
        n = self.draw(st.integers(1, 4))
        other = self.new((x.shape[1], n))
        self.add("elementwise", [0.25], [other], program=IDENTITY)
        self.add("matmul", [x, other], [self.new((x.shape[0], n))], accumulate=False)

    def recording(self):
        """What was made: a few of the temporaries are results."""
        last = {}
        for r in self.refs:
            if r.value.is_temporary and r.covers():
                last[r.value] = r
        chosen = list(last.values())[-3:]
        return Recording(self.instructions, self.arguments, chosen)


def _broadcasts(shape, target):
    if len(shape) > len(target):
        return False
    pairs = zip(shape[::-1], target[::-1], strict=False)
    return all(a in (1, b) for a, b in pairs)


@st.composite
def recordings(draw, most=14):
    """(recording, {Value: contents} of arguments and captured memory)."""
    builder = Builder(draw)
    for _ in range(draw(st.integers(1, most))):
        builder.step()
    return builder.recording(), dict(builder.data)
