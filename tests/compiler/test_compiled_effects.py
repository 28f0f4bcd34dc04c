"""What compiled functions write, and what they leave as it was where they fail."""

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import BoundsError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def values(*shape, seed=0):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"))


class TestWrites:
    def test_copies_on_write_and_versions(self):
        h = mg.zeros((3,))
        step = mg.compile(lambda x: h.add_(x))
        clones = []
        for k in range(6):
            clones.append(h.clone())
            assert step(mg.ones((3,))) is h
            assert h.version == k + 1
        assert [c.tolist()[0] for c in clones] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert h.tolist() == [6.0] * 3

    def test_of_an_argument(self):
        step = mg.compile(lambda x, y: x.mul_(y))
        for k in range(4):
            x = mg.ones((2,))
            twin = x.clone()
            assert step(x, mg.full((2,), 3.0)) is x
            assert (x.tolist(), twin.tolist(), x.version) == ([3.0, 3.0], [1.0, 1.0], 1), k

    def test_a_saved_value_that_a_step_wrote_is_found_with_its_line(self):
        h = mg.ones((2,))
        w = mg.variable([1.0, 2.0], requires_grad=True)
        step = mg.compile(lambda: h.add_(1.0))
        step(), step()
        y = (w * h).sum()
        step()  # this line
        with pytest.raises(mg.errors.SavedValueModifiedError, match="this line"):
            y.backward()

    def test_numpy_sees_the_writes(self):
        h = mg.ones((2,))
        shown = h.numpy(writable=True)
        step = mg.compile(lambda: h.add_(1.0))
        for _ in range(3):
            step()
        assert shown.tolist() == [4.0, 4.0]

    def test_schedules_move_the_learning_rate(self):
        found = []
        for compile in (lambda f: f, mg.compile):
            w = nn.Parameter([1.0])
            optimizer = optim.SGD([w], learning_rate=0.5)
            schedule = optim.CosineDecay(optimizer, 10)

            def step(x, w=w, optimizer=optimizer, schedule=schedule):
                optimizer.zero_grad()
                (w * x).sum().backward()
                optimizer.step()
                schedule.step()

            step = compile(step)
            for _ in range(5):
                step(mg.ones((1,)))
            found.append((w.item(), optimizer.learning_rate, schedule.t))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6)

    def test_a_learning_rate_set_between_the_calls_is_used(self):
        w = nn.Parameter([1.0])
        optimizer = optim.SGD([w], learning_rate=1.0)

        @mg.compile
        def step():
            w.grad = None
            w.sum().backward()
            optimizer.step()

        for _ in range(3):
            step()
        assert w.item() == -2.0
        optimizer.learning_rate = 0.5
        step()
        assert w.item() == -2.5
        assert len(step.traces) == 1


class TestChecks:
    def test_with_nothing_written_the_usual_error_is_raised(self):
        x = values(3, 4)
        step = mg.compile(lambda y: mg.cross_entropy(x, y))
        for _ in range(3):
            step(mg.variable([0, 1, 2]))
        with pytest.raises(mg.errors.MinigradError) as eager:
            mg.cross_entropy(x, mg.variable([0, 1, 9]))
        with pytest.raises(type(eager.value)) as caught:
            step(mg.variable([0, 1, 9]))
        assert caught.value.wanted == eager.value.wanted
        assert caught.value.got == eager.value.got
        assert step(mg.variable([0, 1, 2])).size == 1

    def test_versions_are_as_before(self):
        h = mg.zeros((3,))

        @mg.compile
        def step(i):
            picked = values_of[i]
            h.copy_(picked.reshape((3,)))

        values_of = mg.variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        for k in range(3):
            step(mg.variable([k % 2]))
        before = h.version
        with pytest.raises(BoundsError):
            step(mg.variable([7]))
        assert h.version == before

    def test_after_a_write_it_is_said_what_was_written(self):
        w = nn.Parameter([1.0, 2.0, 3.0], name="table")
        with mg.no_grad():

            @mg.compile
            def step(x, i):
                w.add_(x)
                return w[i]

            for _ in range(3):
                step(mg.ones((3,)), mg.variable([0]))
            with pytest.raises(BoundsError) as caught:
                step(mg.ones((3,)), mg.variable([5]))
            assert step(mg.ones((3,)), mg.variable([0])).tolist() == [6.0]
        assert "updated before" in str(caught.value)
        assert "add" in str(caught.value)
        assert "test_compiled_effects.py" in str(caught.value)
        assert "by add_ at test_compiled_effects.py" in str(caught.value)
        assert w.tolist() == [6.0, 7.0, 8.0]


def test_without_memory_nothing_is_changed():
    h = mg.zeros((1000,))

    @mg.compile
    def step(x):
        h.add_(1.0)
        mg.rand((1,))
        return x * 2.0, x * 3.0

    gc.collect()
    mg.memory.trim()
    stats = mg.memory.stats()  # what other tests have left free must not be enough for a result
    n = (stats["reserved_bytes"] - stats["current_bytes"]) // 4 + 300_000
    x = mg.ones((n,))
    for _ in range(5):
        step(x)
    before = h.version, h.tolist(), mg.rand((1,)).item()
    gc.collect()
    mg.memory.trim()
    stats = mg.memory.stats()
    mg.memory.set_limit(stats["reserved_bytes"] + 6 * n)
    try:
        with pytest.raises(mg.errors.OutOfMemoryError):
            step(x)
    finally:
        mg.memory.set_limit(None)
    assert (h.version, h.tolist()) == before[:2]
    assert mg.memory.stats()["current_bytes"] == stats["current_bytes"]
    assert step(x)[1].tolist()[:2] == [3.0, 3.0]
