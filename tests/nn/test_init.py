"""Initialisers: distribution, reproducibility, and the defaults of layers."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, nn


def spread(x):
    """(lowest, highest, mean, standard deviation)."""
    v = x.detach().numpy()
    return v.min(), v.max(), v.mean(), v.std()


def test_seed_decides_the_parameters():
    def make():
        mg.manual_seed(5)
        return nn.Linear(4, 3).weight.numpy().copy()

    np.testing.assert_array_equal(make(), make())
    assert np.any(nn.Linear(4, 3).weight.numpy() != make())


def test_uniform_and_normal_fill_in_place():
    p = nn.Parameter(mg.zeros((300, 300)))
    id_ = p.id
    assert nn.init.uniform_(p, -2.0, 4.0) is p
    low, high, mean, std = spread(p)
    assert -2.0 <= low < -1.9
    assert 3.9 < high < 4.0
    assert abs(mean - 1.0) < 0.03
    assert abs(std - 6 / math.sqrt(12)) < 0.03
    nn.init.normal_(p, 1.0, 0.5)
    assert abs(spread(p)[2] - 1.0) < 0.01
    assert abs(spread(p)[3] - 0.5) < 0.01
    assert p.id == id_
    assert p.is_leaf
    nn.init.zeros_(p)
    assert spread(p)[:2] == (0.0, 0.0)
    nn.init.ones_(p)
    nn.init.constant_(p, 3.5)
    assert spread(p)[:2] == (3.5, 3.5)


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (nn.init.kaiming_uniform_, math.sqrt(2 / 300)),
        (nn.init.kaiming_normal_, math.sqrt(2 / 300)),
        (lambda x: nn.init.kaiming_normal_(x, mode="fan_out"), math.sqrt(2 / 200)),
        (lambda x: nn.init.kaiming_normal_(x, nonlinearity="tanh"), 5 / 3 / math.sqrt(300)),
        (lambda x: nn.init.xavier_normal_(x, gain=2.0), 2 * math.sqrt(2 / 500)),
    ],
)
def test_variance_follows_the_fans(fill, std):
    mg.manual_seed(1)
    assert spread(fill(mg.zeros((200, 300))))[3] == pytest.approx(std, rel=0.02)


def test_fans_of_a_filter_count_its_field():
    assert nn.init.fans(mg.zeros((8, 4, 3, 5))) == (60, 120)
    with pytest.raises(errors.ShapeError, match="at least two axes"):
        nn.init.xavier_normal_(mg.zeros((3,)))


def test_wrong_arguments_raise():
    with pytest.raises(errors.ArgumentError, match="fan_in"):
        nn.init.kaiming_normal_(mg.zeros((2, 2)), mode="fan")
    with pytest.raises(errors.ArgumentError, match="leaky_relu"):
        nn.init.gain("mish")
    with pytest.raises(errors.ArgumentError, match="std"):
        nn.init.normal_(mg.zeros((2,)), std=-1.0)


@pytest.mark.parametrize(
    ("layer", "fan_in"), [(nn.Linear(400, 200), 400), (nn.Conv2d(8, 64, 5), 200)]
)
def test_defaults_are_uniform_within_the_root_of_fan_in(layer, fan_in):
    bound = 1 / math.sqrt(fan_in)
    low, high, _, _ = spread(layer.weight)
    assert -bound <= low < -0.95 * bound
    assert 0.95 * bound < high <= bound
    assert np.abs(layer.bias.numpy()).max() <= bound
    assert layer.bias.numpy().std() > 0


def test_other_defaults():
    assert spread(nn.Embedding(300, 50).weight)[3] == pytest.approx(1.0, rel=0.05)
    assert nn.LayerNorm(3).weight.tolist() == [1.0] * 3
    assert nn.LayerNorm(3).bias.tolist() == [0.0] * 3
    attention = nn.MultiHeadAttention(64, 4)
    assert attention.output.bias.tolist() == [0.0] * 64
    assert spread(attention.query.weight)[1] == pytest.approx(math.sqrt(6 / 256), rel=0.01)
