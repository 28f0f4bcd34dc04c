"""Several schedules on one optimizer: PyTorch's rates, groups, saving, copies, compiled steps."""

import copy
import gc
import json
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn, optim

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "schedules.json").read_text(encoding="utf-8")
)
MAKE = {
    "Constant": lambda o: optim.Constant(o, 0.5, 4),
    "StepDecay": lambda o: optim.StepDecay(o, 3, 0.5),
    "ExponentialDecay": lambda o: optim.ExponentialDecay(o, 0.9),
    "CosineDecay": lambda o: optim.CosineDecay(o, 20),
    "LinearWarmup": lambda o: optim.LinearWarmup(o, 4, 0.25),
    "ReduceOnPlateau": lambda o: optim.ReduceOnPlateau(o, 0.5, 1, minimum=1e-4),
    "WarmupCosine": lambda o: optim.WarmupCosine(o, 3, 20),
}
PAIRS = [(first, second) for first in MAKE for second in MAKE]


def make_optimizer(rates=tuple(GOLDEN["peaks"])):
    return optim.SGD([{"parameters": [nn.Parameter([1.0])], "learning_rate": r} for r in rates])


def rates_of(optimizer):
    return [group.learning_rate for group in optimizer.groups]


def advance(schedules, loss):
    for schedule in schedules:
        schedule.step(*[loss] if isinstance(schedule, optim.ReduceOnPlateau) else [])


def run(optimizer, schedules, losses=GOLDEN["losses"]):
    seen = []
    for loss in losses:
        seen.append(rates_of(optimizer))
        advance(schedules, loss)
    return seen


@pytest.mark.parametrize("pair", GOLDEN["chained"])
def test_two_schedules_together_have_pytorchs_rates(pair):
    optimizer = make_optimizer()
    schedules = [MAKE[name](optimizer) for name in pair.split()]
    np.testing.assert_allclose(run(optimizer, schedules), GOLDEN["chained"][pair], rtol=1e-12)


@pytest.mark.parametrize("pair", GOLDEN["sequential"])
def test_a_sequence_has_pytorchs_rates(pair):
    optimizer = make_optimizer()
    parts = [MAKE[name](optimizer) for name in pair.split()]
    schedule = optim.Sequence(optimizer, parts, [GOLDEN["milestone"]])
    np.testing.assert_allclose(run(optimizer, [schedule]), GOLDEN["sequential"][pair], rtol=1e-9)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_pair_goes_on_from_its_state(first, second):
    one, other = make_optimizer(), make_optimizer((1.0, 2.0))
    before = [MAKE[name](one) for name in (first, second)]
    losses = GOLDEN["losses"]
    run(one, before, losses[:5])
    saved = json.loads(json.dumps([schedule.state_dict() for schedule in before]))
    after = [MAKE[name](other) for name in (first, second)]
    other.load_state_dict(one.state_dict())
    for schedule, state in zip(after, saved, strict=True):
        schedule.load_state_dict(state)
    assert run(other, after, losses[5:]) == run(one, before, losses[5:])


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_pair_of_copies_goes_on_by_itself(first, second):
    optimizer = make_optimizer()
    schedules = [MAKE[name](optimizer) for name in (first, second)]
    run(optimizer, schedules, GOLDEN["losses"][:5])
    copied, *others = copy.deepcopy([optimizer, *schedules])
    before = rates_of(optimizer)
    seen = run(copied, others, GOLDEN["losses"][5:])
    assert rates_of(optimizer) == before
    assert seen == run(optimizer, schedules, GOLDEN["losses"][5:])


def test_warmup_and_decay_train():
    w = nn.Parameter([1.0])
    optimizer = optim.SGD([w], learning_rate=0.5)
    warmup, decay = optim.LinearWarmup(optimizer, 2), optim.CosineDecay(optimizer, 8)
    rates = []
    for _ in range(4):
        rates.append(optimizer.learning_rate)
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        warmup.step()
        decay.step()
    shares = [0.0, 0.5, 1.0, 1.0]
    wanted = [0.5 * s * (1 + np.cos(np.pi * t / 8)) / 2 for t, s in enumerate(shares)]
    assert rates == pytest.approx(wanted)
    assert w.item() < 0.5


@pytest.mark.parametrize("name", sorted(MAKE.keys() - {"ReduceOnPlateau"}))
def test_pairs_inside_a_compiled_step_have_the_rates_of_eager(name):
    found = []
    for wrapped in (lambda f: f, mg.compile):
        w = nn.Parameter([1.0])
        optimizer = optim.SGD([w], learning_rate=0.5)
        warmup, other = optim.LinearWarmup(optimizer, 3), MAKE[name](optimizer)

        @wrapped
        def step(w=w, optimizer=optimizer, warmup=warmup, other=other):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            warmup.step()
            other.step()

        rates = []
        for _ in range(6):
            step()
            rates.append((optimizer.learning_rate, w.item()))
        found.append(rates)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    assert found[0][0][1] == 1.0
    assert found[0][-1][1] < 1.0


