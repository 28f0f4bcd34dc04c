"""LayerNorm over several last axes at once."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn
from minigrad.autograd import debug


def layer_and_input():
    values = np.random.default_rng(0).standard_normal((4, 5, 2, 3))
    layer = nn.LayerNorm((2, 3), dtype="float64")
    layer.weight.assign(np.arange(6.0).reshape(2, 3) - 2.0)
    layer.bias.assign(np.arange(6.0).reshape(2, 3) / 7.0)
    return layer, values


def test_mean_and_variance_are_those_of_all_last_axes():
    layer, x = layer_and_input()
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-5)
    expected = expected * layer.weight.numpy() + layer.bias.numpy()
    np.testing.assert_allclose(layer(mg.variable(x)).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(layer.valid()(mg.variable(x)).numpy(), expected, rtol=1e-12)
    assert repr(layer) == "LayerNorm((2, 3), eps=1e-05)"


def test_gradients_are_derivatives():
    layer, values = layer_and_input()
    x = mg.variable(values, requires_grad=True)
    assert debug.gradcheck(layer, [x])
    upstream = np.random.default_rng(1).standard_normal(values.shape)
    (layer(x) * mg.variable(upstream)).sum().backward()
    mean, variance = values.mean((2, 3), keepdims=True), values.var((2, 3), keepdims=True)
    normal = (values - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(layer.weight.grad.numpy(), (upstream * normal).sum((0, 1)))
    np.testing.assert_allclose(layer.bias.grad.numpy(), upstream.sum((0, 1)))


def test_an_empty_batch_stays_empty():
    assert nn.LayerNorm((2, 3))(mg.zeros((0, 2, 3))).shape == (0, 2, 3)


def test_a_tuple_of_one_is_one_axis():
    layer = nn.LayerNorm([3])
    assert layer.size == 3
    assert layer.weight.shape == (3,)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: nn.LayerNorm((2, 3))(mg.ones((2, 2))), errors.ShapeError, r"\(..., 2, 3\)"),
        (lambda: nn.LayerNorm((2, 3))(mg.ones((3,))), errors.ShapeError, r"\(..., 2, 3\)"),
        (lambda: nn.LayerNorm(()), errors.ArgumentError, "one int or several"),
        (lambda: nn.LayerNorm((2, 0)), errors.ArgumentError, "at least 1"),
        (lambda: nn.LayerNorm("ab"), errors.ArgumentTypeError, "wanted an int"),
    ],
)
def test_wrong_sizes_raise(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
