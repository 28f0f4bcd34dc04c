"""copy.deepcopy of an optimizer, alone and with its model: the copy trains the copied model."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn, optim
from tests.optim.reference import FEW

KINDS = {
    **{name: row.make for name, row in FEW.items()},
    "groups": lambda p: optim.Adam(
        [{"parameters": p[0], "learning_rate": 0.1}, {"parameters": p[1], "betas": (0.5, 0.6)}]
    ),
}
SOURCES = {"model": lambda m: m, "parameters": lambda m: list(m.parameters())}
X = mg.variable(np.random.default_rng(0).normal(size=(8, 3)).astype("f4"))


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        (model(X) ** 2.0).mean().backward()
        optimizer.step()


def values(model):
    return [p.numpy().copy() for p in model.parameters()]


def made(kind, source="model"):
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    return model, KINDS[kind](model if kind == "groups" else SOURCES[source](model))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_copy_trains_the_copied_model_to_the_same_bits(kind, source):
    model, optimizer = made(kind, source)
    train(model, optimizer, 3)
    other, copied = copy.deepcopy((model, optimizer))
    before, ids = values(model), {p.id for p in model.parameters()}
    train(other, copied, 3)
    for a, b in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(a, b)  # the copy does not touch the original
    train(model, optimizer, 3)
    for a, b in zip(values(model), values(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not ids & {p.id for p in other.parameters()}
    assert set(copied.state) <= {p.id for p in other.parameters()}
    assert [name for name, _ in copied.named_parameters()] == [
        name for name, _ in optimizer.named_parameters()
    ]
    assert copied.on_orphan == optimizer.on_orphan


def test_copied_alone_it_trains_copies_of_the_parameters():
    model, optimizer = made("Adam")
    train(model, optimizer, 2)
    copied = copy.deepcopy(optimizer)
    before = values(model)
    for p in copied.parameters:
        p.grad = mg.full_like(p, 1.0)
    copied.step()
    for p, q, b in zip(model.parameters(), copied.parameters, before, strict=True):
        assert p is not q
        np.testing.assert_array_equal(p.numpy(), b)
        assert (q.numpy() != b).all()


def test_the_copy_has_numbers_of_its_own():
    model, optimizer = made("groups")
    _, copied = copy.deepcopy((model, optimizer))
    copied.groups[0].learning_rate = 5.0
    assert optimizer.groups[0].learning_rate == 0.1
    assert copied.groups[1].betas == (0.5, 0.6)
    copied.load_state_dict(optimizer.state_dict())
    assert copied.groups[0].learning_rate == 0.1


@pytest.mark.parametrize("kind", FEW)
def test_a_compiled_step_over_copies_trains_them(kind):
    model, optimizer = made(kind)
    train(model, optimizer, 2)
    other, copied = copy.deepcopy((model, optimizer))

    @mg.compile
    def step():
        copied.zero_grad()
        (other(X) ** 2.0).mean().backward()
        copied.step()

    for _ in range(4):
        step()
    train(model, optimizer, 4)
    for a, b in zip(values(model), values(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_an_optimizer_with_orphans_is_not_copied_silently():
    model, optimizer = made("Adam")
    train(model, optimizer, 1)
    model[0].weight = nn.Parameter(mg.zeros((4, 3)))
    with pytest.raises(errors.OrphanParameterError):
        copy.deepcopy((model, optimizer))


def test_an_optimizer_of_ones_own_is_copied_with_its_attributes():
    class Own(optim.SGD):
        pass

    p = nn.Parameter([1.0])
    own = Own([p], 0.5)
    own.history = [1, [2]]
    copied = copy.deepcopy(own)
    assert type(copied) is Own
    copied.history[1].append(3)
    assert own.history == [1, [2]]


@pytest.mark.parametrize("what", ["model", "optimizer", "schedule", "both"])
def test_pickle_and_shallow_copies_say_what_to_do(what):
    model, optimizer = made("Adam")
    schedule = optim.StepDecay(optimizer, 1)
    target = {"model": model, "optimizer": optimizer, "schedule": schedule}.get(what, (model, 1))
    with pytest.raises(errors.ArgumentTypeError, match="state_dict"):
        pickle.dumps(target)
    with pytest.raises(errors.ArgumentTypeError, match="deepcopy"):
        copy.copy(optimizer)


def test_a_manager_is_copied_with_its_parameters():
    model, called = nn.Linear(3, 2), []
    manager = mg.GradManager(model.parameters(), lambda p, g: called.append(p), True)
    other, copied = copy.deepcopy((model, manager))
    assert [*map(id, copied.attached)] == [*map(id, other.parameters())]
    assert copied.keep_empty_grad is True
    with copied:
        copied.backward(other(X).sum())
    assert {*map(id, called)} == {*map(id, other.parameters())}
    assert all(p.grad is not None for p in other.parameters())
    assert all(p.grad is None for p in model.parameters())
    with manager:
        manager.backward(model(X).sum())
        with pytest.raises(errors.GradientError, match="outside"):
            copy.deepcopy(manager)
    assert copy.deepcopy(mg.GradManager()).attached == []


def test_a_schedule_is_copied_with_its_optimizer():
    _, optimizer = made("Adam")
    schedule = optim.StepDecay(optimizer, 1, 0.5)
    schedule.step()
    copied = copy.deepcopy(schedule)
    copied.step()
    assert copied.optimizer.learning_rate == 0.5 * optimizer.learning_rate


def test_state_is_copied_as_values():
    model, optimizer = made("Adam")
    train(model, optimizer, 1)
    p = model[0].weight
    kept = copy.deepcopy(optimizer.state)
    before = optimizer.state[p.id]["first_moment"].numpy().copy()
    train(model, optimizer, 1)
    np.testing.assert_array_equal(kept[p.id]["first_moment"].numpy(), before)
    with pytest.raises(errors.ArgumentTypeError, match="pickle"):
        pickle.dumps(optimizer.state)


def test_a_device_is_copied_and_pickled_by_its_name():
    device = mg.device("simt")
    for each in (copy.copy(device), copy.deepcopy([device])[0], pickle.loads(pickle.dumps(device))):
        with each:
            assert mg.zeros((1,)).device == "simt"


@pytest.mark.parametrize("take", [copy.copy, pickle.dumps])
def test_what_refers_to_others_says_how_to_copy_it(take):
    _, optimizer = made("Adam")
    schedule = optim.StepDecay(optimizer, 1)
    for thing in (mg.GradManager(), optimizer, schedule, optimizer.groups[0]):
        with pytest.raises(errors.ArgumentTypeError, match=r"deepcopy|state_dict"):
            take(thing)
    with pytest.raises(errors.ArgumentTypeError, match="deepcopy"):
        copy.deepcopy(optimizer.groups[0])
