"""Faults that only a later call shows: another operand, a graph, a clone, a schedule's place."""

import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.trace.capture import capture
from minigrad.errors import TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def test_another_of_two_values_of_one_shape_is_found():
    which = [0]

    @mg.compile
    def step(x):
        both = x.exp(), x.tanh()
        return both[sum(which)] * 2.0

    for _ in range(4):
        step(mg.ones((2,)))
    which[0] = 1
    with pytest.raises(TraceError, match="was frozen then"):
        step(mg.ones((2,)))  # the fifth call is compared


def test_a_value_with_a_graph_after_leaves_is_refused():
    @mg.compile
    def step(x):
        (x * x).sum().backward()

    for _ in range(5):  # the sixth call is not compared
        step(mg.variable([3.0], requires_grad=True))
    leaf = mg.variable([3.0], requires_grad=True)
    with pytest.raises(TraceError, match="carries a graph"):
        step(leaf * 1.0)


def test_a_clone_of_a_gradient_that_is_replaced_stays_as_it_is():
    w = nn.Parameter([1.0, 2.0])

    @mg.compile
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    kept = []
    for k in range(7):
        step(mg.full((2,), float(k)))
        kept.append(w.grad.clone())
    assert [c.tolist() for c in kept] == [[float(k)] * 2 for k in range(7)]


def test_a_schedule_that_steps_right_before_the_update_comes_before_it():
    model = nn.Linear(2, 1, bias=False)
    optimizer = optim.SGD(model, learning_rate=1.0)
    schedule = optim.ExponentialDecay(optimizer, 0.5)

    def step(x):
        model(x).sum().backward()
        schedule.step()
        optimizer.step()
        optimizer.zero_grad()

    x = mg.ones((1, 2))
    step(x)
    assert [when for _, when in capture(step, (x,)).actions] == ["before"]
