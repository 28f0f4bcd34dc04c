"""Steps that are traced often: a warning names what changes."""

import math
import warnings

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compiler.trace import retrace
from minigrad.errors import RetraceWarning
from tests.compiler.raising import until_error

pytestmark = pytest.mark.usefixtures("interpreted_plans")


class TestOften:
    @pytest.fixture(autouse=True)
    def every_tracing_counts(self, monkeypatch):
        monkeypatch.setattr(retrace, "COSTLY", 0.0)

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
        assert "argument 0 ('x') has had 6 shapes: (1, 4), (2, 4)" in text
        assert "pad the last batch or drop it" in text
        assert caught[0].filename == __file__

    def test_a_list_that_grows(self):
        step = mg.compile(lambda xs: sum(xs))
        caught = self.warned(step, [(([mg.ones((3,))] * k,), {}) for k in range(1, 9)])
        assert "argument 0 ('xs') has had 6 lengths: 1, 2, 3, ..." in str(caught[0].message)

    def test_a_choice_of_python_is_passed_as_an_argument(self):
        counts = [0]

        @mg.compile
        def step(x):
            counts[0] += 1
            return x * 2.0 + 1.0 if counts[0] > 2 else x * 2.0

        assert "pass what Python chooses by" in until_error(step, mg.ones((1,)))

    def test_numbers(self):
        step = mg.compile(lambda x, lr: x * math.exp(lr))
        caught = self.warned(step, [((mg.ones((1,)),), {"lr": k / 10}) for k in range(8)])
        assert "'lr' is a Python number, changes (0.0, 0.1, 0.2, ...)" in str(caught[0].message)
        assert "mg.variable(lr)" in str(caught[0].message)

    def test_objects(self):
        step = mg.compile(lambda f, x: f(x))
        functions = [lambda x, k=k: x * 2.0 for k in range(20)]
        caught = self.warned(step, [((f, mg.ones((1,))), {}) for f in functions])
        assert "another object at each call" in str(caught[0].message)

    def test_objects_that_live_for_one_call(self):
        model, x = nn.Linear(2, 2), mg.ones((1, 2))
        step = mg.compile(mg.no_grad()(lambda x, model: model(x)))
        caught = self.warned(lambda: step(x, model.valid()), [((), {})] * 30)
        assert len(caught) == 1
        text = str(caught[0].message)
        assert "has run as usual 10 times and has no program: argument 1" in text
        assert "is another object at each call" in text
        assert caught[0].filename == __file__

    def test_objects_that_live_for_some_calls_have_programs(self):
        def call(x):
            model = nn.Linear(2, 2)
            for _ in range(3):
                step(x, model)

        step = mg.compile(mg.no_grad()(lambda x, model: model(x)))
        caught = self.warned(call, [((mg.ones((1, 2)),), {})] * 12)
        assert not [w for w in caught if "has run as usual" in str(w.message)]

    def test_objects_that_are_met_twice_are_fine(self):
        step = mg.compile(lambda f, x: f(x))
        functions = [lambda x, k=k: x * float(k) for k in range(4)]
        calls = [((f, mg.ones((1,))), {}) for f in functions]
        assert not self.warned(step, calls * 10)

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


class TestCosts:
    """Tracings that find an old program count from a tenth of the time on."""

    def spent(self, seconds, every, times=20):
        causes = retrace.Causes()
        for k in range(times):
            causes.spent(k * every, k * every + seconds)
        return causes

    def test_once_an_epoch_costs_little(self):
        assert not self.spent(0.02, every=1.0).are_costly()

    def test_every_few_calls_costs_much(self):
        assert self.spent(0.02, every=0.1).are_costly()

    def test_training_and_evaluation_are_no_reason_to_warn(self):
        model = nn.Dropout(0.5)
        step = mg.compile(lambda x: model(x))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RetraceWarning)
            for k in range(40):
                model.train(k % 2 == 0)
                step(mg.ones((4,)))


def test_compilation_counts_neither_as_tracing_nor_as_use():
    causes = retrace.Causes()
    causes.spent(10.0, 11.0)
    causes.compiled(80.0)
    causes.spent(91.0, 92.0)
    assert causes.are_costly()  # 2 of 2 seconds
    causes.spent(111.0, 112.0)
    assert causes.are_costly()  # 3 of 22
    causes.spent(191.0, 192.0)
    assert not causes.are_costly()  # 4 of 102
