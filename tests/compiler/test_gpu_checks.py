"""Checks of a compiled step on a GPU: what they stop, and what had been done by then."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import BoundsError, NonFiniteError
from tests.compiler.twins import elements

pytestmark = pytest.mark.usefixtures("on_quick")


def trainer(clip=None):
    """(compiled step, model, optimizer): labels are checked first, gradients in the middle."""
    mg.manual_seed(0)
    model = mg.nn.Linear(4, 3)
    optimizer, manager = mg.optim.SGD(model, 0.1, momentum=0.9), mg.GradManager(model.parameters())

    @mg.compile
    def step(x, y):
        with manager:
            loss = mg.cross_entropy(model(x), y)
            manager.backward(loss)
        if clip:
            mg.optim.clip_grad_norm_(model, clip)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, model, optimizer


def data(label=1):
    return mg.ones((2, 4)), mg.variable([label, 2])


def test_a_failed_check_stops_the_step_before_anything_is_written():
    step, model, _ = trainer()
    for _ in range(3):
        step(*data())
    before = elements(model.weight), model.weight.version
    with pytest.raises(BoundsError, match="from 0 to 2"):
        step(*data(3))
    assert np.array_equal(elements(model.weight), before[0])
    assert model.weight.version == before[1]
    step(*data())
    assert not np.array_equal(elements(model.weight), before[0])


def test_gradients_that_are_not_finite_stop_it_before_the_update():
    step, model, _ = trainer(clip=1.0)
    for _ in range(3):
        step(*data())
    before = elements(model.weight)
    x, y = data()
    with pytest.raises(NonFiniteError, match="weight"):
        step(x * float("inf"), y)
    assert np.array_equal(elements(model.weight), before)


def test_an_index_out_of_range_reaches_no_gather():
    table = mg.randn((5, 2))

    @mg.compile
    def pick(index):
        return table[index] * 2.0

    for _ in range(3):
        assert np.array_equal(elements(pick(mg.variable([0, -1]))), elements(table)[[0, -1]] * 2)
    with pytest.raises(mg.errors.MinigradError, match="5"):
        pick(mg.variable([0, 5]))


def test_of_two_checks_that_stand_together_either_may_fail():
    table, other = mg.randn((5, 2)), mg.randn((3, 2))

    @mg.compile
    def pick(i, j):
        return table[i] + other[j]

    for _ in range(3):
        pick(mg.variable([4, 0]), mg.variable([2, 0]))
    for i, j, n in (([5, 0], [2, 0], 5), ([4, 0], [3, 0], 3)):
        with pytest.raises(mg.errors.MinigradError, match=f"from -{n} to {n - 1}"):
            pick(mg.variable(i), mg.variable(j))


def test_an_argument_that_was_written_before_a_check_failed_is_as_the_error_says():
    table = mg.randn((5, 2))

    @mg.compile
    def step(x, index):
        x.add_(1.0)
        return table[(index + 1) * x.to("int64")]

    x = mg.zeros((2,))
    for _ in range(3):
        step(x, mg.variable([0, -1]))
        x.fill_(0.0)
    with pytest.raises(BoundsError) as caught:
        step(x, mg.variable([4, 0]))
    assert "'x'" in dict(caught.value.details)["updated before"]
    assert elements(x).tolist() == [1.0, 1.0]
