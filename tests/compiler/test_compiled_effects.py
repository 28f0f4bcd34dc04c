"""What compiled functions return and leave behind: results, gradients, writes, failed checks."""

import collections
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import BoundsError, TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def values(*shape, seed=0):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"))


class TestResults:
    def test_structures(self):
        Pair = collections.namedtuple("Pair", "a b")
        w = nn.Parameter([1.0, 1.0])

        @mg.compile
        def step(x, name):
            y = x + 1.0
            w.grad = None
            (w * x).sum().backward()
            norm = optim.clip_grad_norm_([w], 10.0)
            return Pair(y, [x, (y * 2.0,)]), {"name": name, 3: norm, "none": None}

        x = mg.ones((2,))
        for _ in range(4):
            pair, rest = step(x, "n")
            assert type(pair) is Pair
            assert pair.b[0] is x
            assert pair.a.tolist() == [2.0, 2.0]
            assert pair.b[1][0].tolist() == [4.0, 4.0]
            assert rest == {"name": "n", 3: pytest.approx(2**0.5), "none": None}
            assert type(rest[3]) is float

    def test_results_are_new_ones_at_each_call(self):
        step = mg.compile(lambda x: x * 2.0)
        x = mg.ones((3,))
        kept = [step(x) for _ in range(5)]
        assert len({y.data_ptr() for y in kept}) == 5
        kept[3].mul_(0.0)
        assert kept[4].tolist() == [2.0] * 3
        assert kept[4].version == 0

    def test_what_the_function_has_outside_is_returned_itself(self):
        w = nn.Parameter([1.0])
        step = mg.compile(lambda: w)
        assert all(step() is w for _ in range(4))

    def test_memory_is_as_after_eager_calls(self):
        def run(f):
            x = values(64, 64)
            for _ in range(6):
                f(x)
            gc.collect()
            before = mg.memory.stats()["current_bytes"]
            for _ in range(6):
                f(x)
            gc.collect()
            return mg.memory.stats()["current_bytes"] - before

        assert run(lambda x: (x * x).sum()) == run(mg.compile(lambda x: (x * x).sum())) == 0

    def test_random_numbers_go_on_as_usual(self):
        found = []
        for compile in (lambda f: f, mg.compile):
            mg.manual_seed(7)
            step = compile(lambda: mg.rand((3,)) + mg.randn((3,)))
            found.append([step().tolist() for _ in range(4)] + [mg.rand((2,)).tolist()])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-6)

    def test_inference_results_stay_such(self):
        step = mg.compile(lambda x: x * 2.0)
        w = mg.variable([1.0], requires_grad=True)
        with mg.inference():
            results = [step(mg.ones((1,))) for _ in range(4)]
        assert len(step.traces) == 1
        for y in results:
            with pytest.raises(mg.errors.MinigradError, match="inference"):
                w * y

    def test_a_result_with_a_live_graph_is_refused(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: (w * x).sum())
        step(mg.ones((2,)))
        with pytest.raises(TraceError, match="carries a graph") as caught:
            step(mg.ones((2,)))
        assert "test_compiled_effects.py" in str(caught.value)
        with mg.no_grad():
            assert step(mg.ones((2,))).item() == 3.0

    def test_an_argument_with_a_graph_is_refused(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: x * 2.0)
        step(w * 1.0)
        with pytest.raises(TraceError, match=r"argument 0 .*carries a graph"):
            step(w * 1.0)


class TestGradients:
    def test_of_an_argument(self):
        @mg.compile
        def step(x):
            (x * x).sum().backward()

        for k in range(5):
            x = mg.variable([1.0 + k], requires_grad=True)
            step(x)
            assert x.grad.tolist() == [2.0 + 2.0 * k]
        assert len(step.traces) == 1

    def test_accumulate_as_usual(self):
        found = []
        for compile in (lambda f: f, mg.compile):
            w = nn.Parameter([1.0, 2.0])
            step = compile(lambda x, w=w: (w * x).sum().backward())
            for k in range(7):
                step(mg.full((2,), 1.0 + k))
                if k == 4:
                    w.grad = None
            found.append(w.grad.tolist())
        assert found[0] == found[1]

    def test_one_that_somebody_holds_stays_as_it_is(self):
        w = nn.Parameter([1.0])

        @mg.compile
        def step(x):
            w.grad = None
            (w * x).sum().backward()

        held = []
        for k in range(8):
            step(mg.full((1,), float(k)))
            held.append(
                {0: w.grad, 1: w.grad.numpy(), 2: w.grad.detach(), 3: w.grad.clone()}[k % 4]
            )
        shown = [x.tolist() if isinstance(x, mg.Variable) else list(x) for x in held]
        assert shown == [[float(k)] for k in range(8)]

    def test_memory_of_an_old_one_is_used_again(self):
        w = nn.Parameter([1.0])

        @mg.compile
        def step(x):
            w.grad = None
            (w * x).sum().backward()

        for _ in range(6):
            step(mg.ones((1,)))
        before = w.grad.data_ptr()
        step(mg.full((1,), 5.0))
        assert (w.grad.data_ptr(), w.grad.tolist()) == (before, [5.0])


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


class TestAccumulation:
    def test_over_microbatches_needs_two_programs(self):
        found = []
        for compile in (lambda f: f, mg.compile):
            w = nn.Parameter([1.0, 2.0])
            step = compile(lambda x, w=w: (w * w * x).sum().backward())
            for k in range(24):
                if k % 4 == 0:
                    w.grad = None
                step(mg.full((2,), 1.0 + k))
                found.append((compile, w.grad.tolist(), w.grad.version))
        half = len(found) // 2
        assert [f[1] for f in found[half:]] == [f[1] for f in found[:half]]
        assert len(step.traces) == 2

    def test_into_a_gradient_that_somebody_holds_or_cloned(self):
        found = []
        for compile in (lambda f: f, mg.compile):
            w = nn.Parameter([1.0, 2.0])
            step, kept = compile(lambda x, w=w: (w * x).sum().backward()), []
            for k in range(12):
                step(mg.full((2,), 1.0 + k))
                kept.append(w.grad.clone() if k % 2 else w.grad)
                if k % 5 == 4:
                    w.grad = mg.full((2,), 100.0)
            found.append([g.tolist() for g in kept])
        assert found[0] == found[1]

    def test_no_gradient_of_the_traced_call_is_kept(self):
        w = nn.Parameter(np.zeros(1000, "f4"))

        @mg.compile
        def step(x):
            (w * x).sum().backward()

        x = mg.ones((1000,))
        for _ in range(5):
            w.grad = None
            for _ in range(3):
                step(x)
        w.grad = None
        gc.collect()
        before = mg.memory.stats()["current_bytes"]
        step(x)
        gc.collect()
        assert mg.memory.stats()["current_bytes"] == before + 4096

    def test_a_gradient_as_an_argument(self):
        w = nn.Parameter([1.0])

        @mg.compile
        def step(g):
            w.sum().backward()
            return g * 2.0

        step(mg.ones((1,)))
        for _ in range(3):
            assert step(mg.ones((1,))).item() == 2.0
        with pytest.raises(TraceError, match="also reaches its memory"):
            step(w.grad)
        assert w.grad.item() == 4.0