def test_a_rate_set_by_hand_ends_the_chain_at_the_next_schedule():
    optimizer = make_optimizer((1.0,))
    old = optim.StepDecay(optimizer, 1, 0.5)
    old.step()
    optimizer.learning_rate = 0.2
    new = optim.StepDecay(optimizer, 1, 0.1)
    assert optimizer.learning_rate == 0.2
    new.step()
    assert optimizer.learning_rate == pytest.approx(0.02)
    with pytest.raises(errors.StateError, match="set by hand"):
        old.step()


def test_a_schedule_in_the_place_of_another_starts_from_its_rate_whether_or_not_it_is_kept():
    found = []
    for is_kept in (True, False):
        optimizer = make_optimizer((1.0,))
        schedule = first = optim.StepDecay(optimizer, 1, 0.5)
        first.step()
        if not is_kept:
            del first
        schedule = optim.ExponentialDecay(optimizer, 0.9)
        gc.collect()
        schedule.step()
        found.append(optimizer.learning_rate)
    assert found == [0.45, 0.45]


def test_a_rate_of_zero_that_nothing_can_raise_is_refused():
    optimizer = make_optimizer((1.0,))
    done = optim.CosineDecay(optimizer, 2)
    done.step()
    done.step()
    with pytest.raises(errors.StateError, match="brought the learning rate to 0"):
        optim.StepDecay(optimizer, 5)
    optimizer.learning_rate = 0.5
    optim.StepDecay(optimizer, 5)
    del done
    optimizer = make_optimizer((1.0,))
    optim.LinearWarmup(optimizer, 5)  # dropped at once: its rate of 0 is what stays
    alone = optim.CosineDecay(optimizer, 5)
    with pytest.raises(errors.StateError, match="nothing trains"):
        alone.step()
    assert alone.t == 0


def test_the_state_of_another_chain_is_refused():
    optimizer = make_optimizer()
    first, second = optim.StepDecay(optimizer, 1), optim.ExponentialDecay(optimizer, 0.5)
    alone = optim.ExponentialDecay(make_optimizer(), 0.5)
    for schedule, state in ((alone, second.state_dict()), (second, alone.state_dict())):
        with pytest.raises(errors.StateError, match="other schedules"):
            schedule.load_state_dict(state)
    with pytest.raises(errors.StateError):
        first.load_state_dict({"schedule": "StepDecay"})


def test_a_sequence_of_three_saves_and_refuses():
    def make(rates):
        optimizer = make_optimizer(rates)
        names = ("LinearWarmup", "Constant", "CosineDecay")
        parts = [MAKE[name](optimizer) for name in names]
        return optimizer, optim.Sequence(optimizer, parts, [3, 6])

    optimizer, schedule = make((1.0, 0.5))
    assert optimizer.learning_rate == 0.25
    run(optimizer, [schedule], range(5))
    other, again = make((3.0, 4.0))
    again.load_state_dict(schedule.state_dict())
    assert run(other, [again], range(9)) == run(optimizer, [schedule], range(9))
    with pytest.raises(errors.StateError, match="part of a Sequence"):
        schedule.schedules[0].step()
    optimizer = make_optimizer()
    fresh = [MAKE["StepDecay"](optimizer), MAKE["Constant"](optimizer)]
    for parts, milestones in ((fresh, [1, 2]), ([], []), (fresh, [0]), (fresh, "a"), (3, [])):
        with pytest.raises(errors.MinigradError):
            optim.Sequence(optimizer, parts, milestones)
    with pytest.raises(errors.ArgumentTypeError, match="the step alone"):
        optim.Sequence(optimizer, [MAKE["ReduceOnPlateau"](optimizer)], [])


def test_schedules_and_optimizers_are_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        import weakref

        optimizer = make_optimizer()
        schedules = [MAKE[name](optimizer) for name in MAKE]
        dying = [weakref.ref(optimizer), *map(weakref.ref, schedules)]
        del optimizer, schedules
        assert not any(reference() for reference in dying)
    finally:
        gc.enable()


def test_a_schedule_that_cannot_be_made_leaves_those_before_it_as_they_were():
    def factor(t):
        if broken:
            raise RuntimeError("broken")
        return 1 / (1 + t)

    broken = []
    optimizer = optim.SGD([mg.nn.Parameter([1.0])], learning_rate=0.8)
    first, second = optim.StepDecay(optimizer, 1, 0.5), optim.LambdaSchedule(optimizer, factor)
    broken.append(True)
    with pytest.raises(RuntimeError):
        optim.Sequence(optimizer, [second], [])
    broken.clear()
    first.step(), second.step()
    assert optimizer.learning_rate == 0.2
    optimizer.learning_rate = 0.3
    broken.append(True)
    with pytest.raises(RuntimeError):
        optim.LambdaSchedule(optimizer, factor)
    broken.clear()
    first.step()
    assert optimizer.learning_rate == 0.1
