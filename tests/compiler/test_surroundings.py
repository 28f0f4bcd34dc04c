"""Numbers that a step finds in closures, globals and attributes, and that change between calls."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import RetraceWarning

pytestmark = pytest.mark.usefixtures("interpreted_plans")
TEMPERATURE = 1.0
COUNT = 0
X = mg.ones((2,))


@pytest.fixture(autouse=True)
def no_warning():
    """Numbers that change are no reason to trace often."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetraceWarning)
        yield


def is_near(got, wanted):
    """Whether a result holds one number."""
    return np.allclose(got.numpy(), wanted, 1e-6)


def test_global_that_changes_is_one_program():
    global TEMPERATURE
    step = mg.compile(lambda x: x / TEMPERATURE)
    for k in range(20):
        TEMPERATURE = 0.9**k
        assert is_near(step(X), 1 / TEMPERATURE)
        assert type(TEMPERATURE) is float
    assert len(step.traces) == 2  # one with the first value


def test_number_of_the_enclosing_function_is_one_program():
    beta, count = 1.0, 1

    @mg.compile
    def step(x):
        return x * beta + sum(x * beta for _ in range(2)) / count

    for k in range(20):
        beta, count = 0.9**k, k + 1
        assert is_near(step(X), beta + 2 * beta / count)
    assert len(step.traces) == 2  # one with the first value


def test_numbers_of_functions_that_the_step_calls_are_seen():
    rate = 1.0

    def helper(x):
        return x * rate

    class Work:
        def __init__(self):
            self.weight = 1.0

        def run(self, x):
            return helper(x) * self.weight

    work = Work()
    step = mg.compile(mg.no_grad()(lambda x: work.run(x)))
    for k in range(20):
        rate, work.weight = 0.5 + k, 2.0 + k
        assert is_near(step(X), rate * work.weight)
    assert len(step.traces) == 2  # one with the first value


class Config:
    beta = 1.0


class Trainer:
    def __init__(self):
        self.temperature, self.config, self.calls = 1.0, Config(), 0
        self.config.beta = 2

    def loss(self, x):
        return x * self.temperature + self.config.beta

    @mg.compile
    def step(self, x):
        self.calls += 1
        return self.loss(x) * self.temperature


def test_attributes_of_plain_objects_are_seen_through_methods():
    one, two = Trainer(), Trainer()
    before = len(Trainer.step.traces)
    for k in range(12):
        one.temperature, one.config.beta, two.temperature = 0.9**k, k, 0.8**k
        assert is_near(one.step(X), (0.9**k + k) * 0.9**k)
        assert is_near(two.step(X), (0.8**k + 2) * 0.8**k)
    assert (
        len(Trainer.step.traces) - before == 4
    )  # each object has its own, and one with its first value


def test_numbers_that_the_step_itself_writes_are_done_while_tracing():
    @mg.compile
    def step(x):
        global COUNT
        COUNT += 1
        return x * 2.0

    for _ in range(10):
        step(X)
    assert COUNT == 4  # calls 1, 3, 5, 9
    assert len(step.traces) == 1
    trainer = Trainer()
    for _ in range(10):
        trainer.step(X)
    assert trainer.calls == 5


class Scaled(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(np.ones(2, np.float32))
        self.temperature, self.power = 1.0, 1

    def forward(self, x):
        return (x * self.weight / self.temperature) ** self.power


def test_numbers_of_modules_are_one_program_however_deep():
    model = nn.Sequential(nn.Sequential(), nn.Sequential(Scaled()), nn.Dropout(0.5))
    optimizer = mg.optim.SGD(model, learning_rate=0.0)

    @mg.compile
    def step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    model[2].p = 0.0
    for k in range(20):
        model[1][0].temperature, model[1][0].power = 1.0 + k, 1 + k % 3
        assert is_near(step(X), 2 * (1 / (1.0 + k)) ** (1 + k % 3))
        assert type(model[1][0].temperature) is float
    assert len(step.traces) == 2  # one with the first value
    for k in range(8):  # beside the two modes
        model.train(k % 2 == 0)
        model[1][0].temperature = 2.0 + k
        step(X)
    assert len(step.traces) == 3


def test_other_attributes_of_modules_lead_to_a_new_trace_as_before():
    model = Scaled()
    step = mg.compile(mg.no_grad()(lambda x: model(x)))
    for power in (1, 2, 2.0, 3.0):  # another type is another attribute
        model.power = power
        model.temperature = 2.0
        for _ in range(3):
            assert is_near(step(X), 0.5**power)


def test_branches_by_numbers_outside_hold_at_each_call():
    epoch, model = 0, Scaled()
    step = mg.compile(lambda x: x * epoch if epoch < 3 and model.temperature > 0 else x - epoch)
    for k in range(8):
        epoch, model.temperature = k, 4.0 - k
        assert is_near(step(X), k if k < 3 else 1 - k)
    assert len(step.traces) == 3


def test_number_that_becomes_something_else_is_found():
    scale = 1.0
    step = mg.compile(lambda x: x * scale)
    for value in (1.0, 2.0, 3.0, True, False, np.float32(6.0), 7, True, 2.5):
        scale = value
        assert is_near(step(X), float(value))


def test_errors_of_a_step_leave_numbers_outside_as_they_were():
    rate, x = 1.0, mg.ones((2, 3))
    step = mg.compile(lambda x: (x * rate) @ x)
    for k in range(5):
        rate = 1.0 + k
        with pytest.raises(mg.errors.ShapeError):
            step(x)
        assert type(rate) is float
        assert is_near(step(mg.ones((2, 2))), 2 * rate)


def test_entries_of_dicts_and_lists_that_the_code_names_are_one_program():
    config = {"loss": {"beta": 1.0}, "rates": [1.0, 2.0], 3: 1.0}

    class Work:
        def __init__(self):
            self.config = config

        @mg.compile
        def step(self, x):
            scale = x * self.config["loss"]["beta"] * config["rates"][-1] * config[3]
            return scale if config.get("never") is None else x

    work = Work()
    for k in range(20):
        config["loss"]["beta"], config["rates"][1], config[3] = 0.9**k, 1.0 + k, 2.0 + k
        assert is_near(work.step(X), 0.9**k * (1.0 + k) * (2.0 + k))
    assert len(Work.step.traces) == 2  # one with the first values


def test_an_entry_that_is_gone_raises_as_python_does():
    scales, names = [1.0, 2.0], {"a": 1.0}
    step = mg.compile(lambda x: x * scales[1] * names["a"])
    assert is_near(step(X), 2.0)
    scales.pop()
    with pytest.raises(IndexError):
        step(X)
    scales.append(3.0)
    assert is_near(step(X), 3.0)
    del names["a"]
    with pytest.raises(KeyError):
        step(X)


def test_entries_that_the_step_counts_are_left_alone():
    counts = {"calls": 0, "again": 0, "rate": 1.0}

    @mg.compile
    def step(x):
        counts["calls"] = counts["calls"] + 1
        counts["again"] += counts["calls"] > 0
        return x * counts["rate"]

    for k in range(6):
        counts["rate"] = 1.0 + k
        assert is_near(step(X), 1.0 + k)
    assert 1 <= counts["calls"] < 6
    assert len(step.traces) == 2


def test_entries_of_arguments_are_numbers_among_the_arguments():
    step = mg.compile(lambda x, config: x * config["rate"])
    for k in range(6):
        assert is_near(step(X, {"rate": 1.0 + k}), 1.0 + k)
    assert len(step.traces) == 2
