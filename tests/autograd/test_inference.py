"""mg.inference(): whole models run in it; what it gives stays out of graphs."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import GradientError


def test_results_feed_the_next_layer():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)).eval()
    x = mg.randn((3, 4))
    with mg.inference():
        y = model(x)
    np.testing.assert_array_equal(y.numpy(), model(x).numpy())
    with mg.no_grad():
        assert (y * model[0].weight[0, 0]).node is None


def test_recorded_operations_refuse_them():
    w = nn.Parameter([1.0, 2.0])
    with mg.inference():
        y = w * 2.0
        with mg.enable_grad(), pytest.raises(GradientError, match="inference"):
            y * w
    with pytest.raises(GradientError, match="inference"):
        y * w


@pytest.mark.parametrize(
    "use",
    [
        lambda w, y: w @ y, lambda w, y: y @ w, lambda w, y: w * y[::-1],
        lambda w, y: w @ y.reshape(2, 1), lambda w, y: mg.stack([w, y.T]),
        lambda w, y: mg.linear(w, y.expand((3, 2)), mg.ones(3)),
    ],
)  # fmt: skip
def test_views_of_them_are_refused_too(use):
    w = nn.Parameter([1.0, 2.0])
    with mg.inference():
        y = w * 2.0
    for _ in range(4):
        with pytest.raises(GradientError, match="inference"):
            use(w, y)
    assert not (y[0] * 3.0).requires_grad


def test_compiled_steps_return_what_eager_ones_return():
    @mg.compile
    def step(x):
        with mg.inference():
            inside = x * 2.0
        return inside, x * 3.0

    x = mg.ones((2,))
    kinds = [[type(y).__name__ for y in step(x)] for _ in range(3)]
    assert kinds == [["InferenceVariable", "Variable"]] * 3
    assert len(step.traces) == 1
