"""Schedules against their formulas."""

import json
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn
from minigrad.optim import schedules


def optimizer(*rates):
    return mg.optim.SGD([{"parameters": [nn.Parameter([1.0])], "learning_rate": r} for r in rates])


def rates(make, steps, rate=0.5):
    target = optimizer(rate)
    schedule = make(target)
    seen = []
    for _ in range(steps):
        seen.append(target.learning_rate)
        schedule.step()
    return seen


FORMULAS = {
    "constant": (lambda o: schedules.Constant(o, 0.5, 3), lambda t: 0.25 if t < 3 else 0.5),
    "step": (lambda o: schedules.StepDecay(o, 3, 0.1), lambda t: 0.5 * 0.1 ** (t // 3)),
    "lambda": (
        lambda o: schedules.LambdaSchedule(o, lambda t: 1 / (1 + t)), lambda t: 0.5 / (1 + t),
    ),
    "exponential": (lambda o: schedules.ExponentialDecay(o, 0.9), lambda t: 0.5 * 0.9**t),
    "cosine": (
        lambda o: schedules.CosineDecay(o, 8, 0.1),
        lambda t: 0.1 + 0.2 * (1 + math.cos(math.pi * t / 8)),
    ),
    "linear": (lambda o: schedules.LinearWarmup(o, 4, 0.2), lambda t: 0.5 * min(1, 0.2 + 0.2 * t)),
    "warm-up": (
        lambda o: schedules.WarmupCosine(o, 4, 12, 0.1),
        lambda t: 0.5 * (t + 1) / 4
        if t < 4
        else 0.1 + 0.2 * (1 + math.cos(math.pi * min(t - 4, 8) / 8)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_schedule_follows_its_formula(name):
    make, formula = FORMULAS[name]
    assert rates(make, 16) == pytest.approx([formula(t) for t in range(16)], rel=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_schedule_goes_on_from_its_state(name):
    make, _ = FORMULAS[name]
    first = optimizer(0.5)
    schedule = make(first)
    for _ in range(5):
        schedule.step()
    second = optimizer(0.7)
    again = make(second)
    again.load_state_dict(schedule.state_dict())
    for _ in range(6):
        assert second.learning_rate == first.learning_rate
        schedule.step()
        again.step()


def test_groups_keep_their_own_peaks():
    target = optimizer(1.0, 0.1)
    schedule = schedules.StepDecay(target, every=1, factor=0.5)
    schedule.step()
    assert [g.learning_rate for g in target.groups] == [0.5, 0.05]


def test_reduce_on_plateau_waits_and_reduces():
    target = optimizer(1.0)
    schedule = schedules.ReduceOnPlateau(target, factor=0.5, patience=2, minimum=0.2)
    seen = []
    for value in [5.0, 4.0, 4.0, 4.0, 3.99999, 3.0, 3.0, 3.0, 3.0, 9.0, 9.0, 9.0, 9.0]:
        schedule.step(value)
        seen.append(target.learning_rate)
    assert seen == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2]
    again = schedules.ReduceOnPlateau(optimizer(1.0), factor=0.5, patience=2, minimum=0.2)
    again.load_state_dict(schedule.state_dict())
    assert again.optimizer.learning_rate == 0.2
    assert (again.best, again.waited) == (schedule.best, schedule.waited)


def test_reduce_on_plateau_of_an_accuracy():
    target = optimizer(1.0)
    schedule = schedules.ReduceOnPlateau(target, factor=0.1, patience=0, mode="max")
    for value, rate in [(0.5, 1.0), (0.6, 1.0), (0.6, 0.1), (0.7, 0.1), (0.2, 0.01)]:
        schedule.step(value)
        assert target.learning_rate == pytest.approx(rate)


def test_training_with_a_schedule_steps_by_its_rates():
    p = nn.Parameter([0.0])
    target = mg.optim.SGD([p], learning_rate=1.0)
    schedule = schedules.ExponentialDecay(target, 0.5)
    for _ in range(3):
        p.grad = mg.ones((1,))
        target.step()
        schedule.step()
    assert p.item() == -1.75


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: schedules.StepDecay(3, 1), errors.ArgumentTypeError, "an optimizer"),
        (lambda: schedules.StepDecay(optimizer(1.0), 0), errors.ArgumentError, "every"),
        (lambda: schedules.StepDecay(optimizer(1.0), 1.5), errors.ArgumentTypeError, "an int"),
        (lambda: schedules.ExponentialDecay(optimizer(1.0), 1.5), errors.ArgumentError, "factor"),
        (lambda: schedules.CosineDecay(optimizer(1.0), 5, -1.0), errors.ArgumentError, "minimum"),
        (lambda: schedules.WarmupCosine(optimizer(1.0), 5, 5), errors.ArgumentError, "warmup <"),
        (
            lambda: schedules.ReduceOnPlateau(optimizer(1.0)).step(math.nan),
            errors.ArgumentError, "other than NaN",
        ),
        (
            lambda: schedules.ReduceOnPlateau(optimizer(1.0), mode="x"),
            errors.ArgumentError, "'max'",
        ),
        (
            lambda: schedules.StepDecay(optimizer(1.0), 1).load_state_dict(
                schedules.Constant(optimizer(1.0)).state_dict()
            ),
            errors.StateError, "Constant",
        ),
        (
            lambda: schedules.StepDecay(optimizer(1.0), 1).load_state_dict(
                schedules.StepDecay(optimizer(1.0, 2.0), 1).state_dict()
            ),
            errors.StateError, "wanted 1 groups",
        ),
    ],
)  # fmt: skip
def test_bad_arguments_raise(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_lambda_schedule_multiplies_each_peak_chains_and_saves():
    target = optimizer(0.5, 2.0)
    warmup = schedules.LinearWarmup(target, 4, 0.5)
    schedule = schedules.LambdaSchedule(target, lambda t: 0.9**t)
    for _ in range(2):
        schedule.step()
        warmup.step()
    assert [g.learning_rate for g in target.groups] == pytest.approx([0.5 * 0.6075, 2.0 * 0.6075])
    again = schedules.LambdaSchedule(other := optimizer(0.5), lambda t: 0.9**t)
    again.load_state_dict({"schedule": "LambdaSchedule", "t": 3, "peaks": [0.5]})
    assert other.learning_rate == pytest.approx(0.5 * 0.9**3)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (3, errors.ArgumentTypeError, "lambda t: 0.9"),
        (lambda t: -1.0, errors.ArgumentError, "at least 0"),
        (lambda t: math.nan, errors.ArgumentError, "at least 0"),
        (lambda t: "0.1", errors.ArgumentTypeError, "what the function returns"),
    ],
)
def test_lambda_schedule_checks_its_function(function, error, message):
    with pytest.raises(error, match=message):
        schedules.LambdaSchedule(optimizer(0.5), function)


def test_lambda_schedule_runs_in_a_compiled_step():
    target = optimizer(0.5)
    schedule = schedules.LambdaSchedule(target, lambda t: 1 / (1 + t))

    @mg.compile
    def step(x):
        schedule.step()
        return x * 2.0

    for _ in range(3):
        step(mg.ones((2,)))
    assert target.learning_rate == pytest.approx(0.125)


def test_group_that_outlives_its_optimizer_says_so():
    group = optimizer(0.5).groups[0]
    assert group.learning_rate == 0.5
    for use in (lambda: setattr(group, "learning_rate", 0.1), lambda: group["lr"], group.update):
        with pytest.raises(errors.StateError, match="keep the optimizer"):
            use()
    kept = optimizer(0.5)
    kept.groups[0].learning_rate = 0.25
    assert kept.learning_rate == 0.25


MADE = {
    "StepDecay": lambda o: schedules.StepDecay(o, 2, 0.5),
    "WarmupCosine": lambda o: schedules.WarmupCosine(o, 2, 8),
    "ReduceOnPlateau": lambda o: schedules.ReduceOnPlateau(o, 0.5, 0),
    "Sequence": lambda o: schedules.Sequence(
        o, [schedules.LinearWarmup(o, 2), schedules.StepDecay(o, 2, 0.5)], [2]
    ),
    "a chain": lambda o: [schedules.LinearWarmup(o, 2), schedules.StepDecay(o, 2, 0.5)][1],
}


def stepped(schedule, count):
    for _ in range(count):
        schedule.step(*[1.0] * isinstance(schedule, schedules.ReduceOnPlateau))
    return schedule.optimizer.learning_rate


@pytest.mark.parametrize("name", MADE)
def test_a_state_that_went_through_json_continues(name):
    schedule, again = (MADE[name](optimizer(0.5)) for _ in range(2))
    stepped(schedule, 3)
    again.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert again.optimizer.learning_rate == schedule.optimizer.learning_rate
    assert stepped(again, 3) == stepped(schedule, 3)


@pytest.mark.parametrize(
    "parts",
    [
        {"t": "3"}, {"t": None}, {"t": -1}, {"peaks": 0.5}, {"peaks": ["0.5"]}, {"peaks": [None]},
        {"peaks": []}, {"before": 3}, {"before": ["a"]}, {"best": "1"}, {"waited": 0.5},
        {"scale": None}, {"t": 10**400}, {"schedule": np.zeros(2)},
    ],
)  # fmt: skip
def test_a_state_of_another_form_is_refused(parts):
    schedule = MADE["ReduceOnPlateau"](optimizer(0.5))
    stepped(schedule, 2)
    before = schedule.state_dict()
    with pytest.raises(errors.MinigradError, match=r"ReduceOnPlateau\.load_state_dict"):
        schedule.load_state_dict({**before, **parts})
    assert schedule.state_dict() == before


@pytest.mark.parametrize(
    "factor", [lambda t: 2.0**t, lambda t: -t, lambda t: 1e200 ** min(t, 2), lambda t: None]
)
def test_a_state_whose_rates_are_refused_sets_nothing(factor):
    adam = optimizer(0.5)
    first = schedules.StepDecay(adam, 2, 0.5)
    last = schedules.LambdaSchedule(adam, lambda t: factor(t) if t else 1.0)
    before, rate = last.state_dict(), adam.learning_rate
    saved = {**before, "t": 5000, "before": [{**first.state_dict(), "t": 1}]}
    with pytest.raises(errors.MinigradError):
        last.load_state_dict(saved)
    assert (last.state_dict(), adam.learning_rate, first.t) == (before, rate, 0)
