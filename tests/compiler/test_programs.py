"""Random steps with views, clones and in-place writes: a recording does what eager does."""

from collections import Counter

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import errors
from minigrad.compiler.trace.capture import capture
from tests.compiler.replay import run_captured

VIEWS = (
    lambda x: x.T,
    lambda x: x.reshape(-1),
    lambda x: x[0],
    lambda x: x[1:],
    lambda x: x[::-2],
    lambda x: x.detach(),
    lambda x: x.expand((2, *x.shape)),
)
WRITES = (
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(y),
    lambda x, y: x.copy_(y),
    lambda x, y: x.fill_(0.25),
    lambda x, y: x.__setitem__(0, y[0]),
    lambda x, y: x.__setitem__([0, 0], y[0]),
    lambda x, y: x.zero_(),
)
MAKES = (
    lambda x, y: x * y,
    lambda x, y: x.tanh(),
    lambda x, y: x.clone(),
    lambda x, y: x.sum(0),
    lambda x, y: mg.softmax(x, 0),
    lambda x, y: mg.concatenate([x, y]),
    lambda x, y: mg.rand(x.shape, "float64"),
    lambda x, y: mg.variable([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], "float64"),
    lambda x, y: mg.zeros(x.shape, "float64"),
    lambda x, y: mg.where(x > y, x, y),
    lambda x, y: mg.cumsum(x, 0),
    lambda x, y: x @ y.T,
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["view", "view", "write", "write", "write", "make", "make", "drop"]),
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    min_size=2,
    max_size=14,
)


class World:
    """What a step finds outside: a leaf, an array, a clone of it, and a view of it."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.w = mg.variable(rng.uniform(0.5, 1.5, (3, 2)), requires_grad=True)
        self.h = mg.variable(rng.uniform(0.5, 1.5, (3, 2)))
        self.twin = self.h.clone()
        self.view = self.h[1:]
        self.x = mg.variable(rng.uniform(0.5, 1.5, (3, 2)))

    def state(self):
        """Everything outside, as bytes and counts."""
        found = [self.w, self.h, self.twin, self.x]
        grad = None if self.w.grad is None else self.w.grad.tolist()
        return [v.tolist() for v in found], [v.version for v in found], grad

    def step(self, program, x):
        """Runs a program of operations; returns what it has at the end, and a gradient."""
        mine = [x, self.h, self.twin, self.view, self.w * 1.0]
        for what, i, j, k in program:
            a, b = mine[i % len(mine)], mine[j % len(mine)]
            try:
                if what == "view":
                    mine.append(VIEWS[k % len(VIEWS)](a))
                elif what == "make":
                    mine.append(MAKES[k % len(MAKES)](a, b))
                elif what == "write":
                    with mg.no_grad():
                        WRITES[k % len(WRITES)](a, b)
                elif len(mine) > 4:
                    del mine[i % len(mine)]
            except (errors.ShapeError, errors.BoundsError, errors.ArgumentTypeError):
                continue  # shapes that do not fit: both sides meet them alike
        total = self.w.sum()
        for v in mine:
            total = total + (v * v).sum()
        total.backward()
        return [v for v in mine if v is not x], total


def test_recordings_do_what_eager_does():
    seen = Counter()

    @settings(max_examples=250, deadline=None)
    @given(steps)
    def check(program):
        outcomes = []
        for is_eager in (True, False):
            mg.manual_seed(5)
            world = World()
            for _ in range(2):
                world.w.grad = None
                try:
                    if is_eager:
                        found, total = world.step(program, world.x)
                    else:
                        captured = capture(world.step, (program, world.x))
                        assert captured.escaped() is None
                        found, total = run_captured(captured)
                except (errors.InPlaceError, errors.SavedValueModifiedError) as error:
                    note(str(error))
                    outcomes.append(type(error).__name__)
                    break
            else:
                values = [v.detach().numpy().copy() for v in (*found, total)]
                outcomes.append((values, world.state()))
        eager, recorded = outcomes
        if isinstance(eager, str) or isinstance(recorded, str):
            assert isinstance(recorded, str), eager
            assert eager == recorded
            seen[eager] += 1
            return
        seen["right"] += 1
        for a, b in zip(eager[0], recorded[0], strict=True):
            np.testing.assert_allclose(a, b, 1e-12, 1e-12)
        for a, b in zip(eager[1][0], recorded[1][0], strict=True):
            np.testing.assert_allclose(a, b, 1e-12, 1e-12)
        assert eager[1][1] == recorded[1][1]
        np.testing.assert_allclose(eager[1][2], recorded[1][2], 1e-11, 1e-11)

    check()
    assert seen["right"] > 50
