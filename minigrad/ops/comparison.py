"""Comparisons and truth values: nothing here has a gradient."""

import numpy as np

from minigrad.arguments import flag, number
from minigrad.devices.backend import values
from minigrad.errors import ShapeError
from minigrad.formulas import expression as e
from minigrad.ops import binary, unary
from minigrad.ops.base import Elementwise
from minigrad.ops.operands import check_operands, variables


class Less(Elementwise):
    """a < b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return a < b


class LessEqual(Elementwise):
    """a <= b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return a <= b


class Greater(Elementwise):
    """a > b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return a > b


class GreaterEqual(Elementwise):
    """a >= b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return a >= b


class Equal(Elementwise):
    """a == b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return e.equal(a, b)


class NotEqual(Elementwise):
    """a != b.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return e.not_equal(a, b)


class LogicalAnd(Elementwise):
    """a and b, of truth values.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return e.logical_and(a, b)


class LogicalOr(Elementwise):
    """a or b, of truth values.  (...), (...) -> (...) of bool."""

    samples = binary.SHAPES
    result = "bool"
    gradient = None

    def formula(a, b):
        return e.logical_or(a, b)


class LogicalNot(Elementwise):
    """not x, of truth values; numbers count as x != 0.  (...) -> (...) of bool."""

    samples = unary.SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.logical_not(x)


class IsNan(Elementwise):
    """Whether x is NaN.  (...) -> (...) of bool."""

    name = "isnan"
    samples = unary.SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.not_equal(x, x)


class IsFinite(Elementwise):
    """Whether x is neither NaN nor infinite.  (...) -> (...) of bool."""

    name = "isfinite"
    samples = unary.SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.equal(x - x, 0.0)


def allclose(a, b, relative=1e-5, absolute=1e-8, equal_nan=False):
    """Whether |a - b| <= absolute + relative * |b| everywhere.  (...), (...) -> a bool.

    Broadcast. Not part of the graph. NaN equals nothing, or only NaN with equal_nan; an infinity
    equals itself.

    >>> import minigrad as mg
    >>> mg.allclose(mg.variable([1.0, 2.0]), [1.0, 2.000001])
    True
    """
    a, b = variables("allclose", a, b)
    check_operands("allclose", (a, b))
    relative = number("allclose", "relative", relative, 0.0)
    absolute = number("allclose", "absolute", absolute, 0.0)
    equal_nan = flag("allclose", "equal_nan", equal_nan)
    try:
        found = np.allclose(values(a.array), values(b.array), relative, absolute, equal_nan)
    except ValueError:
        raise ShapeError(
            "allclose: wanted shapes that broadcast", f"{a.shape} and {b.shape}"
        ) from None
    return bool(found)


functions = (allclose,)
