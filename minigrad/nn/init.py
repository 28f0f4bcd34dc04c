"""Initialisers fill a Variable in place, without recording, and return it.  (...) -> (...).

Random numbers come from the default generator, which `mg.manual_seed(n)` seeds. Fans and gains are
those of Glorot and Bengio (2010) and He et al. (2015).
"""

import math
from typing import Any

from minigrad.arguments import choice, instance, number
from minigrad.errors import ShapeError
from minigrad.ops.creation import rand, randn
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}


def gain(nonlinearity, slope=0.01):
    """Returns the factor, a float, that preserves the variance through a nonlinearity.

    Args:
        nonlinearity: 'linear', 'sigmoid', 'tanh', 'relu', 'selu' or 'leaky_relu'.
        slope: the negative slope of 'leaky_relu'.
    """
    slope = number("gain", "slope", slope)
    if choice("gain", "nonlinearity", nonlinearity, (*GAINS, "leaky_relu")) == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + slope * slope))
    return GAINS[nonlinearity]


def fans(x):
    """Returns (fan_in, fan_out) of a weight (out, in, ...): inputs and outputs per unit, ints.

    Raises:
        ShapeError: the weight has fewer than two axes.
    """
    if _target("fans", x).ndim < 2:
        raise ShapeError(
            "init: fan_in and fan_out need a weight (out, in, ...) of at least two axes",
            f"{x.shape}",
            "use uniform_ or normal_ for biases",
        )
    field = math.prod(x.shape[2:])
    return x.shape[1] * field, x.shape[0] * field


def uniform_(x, low=0.0, high=1.0):
    """Fills x with uniform numbers in [low, high)."""
    x, low = _target("uniform_", x), number("uniform_", "low", low)
    high = number("uniform_", "high", high)
    values: Any = rand(x.shape, x.dtype, device=x.device)
    with no_grad():
        return x.copy_(values * (high - low) + low)


def normal_(x, mean=0.0, std=1.0):
    """Fills x with normal numbers of the given mean and standard deviation."""
    x, mean = _target("normal_", x), number("normal_", "mean", mean)
    std = number("normal_", "std", std, 0.0)
    values: Any = randn(x.shape, x.dtype, device=x.device)
    with no_grad():
        return x.copy_(values * std + mean)


def constant_(x, value):
    """Fills x with one value."""
    value = number("constant_", "value", value)
    with no_grad():
        return _target("constant_", x).fill_(value)


def _target(name, x):
    return instance(name, "x", x, Variable, "a Variable")


def zeros_(x):
    """Fills x with zeros."""
    return constant_(x, 0.0)


def ones_(x):
    """Fills x with ones."""
    return constant_(x, 1.0)


def xavier_uniform_(x, gain=1.0):
    """Fills x with uniform numbers of variance gain^2 * 2 / (fan_in + fan_out)."""
    gain = number("xavier_uniform_", "gain", gain)
    bound = gain * math.sqrt(6.0 / sum(fans(x)))
    return uniform_(x, -bound, bound)


def xavier_normal_(x, gain=1.0):
    """Fills x with normal numbers of variance gain^2 * 2 / (fan_in + fan_out)."""
    gain = number("xavier_normal_", "gain", gain, 0.0)
    return normal_(x, 0.0, gain * math.sqrt(2.0 / sum(fans(x))))


def kaiming_uniform_(x, slope=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Fills x with uniform numbers of variance gain^2 / fan (see `gain` and `fans`).

    Args:
        x: a weight (out, in, ...).
        slope: the negative slope of the following leaky_relu; 0 for relu.
        mode: 'fan_in' keeps the variance forward, 'fan_out' backward.
        nonlinearity: as in `gain`.
    """
    bound = math.sqrt(3.0) * gain(nonlinearity, slope) / math.sqrt(_fan(x, mode))
    return uniform_(x, -bound, bound)


def kaiming_normal_(x, slope=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Fills x with normal numbers of variance gain^2 / fan; arguments as in kaiming_uniform_."""
    return normal_(x, 0.0, gain(nonlinearity, slope) / math.sqrt(_fan(x, mode)))


def _fan(x, mode):
    choice("kaiming", "mode", mode, ("fan_in", "fan_out"))
    return max(1, fans(x)[mode == "fan_out"])


def default_(weight, bias=None):
    """Fills weight and bias as Linear and convolutions do: uniform in +-1 / sqrt(fan_in)."""
    fan_in, _ = fans(weight)
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    uniform_(weight, -bound, bound)
    if bias is not None:
        uniform_(bias, -bound, bound)
