"""Random recordings, fused, ordered and laid out in memory, run by NumPy: they mean the same."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from minigrad.compiler.cpu import schedule
from minigrad.compiler.fuse import epilogue, fused_loop, recompute, skinny
from minigrad.compiler.passes import simplify
from minigrad.compiler.program.printing import show
from minigrad.compiler.program.program import CAPTURED, Ref
from minigrad.compiler.program.sketch import Sketch
from tests.compiler import pass_recordings, random_recordings
from tests.compiler.interpreter import execute
from tests.compiler.simulated import Simulation, is_fused

SETTINGS = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,  # rounding can turn a comparison
    phases=(Phase.explicit, Phase.generate),  # to make a failure smaller takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Builder(random_recordings.Builder):
    """Adds chains of products, and formulas of what they made."""

    def __init__(self, draw):
        super().__init__(draw)
        (m, n), self.next = draw(st.sampled_from([(5, 4), (34, 3), (20, 20)])), None
        self.shapes = [(m, n), (m, n), (n,), (m, 1), (n, n)]
        for shape in self.shapes:
            self.source(CAPTURED, shape)

    def product(self):
        """A product; its result is what the next steps work on."""
        m, n = self.shapes[0]
        a, b = self.of_two((m, n)), self.of_two((n, n))
        if a is None or b is None:
            return
        kinds = ["new", "new", "turned", "added"]
        kind, target = self.draw(st.sampled_from(kinds)), self.new((m, n))
        if kind == "turned":
            target = Ref(target.value, (m, n), (1, m))
        elif kind == "added":
            target = self.of_two((m, n))
            if target is None or 0 in target.strides or target.value in (a.value, b.value):
                return
        self.add("matmul", [a, b], [target], accumulate=kind == "added")
        self.next = target

    def of_two(self, shape):
        """An operand of a product."""
        found = [r for r in self.refs if r.shape == shape and r.dtype is self.dtype]
        return self.draw(st.sampled_from(found)) if found else None

    def pick(self, shape=None):
        """Often what was made last."""
        found, self.next = self.next, None
        if found is not None and shape in (None, found.shape) and found.dtype is self.dtype:
            return found
        return super().pick(shape)

    def step(self):
        """One random instruction."""
        kind = self.draw(st.integers(0, 5))
        if kind < 2:
            self.product()
        elif kind == 2:
            self.reduce()
        else:
            super().step()


@st.composite
def made(draw):
    """(recording, contents of memory, dead slices, threads, seed)."""
    which, dead = draw(st.integers(0, 3)), ()
    if which == 0:
        recording, data, dead = draw(pass_recordings.recordings(most=25, plain=True))
    elif which == 1:
        recording, data = draw(random_recordings.recordings())
    else:
        builder = Builder(draw)
        for _ in range(draw(st.integers(1, 20))):
            builder.step()
        recording, data = builder.recording(), dict(builder.data)
        made = {r.value: r for r in builder.refs if r.value.is_temporary and r.covers()}
        chosen = draw(st.lists(st.integers(0, 99), max_size=3)) if made else []
        values = [list(made.values())[k % len(made)] for k in chosen]
        recording.results = list(dict.fromkeys(values))
    if draw(st.booleans()):
        recording, _ = simplify(recording, dead)
    if draw(st.booleans()):
        recording.donated = frozenset(recording.arguments)
    return recording, data, dead, draw(st.integers(1, 2)), draw(st.integers(0, 99))


@pytest.fixture
def no_size_is_too_small(monkeypatch):
    """Small arrays are treated as large ones are."""
    for module, names in (
        (schedule, ("SHARED", "WORTH")),
        (epilogue, ("WORTH", "FEWEST")),
        (recompute, ("LARGE",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, 0)


@pytest.fixture(params=[5, 28])
def arrays(request, monkeypatch):
    """Loops of few arrays, which many values pass through memory between, or of as many as fit."""
    monkeypatch.setattr(fused_loop, "MOST_ARRAYS", request.param)


@pytest.fixture(params=[False, True])
def skinny_products(request, monkeypatch):
    """Products with a small side are BLAS's, or formulas."""
    monkeypatch.setattr(skinny, "WORTH", 0 if request.param else 1 << 30)


def simulated(recording, data, dead, n_threads, seed):
    """The plan of a recording, having done what the interpreter does."""
    memory = {v: x.copy() for v, x in data.items()}
    mine = {v: x.copy() for v, x in data.items()}
    plan = Simulation(recording, mine, n_threads, random.Random(seed))
    got = plan.run()
    with np.errstate(all="ignore"):
        wanted = execute(recording, memory)
    for value, offset, size in dead:
        memory[value][offset : offset + size] = mine[value][offset : offset + size] = 0
    kept = [v for v in data if v not in recording.donated]
    outside = [mine[v] for v in kept], [memory[v] for v in kept]
    for a, b in zip([*got, *outside[0]], [*wanted, *outside[1]], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    return plan


@pytest.mark.usefixtures("no_size_is_too_small", "arrays", "skinny_products")
def test_random_plans_mean_what_their_recordings_mean():
    @SETTINGS
    @given(made())
    def check(case):
        note(show(case[0]))
        simulated(*case)

    check()


def fused(s, x, w):
    """Two formulas in one Loop."""
    return s.exp(s.add(x, w))


def taken_over(s, x, w):
    """tanh writes over the product."""
    return s.matmul(s.tanh(s.matmul(x, w)), w)


def donated(s, x, w):
    """A result in the memory of x."""
    return s.mul(x, w)


def late(s, x, w):
    """A sum to which each thread adds its part."""
    return s.reduce("sum", s.mul(x, w), (0, 1))


def followed(s, x, w):
    """A product with an epilogue."""
    return s.tanh(s.matmul(x, w))


REACHED = {  # what the random plans above are to have tried, and whether a plan has it
    fused: is_fused,
    taken_over: lambda plan: any(v.is_temporary for v in plan.owner.values()),
    donated: lambda plan: any(not v.is_temporary for v in plan.owner.values()),
    late: lambda plan: any(c.kind == "finish" for region in plan.regions for c in region),
    followed: lambda plan: any(getattr(x, "epilogue", None) is not None for x in plan.items),
}


@pytest.mark.usefixtures("no_size_is_too_small", "arrays", "skinny_products")
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("make", REACHED)
def test_what_random_plans_are_to_reach_is_there(make, n_threads):
    s, shape = Sketch(), (20, 20)
    x, w = s.argument(shape), s.captured("w", shape)
    recording = s.recording(make(s, x, w))
    recording.donated = frozenset([x.value])
    rng = np.random.default_rng(0)
    data = {r.value: rng.standard_normal(r.size).astype("f4") for r in (x, w)}
    plan = simulated(recording, data, (), n_threads, 0)
    assert plan.threads == n_threads
    assert REACHED[make](plan) or (make is late and n_threads == 1)
