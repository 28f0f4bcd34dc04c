"""Tracing again: what changes unseen raises with both values; what changes often is said."""

import random
import time
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import RetraceWarning, TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def until_error(step, *args, calls=6):
    """The TraceError that one of the next calls raises."""
    for _ in range(calls):
        try:
            step(*args)
        except TraceError as error:
            return str(error)
    pytest.fail("no call raised")


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
        assert "3.0, and 2.0 when it was traced" in text
        assert "x * float(self.t)  # here" in text
        assert "mg.variable(v)" in text

    def test_a_global_number(self):
        scale = [1.0]
        step = mg.compile(lambda x: x + scale[0])
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
        step = mg.compile(lambda x: x + scale[0])
        for _ in range(4):
            step(mg.ones((1,)))
        scale[0] = 2.0
        with pytest.raises(TraceError):
            step(mg.ones((1,)))
        assert [step(mg.ones((1,))).item() for _ in range(4)] == [3.0] * 4

    def test_check_mode_finds_it_at_once(self, monkeypatch):
        monkeypatch.setenv("MINIGRAD_COMPILE", "check")
        scale = [1.0]
        step = mg.compile(lambda x: x + scale[0])
        for _ in range(12):
            step(mg.ones((1,)))
        scale[0] = 2.0
        with pytest.raises(TraceError, match=r"2\.0, and 1\.0"):
            step(mg.ones((1,)))

    def test_a_comparison_that_failed_is_made_up_for(self):
        scale, broken = [1.0], []

        @mg.compile
        def step(x):
            if broken:
                raise ValueError("not now")
            return x + scale[0]

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


class TestPython:
    def test_prints_only_while_traced(self, capsys):
        @mg.compile
        def step(x):
            print("hello")  # noqa: T201
            return x * 2.0

        for _ in range(4):
            step(mg.ones((1,)))
        assert capsys.readouterr().out == "hello\n" * 3  # calls 1, 2 and 3

    def test_printing_a_value_is_refused(self):
        def f(x):
            print(x * 2.0)  # noqa: T201
            return x

        step = mg.compile(f)
        step(mg.ones((1,)))
        assert "print" in until_error(step, mg.ones((1,)))

    def test_a_branch_on_a_value_is_refused(self):
        step = mg.compile(lambda x: x if x.sum() > 0 else -x)
        step(mg.ones((1,)))
        assert "mg.where" in until_error(step, mg.ones((1,)))

    def test_a_kept_value_is_found(self):
        class Model:
            @mg.compile
            def step(self, x):
                self.h = x * 2.0
                return self.h + 1.0

        model = Model()
        model.step(mg.ones((1,)))
        assert "kept outside" in until_error(model.step, mg.ones((1,)))

    @pytest.mark.parametrize("keep", [lambda x: x, lambda x: x.detach(), lambda x: x[:1]])
    def test_a_kept_argument_is_found(self, keep):
        kept = []
        step = mg.compile(lambda x: kept.append(keep(x)) or x * 2.0)
        step(mg.ones((2,)))
        text = until_error(step, mg.ones((2,)))
        assert "argument 0 ('x') is kept" in text or "kept outside" in text

    def test_values_appended_outside_are_found(self):
        losses = []
        step = mg.compile(lambda x: losses.append(x.sum()))
        step(mg.ones((1,)))
        assert "kept outside" in until_error(step, mg.ones((1,)))

    def test_a_list_argument_that_is_changed_is_found(self):
        step = mg.compile(lambda xs: xs.append(1))
        step([mg.ones((1,))])
        assert "changes a list or dict" in until_error(step, [mg.ones((1,))])

    def test_errors_of_the_function_are_the_usual_ones_and_change_nothing(self):
        h = mg.zeros((2,))

        def f(x):
            h.add_(1.0)
            return x @ x

        step = mg.compile(f)
        for _ in range(2):
            with pytest.raises(mg.errors.ShapeError, match="matmul"):
                step(mg.ones((2, 3)))
        assert h.tolist() == [2.0, 2.0]  # run as usual until a call has come to its end
        step(mg.ones((2, 2)))
        version = h.version
        with pytest.raises(mg.errors.ShapeError, match="matmul"):
            step(mg.ones((2, 3)))
        assert (h.tolist(), h.version) == ([3.0, 3.0], version)

    def test_an_attribute_set_inside_is_refused(self):
        model = nn.Linear(2, 2)

        def f(x):
            model.last = [3]
            return x * 1.0

        step = mg.compile(f)
        step(mg.ones((1,)))
        assert "Linear.last" in until_error(step, mg.ones((1,)))


class TestOften:
    def warned(self, step, calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for args, more in calls:
                step(*args, **more)
        return [w for w in caught if w.category is RetraceWarning]

    def test_shapes(self):
        step = mg.compile(lambda x: x * 2.0)
        caught = self.warned(step, [((mg.ones((k, 4)),), {}) for k in range(1, 9)])
        assert len(caught) == 1
        text = str(caught[0].message)
        assert "argument 0 ('x') has had 6 shapes: (2, 4), (3, 4)" in text
        assert "pad the last batch or drop it" in text
        assert caught[0].filename == __file__

    def test_a_list_that_grows(self):
        step = mg.compile(lambda xs: sum(xs))
        caught = self.warned(step, [(([mg.ones((3,))] * k,), {}) for k in range(1, 9)])
        assert "argument 0 ('xs') has had 6 lengths: 2, 3, 4, ..." in str(caught[0].message)

    def test_a_choice_of_python_is_passed_as_an_argument(self):
        counts = [0]

        @mg.compile
        def step(x):
            counts[0] += 1
            return x * 2.0 + 1.0 if counts[0] > 2 else x * 2.0

        assert "pass what Python chooses by" in until_error(step, mg.ones((1,)))

    def test_numbers(self):
        step = mg.compile(lambda x, lr: x * lr)
        caught = self.warned(step, [((mg.ones((1,)),), {"lr": k / 10}) for k in range(8)])
        assert "'lr' is a Python number and changes" in str(caught[0].message)
        assert "mg.variable(lr)" in str(caught[0].message)

    def test_objects(self):
        step = mg.compile(lambda f, x: f(x))
        functions = [lambda x, k=k: x * 2.0 for k in range(20)]
        caught = self.warned(step, [((f, mg.ones((1,))), {}) for f in functions])
        assert "another object at each call" in str(caught[0].message)

    def test_attributes(self):
        model = nn.Linear(1, 1)

        @mg.compile
        def step(x):
            return model(x).detach()

        def call(x):
            model.epoch = [x]
            step(x)

        caught = self.warned(call, [((mg.ones((1, 1)),), {}) for _ in range(9)])
        assert "an attribute of a Module" in str(caught[0].message)

    def test_two_shapes_in_turn_are_fine(self):
        step = mg.compile(lambda x: x * 2.0)
        calls = [((mg.ones((2 + k % 2, 4)),), {}) for k in range(40)]
        assert not self.warned(step, calls)
        assert len(step.traces) == 2

    def test_programs_are_bounded(self):
        step = mg.compile(lambda x: x * 2.0)
        self.warned(step, [((mg.ones((k,)),), {}) for k in range(1, 40)])
        assert len(step.traces) == 16
        assert step(mg.ones((39,))).size == 39
        assert step(mg.ones((3,))).tolist() == [2.0] * 3
