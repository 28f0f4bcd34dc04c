"""Recordings that passes are held against: every composition, and random ones that mix them.

What a pass looks for must occur here, or nothing has tested it: `test_passes_random.py` says so of
a pass that changed no recording. New compositions go into `compositions.py`, new ways to share and
write memory into `Builder`.
"""

from itertools import cycle

import numpy as np
from hypothesis import strategies as st

from minigrad.array.layout import size_of
from minigrad.compiler.program.program import CAPTURED, TEMPORARY, Ref
from minigrad.compiler.program.sketch import Sketch
from minigrad.formulas.expression import IDENTITY, Program, maximum
from tests.compiler import random_recordings
from tests.compiler.compositions import COMPOSITIONS
from tests.compiler.random_recordings import A, B

EVERY = [c for kind in COMPOSITIONS.values() for c in kind]
SPECIAL = (0.0, -0.0, 1.0, -2.5, 3e38, 1e-40, float("inf"), float("-inf"), float("nan"))


def composed(compositions, special=True):
    """(recording, {Value: contents}): each composition on float32 memory of its own.

    special: x and y hold, in a corner, every pair of the special numbers. Some arguments are
    donated, so that a pass that forgets which of them the step may overwrite is found out.
    """
    s, n = Sketch(), len(SPECIAL)
    results, data = [], {}
    x, y = np.random.default_rng(0).standard_normal((2, n + 3, n + 3)).astype("f4")
    if special:
        x[:n, :n] = np.array(SPECIAL)[:, None]
        y[:n, :n] = SPECIAL
    for compose in compositions:
        refs = s.argument(x.shape), s.argument(x.shape), s.captured("w", x.shape)
        results.append(compose(s, *refs))
        data |= {r.value: v.ravel() for r, v in zip(refs, (x, y, y), strict=True)}
    recording = s.recording(*results)
    recording.donated = frozenset(recording.arguments[::3])
    return recording, data


class Builder(random_recordings.Builder):
    """Adds what passes look for: compositions of what is there, the same again, slices of a buffer.

    Some memory begins with special numbers, some arguments are donated, some values are unread.
    """

    def __init__(self, draw, plain=False):
        self.plain = plain  # without special numbers, donated arguments and compositions
        bits = 0 if plain else draw(st.integers(0, 127))
        self.special = bits  # bit k: source k begins with special numbers
        super().__init__(draw)
        shape = self.shapes[0]
        self.source(CAPTURED, (3, *shape))
        flat = self.refs.pop()
        for k in range(3):
            part = flat._replace(shape=shape, strides=flat.strides[1:], offset=k * size_of(shape))
            self.refs += [part, part]  # drawn twice as often
            if draw(st.booleans()):
                self.copy(self.pick(shape), part)  # a gradient

    def source(self, kind, shape):
        """An argument or captured memory; of special numbers a third, as sums over them are NaN."""
        k = len(self.data)
        super().source(kind, shape)
        values = self.data[-1][1]
        if self.special >> k & 1:
            numbers = cycle(SPECIAL[k:] + SPECIAL[:k])
            values[k % 3 :: 3] = [next(numbers) for _ in values[k % 3 :: 3]]

    def step(self):
        """One random instruction, or a composition."""
        kind = self.draw(st.integers(0, 9 if self.plain else 12))
        if kind == 0:
            x = self.pick()
            if isinstance(x, Ref):
                self.copy(x, self.new(x.shape))
        elif kind == 1:
            x = self.pick()
            others = self.beside(x) if isinstance(x, Ref) else []
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
        elif kind <= 7 and not self.plain:
            self.compose()
        else:
            super().step()

    def compose(self):
        """A composition of what is there."""
        x = self.pick()
        if not isinstance(x, Ref) or len(x.shape) < 2 or 1 in x.shape:  # some reduce two axes
            return
        y = self.draw(st.sampled_from([r for r in self.refs if _alike(r, x)]))
        written = [r for r in self.beside(x) if r.value is not y.value]
        w = self.draw(st.sampled_from(written)) if written else self.new(x.shape)
        if not written:
            self.copy(y, w)
        s = Sketch()
        s.instructions = self.instructions
        made = self.draw(st.sampled_from(EVERY))(s, x, y, w)
        self.refs += [made]

    def beside(self, x):
        """What can be written while x is read: Refs of its shape over other memory."""
        return [
            r for r in self.refs if _alike(r, x) and r.value is not x.value and 0 not in r.strides
        ]

    def copy(self, x, out):
        """out = x."""
        self.add("elementwise", [x], [out], program=IDENTITY)

    def again(self, i):
        """The same instruction with outputs of its own."""
        outs = [self.new(r.shape, r.dtype) for r in i.outputs]
        self.add(i.op, i.inputs, outs, **i.attributes)

    def recording(self):
        """What was made: results are most of what nothing reads, and some of the rest."""
        found = super().recording()
        if self.plain:
            return found
        read = {r.value for i in found.instructions for r in i.reads}
        made = {r.value: r for r in self.refs if r.value.kind == TEMPORARY and r.covers()}
        few, most = self.draw(st.integers(0, 255)), self.draw(st.integers(0, 255))
        for k, (value, r) in enumerate(made.items()):
            mask = few & most if value in read else few | most
            if mask >> k % 8 & 1 and r not in found.results:
                found.results.append(r)
        chosen = self.draw(st.integers(0, 7))
        found.donated = frozenset(a for k, a in enumerate(found.arguments) if chosen >> k & 1)
        return found


def _alike(a, b):
    return a.shape == b.shape and a.dtype is b.dtype


@st.composite
def recordings(draw, most=20, plain=False):
    """(recording, {Value: contents}, dead slices of captured memory).

    plain: for comparisons up to rounding: no special numbers, no donated arguments; and no
    compositions, whose order depends on which operations a process has.
    """
    builder = Builder(draw, plain)
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
