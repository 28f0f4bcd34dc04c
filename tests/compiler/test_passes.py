"""Each pass: what it does, what it must not touch; and all of them on random recordings."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.compiler.passes import simplify
from minigrad.compiler.passes.printing import show
from minigrad.compiler.program import Ref
from minigrad.kernels.expression import IDENTITY, Program, maximum
from tests.compiler import random_recordings
from tests.compiler.interpreter import execute
from tests.compiler.random_recordings import A, B


def outcome(recording, data, dead=()):
    """Results, then captured memory, but for dead slices, after a run in NumPy."""
    memory = {value: values.copy() for value, values in data.items()}
    results = execute(recording, memory)
    for value, offset, size in dead:
        memory[value][offset : offset + size] = 0
    return [*results, *(memory[value] for value in data)]


def same(before, after):
    """Whether two outcomes agree, NaN for NaN."""
    return all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(before, after, strict=True)
    )


class Builder(random_recordings.Builder):
    """Adds what passes look for: copies, fills, the same again, and captured slices."""

    def step(self):
        """One random instruction."""
        kind = self.draw(st.integers(0, 9))
        if kind == 0:
            x = self.pick()
            if isinstance(x, Ref):
                self.copy(x, self.new(x.shape))
        elif kind == 1:
            x = self.pick()
            others = [r for r in self.refs if r.shape == x.shape] if isinstance(x, Ref) else []
            others = [r for r in others if r.value is not x.value and 0 not in r.strides]
            others = [r for r in others if r.dtype is x.dtype]
            if others:
                self.copy(x, self.draw(st.sampled_from(others)))
        elif kind == 2:
            x = self.pick()
            number = self.draw(st.sampled_from([0.0, 1.0, -1.0, 2, 0.1, 3.0, -0.0]))
            out = x if isinstance(x, Ref) and self.draw(st.booleans()) else None
            if out is None or 0 not in out.strides:
                self.copy(number, out or self.new(self.draw(st.sampled_from(self.shapes))))
        elif kind == 3 and self.instructions:
            self.again(self.draw(st.sampled_from(self.instructions)))
        elif kind == 4:
            shape = self.draw(st.sampled_from(self.shapes))
            op = self.draw(st.sampled_from([A * B, A + B, A - B, A / B, maximum(A, B)]))
            number = self.draw(st.sampled_from([1.0, 0.0, -0.0, 1, 2.0]))
            inputs = self.draw(st.permutations([number, self.pick(shape)]))
            self.add("elementwise", inputs, [self.new(shape)], program=Program(["a", "b"], [op]))
        else:
            super().step()

    def copy(self, x, out):
        """out = x."""
        self.add("elementwise", [x], [out], program=IDENTITY)

    def again(self, i):
        """The same instruction with outputs of its own."""
        outs = [self.new(r.shape, r.dtype) for r in i.outputs]
        self.add(i.op, i.inputs, outs, **i.attributes)


@st.composite
def recordings(draw, most=25):
    """(recording, {Value: contents}, dead slices of captured memory)."""
    builder = Builder(draw)
    for _ in range(draw(st.integers(1, most))):
        builder.step()
    dead = []
    for ref, _ in builder.captured:
        if draw(st.booleans()):
            size = ref.value.size
            low = 0 if draw(st.booleans()) else draw(st.integers(0, size - 1))
            more = size - low if draw(st.booleans()) else draw(st.integers(1, size - low))
            dead.append((ref.value, low, more))
    return builder.recording(), dict(builder.data), dead


class TestAll:
    @settings(max_examples=300, deadline=None)
    @given(recordings())
    def test_random_recordings_mean_the_same(self, made):
        recording, data, dead = made
        before = show(recording)
        after, _ = simplify(recording, dead)
        assert show(recording) == before
        assert same(outcome(recording, data, dead), outcome(after, data, dead)), show(after)
