"""Gradients that compiled functions find, and those that they leave behind."""

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


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
