"""Checks of the arguments and inputs of layers."""

import math

import numpy as np

from minigrad.arguments import short, whole
from minigrad.errors import ArgumentError, ArgumentTypeError, ShapeError
from minigrad.ops.base import constant
from minigrad.tape.variable import Variable


def size(layer, name, value, at_least=1):
    """Returns an int of at least `at_least`."""
    return whole(layer, name, value, at_least)


def sizes(layer, name, value):
    """Returns a tuple of positive ints, from an int or a list."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    if not values:
        raise ArgumentError(f"{layer}: wanted one int or several for {name}", short(value))
    return tuple(size(layer, name, v) for v in values)


def pair(layer, name, value, at_least=1):
    """Returns a pair of ints of at least `at_least`, from one int or two."""
    values = value if isinstance(value, (tuple, list)) else (value, value)
    if len(values) != 2:
        raise ArgumentError(f"{layer}: wanted one int or two for {name}", short(value))
    return tuple(size(layer, name, v, at_least) for v in values)


def variable(layer, x, near=None):
    """Returns x as a Variable. An ndarray goes to the device of `near` (a Variable), if given."""
    if isinstance(x, Variable):
        return x
    if isinstance(x, np.ndarray):
        return constant(x, layer, near)
    raise ArgumentTypeError(
        f"{layer}: wanted a Variable", f"{type(x).__name__}", "convert it first: mg.variable(x)"
    )


def last_axis(layer, x, wanted, meaning):
    """Raises unless the last axis of x has `wanted` elements."""
    if not x.ndim or x.shape[-1] != wanted:
        raise ShapeError(
            f"{layer}: wanted x (..., {wanted}), {meaning} last", f"{x.shape}", _advice(x, wanted)
        )


def last_axes(layer, x, wanted):
    """Raises unless the last axes of x have the `wanted` sizes."""
    if x.shape[-len(wanted) :] != wanted:
        shown = ", ".join(map(str, wanted))
        raise ShapeError(f"{layer}: wanted x (..., {shown}), the features last", f"{x.shape}")


def _advice(x, wanted):
    if x.ndim > 1:
        if math.prod(x.shape[1:]) == wanted:
            return "flatten each example first: nn.Flatten(), or x.reshape((len(x), -1))"
        if x.shape[-2] == wanted:
            return "the last two axes seem exchanged"
    return None


def channels(layer, x, rank, count):
    """Raises unless x has `rank` axes and `count` channels: (batch, channels, ...)."""
    axes = ("batch", "channels", *((), ("length",), ("height", "width"))[rank - 2])
    if x.ndim != rank or x.shape[1] != count:
        fix = None
        if x.ndim == rank - 1:
            fix = "add the axis: x.unsqueeze(0) for one example, x.unsqueeze(1) for one channel"
        elif x.ndim == rank and x.shape[-1] == count:
            fix = f"channels come second: x.permute({(0, rank - 1, *range(1, rank - 1))})"
        raise ShapeError(
            f"{layer}: wanted x ({', '.join(axes)}) with {count} channels", f"{x.shape}", fix
        )
