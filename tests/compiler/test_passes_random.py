"""All passes on random recordings: results and memory stay what they are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.array.layout import size_of
from minigrad.compiler.passes import simplify
from minigrad.compiler.passes.printing import show
from minigrad.compiler.program.program import CAPTURED, Ref
from minigrad.formulas.expression import IDENTITY, Program, maximum
from tests.compiler import random_recordings
from tests.compiler.outcomes import outcome, same
from tests.compiler.random_recordings import A, B


class Builder(random_recordings.Builder):
    """Adds what passes look for: copies, fills, the same again, slices of a captured buffer."""

    def __init__(self, draw):
        super().__init__(draw)
        shape = self.shapes[0]
        self.source(CAPTURED, (3, *shape))
        flat = self.refs.pop()
        for k in range(3):
            part = flat._replace(shape=shape, strides=flat.strides[1:], offset=k * size_of(shape))
            self.refs += [part, part]  # drawn twice as often
            if draw(st.booleans()):
                self.copy(self.pick(shape), part)  # a gradient

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
    *others, (flat, _) = builder.captured
    size = flat.value.size // 3
    dead += [(flat.value, k * size, size) for k in range(3) if draw(st.booleans())]
    for ref, _ in others:
        if draw(st.booleans()):
            size = ref.value.size
            low = 0 if draw(st.booleans()) else draw(st.integers(0, size - 1))
            more = size - low if draw(st.booleans()) else draw(st.integers(1, size - low))
            dead.append((ref.value, low, more))
    return builder.recording(), dict(builder.data), dead


@settings(max_examples=300, deadline=None)
@given(recordings())
def test_random_recordings_mean_the_same(made):
    recording, data, dead = made
    before = show(recording)
    after, _ = simplify(recording, dead)
    assert show(recording) == before
    assert same(outcome(recording, data, dead), outcome(after, data, dead)), show(after)
