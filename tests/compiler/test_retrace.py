"""Tracing again: what changes unseen raises with both values."""

import random
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import TraceError
from tests.compiler.raising import until_error

pytestmark = pytest.mark.usefixtures("interpreted_plans")


class TestWhatChanges:
    def test_a_counter(self):
        class Trainer:
            t = 0

            @mg.compile
            def step(self, x):
                self.t += 1
                return x * float(self.t)  # here

        text = until_error(Trainer().step, mg.ones((1,)))
        assert "does something else" in text
        assert "2.0, and 1.0 when it was traced" in text
        assert "x * float(self.t)  # here" in text
        assert "mg.variable(v)" in text

    def test_a_global_number(self):
        scale = [1.0]
        step = mg.compile(lambda x: x + sum(scale))
        for _ in range(2):
            step(mg.ones((1,)))
        scale[0] = 2.0
        assert "2.0, and 1.0" in until_error(step, mg.ones((1,)))

    def test_numpy_random_inside(self):
        rng = np.random.default_rng(0)
        step = mg.compile(lambda x: x + mg.variable(rng.normal(size=3).astype("f4")))
        assert "data that the step makes" in until_error(step, mg.ones((3,)))

    def test_python_random_and_clocks(self):
        assert "when it was traced" in until_error(
            mg.compile(lambda x: x * random.random()), mg.ones((1,))
        )
        assert "when it was traced" in until_error(
            mg.compile(lambda x: x * time.perf_counter()), mg.ones((1,))
        )

    def test_another_array_from_outside(self):
        tables = [mg.full((2,), float(k)) for k in range(9)]

        def take():
            return tables.pop(0)

        text = until_error(mg.compile(lambda x: x + take()), mg.ones((2,)))
        assert "the array from outside" in text
        assert "got: another float32[2] (captured) than when it was traced" in text

    def test_a_list_of_arrays_that_grows(self):
        history = [mg.ones((2,))]

        @mg.compile
        def step(x):
            total = x
            for h in history:
                total = total + h
            return total

        step(mg.ones((2,))), step(mg.ones((2,)))
        history.append(mg.ones((2,)))
        assert "the number of operations" in until_error(step, mg.ones((2,)))

    def test_another_operation(self):
        which = ["exp"]
        step = mg.compile(lambda x: getattr(mg, which[0])(x))
        step(mg.ones((2,))), step(mg.ones((2,)))
        which[0] = "log"
        text = until_error(step, mg.ones((2,)))
        assert "'log', and 'exp'" in text

    def test_a_returned_number_and_structure(self):
        calls = []

        @mg.compile
        def step(x):
            calls.append(0)
            return x, len(calls)

        assert "what the step returns[1]" in until_error(step, mg.ones((1,)))
        step = mg.compile(lambda x: [x] * len(calls) if calls.append(0) is None else None)
        assert "length of what the step returns" in until_error(step, mg.ones((1,)))

    def test_a_schedule_that_is_stepped_now_and_then(self):
        w = nn.Parameter([1.0])
        optimizer = optim.SGD([w], learning_rate=1.0)
        schedule, calls = optim.CosineDecay(optimizer, 10), []

        @mg.compile
        def step():
            calls.append(0)
            if len(calls) % 2:
                schedule.step()

        assert "schedule" in until_error(step)

    def test_after_the_error_the_next_call_is_traced_anew(self):
        scale = [1.0]
        step = mg.compile(lambda x: x + sum(scale))
        for _ in range(4):
            step(mg.ones((1,)))
        scale[0] = 2.0
        with pytest.raises(TraceError):
            step(mg.ones((1,)))
        assert [step(mg.ones((1,))).item() for _ in range(4)] == [3.0] * 4

    def test_check_mode_finds_it_at_once(self, monkeypatch):
        monkeypatch.setenv("MINIGRAD_COMPILE", "check")
        scale = [1.0]
        step = mg.compile(lambda x: x + sum(scale))
        for _ in range(12):
            step(mg.ones((1,)))
        scale[0] = 2.0
        with pytest.raises(TraceError, match=r"2\.0, and 1\.0"):
            step(mg.ones((1,)))

    def test_comparisons_go_on_after_attributes_were_set(self):
        scale, model, x = [1.0], nn.Linear(1, 1), mg.ones((1,))
        step = mg.compile(lambda x: x + sum(scale))
        for k in range(5):
            if k == 4:
                model.note = 1  # before a call that is to be compared
            step(x)
        scale[0] = 2.0
        assert "2.0, and 1.0" in until_error(step, x, calls=12)

    def test_a_comparison_that_failed_is_made_up_for(self):
        scale, broken = [1.0], []

        @mg.compile
        def step(x):
            if broken:
                raise ValueError("not now")
            return x + sum(scale)

        for _ in range(4):
            step(mg.ones((1,)))
        broken.append(True)
        with pytest.raises(ValueError, match="not now"):
            step(mg.ones((1,)))
        broken.clear()
        scale[0] = 2.0
        with pytest.raises(TraceError, match="when it was traced"):
            step(mg.ones((1,)))


class TestWhatDoesNot:
    def test_a_model_and_a_long_run(self):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 2))
        optimizer = optim.AdamW(model, learning_rate=0.01)

        @mg.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            norm = optim.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss, norm, float("nan"), (model[0].weight, None)

        x, y = mg.ones((4, 3)), mg.variable([0, 1, 0, 1])
        for _ in range(34):
            loss, norm, nan, (weight, _) = step(x, y)
        assert nan != nan
        assert weight is model[0].weight
        assert type(norm) is float
        assert len(step.traces) == 1
        assert loss.item() < 0.7

    def test_a_new_closure_that_does_the_same(self):
        step = mg.compile(lambda x: (lambda v: v * 2.0)(x))
        for _ in range(9):
            assert step(mg.ones((1,))).item() == 2.0
