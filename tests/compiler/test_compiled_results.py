"""What compiled functions return."""

import collections
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def values(*shape, seed=0):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"))


class TestResults:
    def test_views_of_arguments_and_results_come_as_copies(self):
        w = nn.Parameter([[1.0, 2.0], [3.0, 4.0]])

        @mg.compile
        def step(x):
            y = x * 2.0
            return x[0], y, y.T, w[1].detach()

        x = mg.ones((2, 2))
        for k in range(4):
            row, y, turned, of_weight = step(x)
            if k:
                row.zero_()
                y.zero_()
            of_weight.fill_(float(k))
            assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
            assert turned.tolist() == [[2.0, 2.0], [2.0, 2.0]]
            assert w.tolist()[1] == [k, k]  # what lies outside is itself

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
