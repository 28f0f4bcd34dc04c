"""Steps of optimizers on the simulated GPU equal those on the CPU."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu import updates
from tests.devices.gpu.machine import Machine
from tests.optim.reference import CASES

RNG = np.random.default_rng(4)
SHAPES = [(3,), (5, 7), (1030,), (0,), (), (2, 2), (4,), (9, 1), (6,), (33, 5)]  # two launches
KEPT = []  # groups know their optimizers weakly


def group_of(rule, **options):
    """The group of an optimizer that nobody else has."""
    optimizer = rule([mg.nn.Parameter([1.0])], **options)
    KEPT.append(optimizer)
    return optimizer.groups[0]


@pytest.mark.parametrize("row", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_equal_the_cpu(row, dtype):
    machine = Machine()
    rng = np.random.default_rng(4)
    parameters = [mg.nn.Parameter(rng.normal(size=s).astype(dtype)) for s in SHAPES]
    optimizer = row.make(parameters, learning_rate=0.1)
    update, values = optimizer.groups[0].update(), optimizer.groups[0].numbers()
    slots = update.slots
    rows = [
        (
            machine.of(p.numpy().copy()), machine.zeros(p.shape, dtype),
            [machine.zeros(p.shape, dtype) for _ in slots], machine.zeros((1,), "float64"),
        )
        for p in parameters
    ]  # fmt: skip
    for _ in range(3):
        gradients = [rng.normal(size=s).astype(dtype) for s in SHAPES]
        for p, g in zip(parameters, gradients, strict=True):
            p.grad = mg.variable(g)
        optimizer.step()
        rows = [(p, machine.of(g), *rest) for (p, _, *rest), g in zip(rows, gradients, strict=True)]
        machine.update(update, rows, values)
    bound = 2e-5 if dtype == "float32" else 1e-12
    for p, (found, _, kept, _) in zip(parameters, rows, strict=True):
        np.testing.assert_allclose(machine.to_numpy(found), p.numpy(), bound, bound)
        for name, slot in zip(slots, kept, strict=True):
            want = optimizer.state[p.id][name].numpy()
            np.testing.assert_allclose(machine.to_numpy(slot), want, bound, bound)


def test_a_centred_square_that_rounding_pushes_below_0_counts_as_0():
    machine = Machine()
    g = RNG.normal(size=64).astype("f4")
    p, kept = machine.zeros((64,), "f4"), [machine.zeros((64,), "f4") for _ in "sa"]
    rule = group_of(mg.optim.RMSprop, learning_rate=0.1, alpha=0.1, centered=True)
    for _ in range(12):
        machine.update(rule.update(), [(p, machine.of(g), kept, None)], rule.numbers())
    square, average = map(machine.to_numpy, kept)
    assert (square < average * average).any()
    assert np.isfinite(machine.to_numpy(p)).all()


def test_launches_are_shared_by_many_parameters():
    machine = Machine()
    rows = [(machine.zeros((3,), "f4"), machine.zeros((3,), "f4"), (), None) for _ in range(20)]
    rule = group_of(mg.optim.SGD)
    machine.update(rule.update(), rows, rule.numbers())
    assert len(machine.launched) == 3


def test_parameters_keep_their_own_step_counts():
    machine = Machine()
    p, steps = [machine.zeros((1,), "f4") for _ in "ab"], [machine.zeros((8,), "f8") for _ in "ab"]
    g = machine.of(np.ones(1, "f4"))
    kept = [[machine.zeros((1,), "f4") for _ in "mv"] for _ in "ab"]
    rows = [(p[k], g, kept[k], steps[k]) for k in range(2)]
    rule = group_of(mg.optim.Adam, learning_rate=0.1)
    machine.update(rule.update(), rows[:1], rule.numbers())
    machine.update(rule.update(), rows, rule.numbers())
    assert [machine.to_numpy(s)[0] for s in steps] == [2, 1]
    np.testing.assert_allclose([machine.item(x) for x in p], [-0.2, -0.1], 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squares_and_scale(dtype):
    machine = Machine()
    data = [RNG.normal(size=s).astype(dtype) for s in SHAPES]
    arrays = [machine.of(x) for x in data]
    found = machine.squares(arrays)
    np.testing.assert_allclose(found, [np.sum(np.square(x, dtype="f8")) for x in data], 1e-5)
    factors = RNG.normal(size=len(data)).tolist()
    machine.scale(arrays, factors)
    for x, array, factor in zip(data, arrays, factors, strict=True):
        np.testing.assert_allclose(machine.to_numpy(array), x * as_dtype(dtype).numpy.type(factor))


def test_parameters_of_any_size_have_blocks():
    assert updates.shares([0, 1, 1025, 10**9]) == [0, 0, 1, 3, 3 + updates.MOST]
