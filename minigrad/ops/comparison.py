"""Comparisons and truth values, which have no gradients."""

import math

import numpy as np

from minigrad.arguments import flag, number
from minigrad.devices.backend import values
from minigrad.errors import ShapeError
from minigrad.formulas import expression as e
from minigrad.ops.base import Elementwise
from minigrad.ops.operands import check_operands, variables


class Predicate(Elementwise, abstract=True):
    """An op whose results are bools, without a gradient."""

    result = "bool"
    gradient = None


class Less(Predicate):
    """a < b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return a < b


class LessEqual(Predicate):
    """a <= b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return a <= b


class Greater(Predicate):
    """a > b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return a > b


class GreaterEqual(Predicate):
    """a >= b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return a >= b


class Equal(Predicate):
    """a == b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return e.equal(a, b)


class NotEqual(Predicate):
    """a != b.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return e.not_equal(a, b)


class LogicalAnd(Predicate):
    """a and b, of truth values.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return e.logical_and(a, b)


class LogicalOr(Predicate):
    """a or b, of truth values.  (...), (...) -> (...) of bool."""

    def formula(a, b):
        return e.logical_or(a, b)


class LogicalNot(Predicate):
    """not x, of truth values; numbers count as x != 0.  (...) -> (...) of bool."""

    def formula(x):
        return e.logical_not(x)


class IsNan(Predicate):
    """Whether x is NaN.  (...) -> (...) of bool."""

    name = "isnan"

    def formula(x):
        return e.not_equal(x, x)


class IsInf(Predicate):
    """Whether x is infinite, of either sign.  (...) -> (...) of bool."""

    name = "isinf"

    def formula(x):
        return e.equal(e.absolute(x), math.inf)


class IsFinite(Predicate):
    """Whether x is neither NaN nor infinite.  (...) -> (...) of bool."""

    name = "isfinite"

    def formula(x):
        return e.equal(x - x, 0.0)


def allclose(a, b, relative=1e-5, absolute=1e-8, equal_nan=False):
    """Returns whether |a - b| <= absolute + relative * |b| everywhere.  (...), (...) -> a bool.

    Operands broadcast. The comparison is not part of the graph. NaN equals nothing, or with
    equal_nan only NaN; an infinity equals itself.

    >>> import minigrad as mg
    >>> mg.allclose(mg.variable([1.0, 2.0]), [1.0, 2.000001])
    True
    """
    a, b = variables("allclose", a, b)
    check_operands("allclose", (a, b))
    relative = np.float64(number("allclose", "relative", relative, 0.0))  # float32 may not hold it
    absolute = np.float64(number("allclose", "absolute", absolute, 0.0))
    equal_nan = flag("allclose", "equal_nan", equal_nan)
    try:
        with np.errstate(over="ignore"):
            is_close = np.allclose(values(a.array), values(b.array), relative, absolute, equal_nan)
    except ValueError:
        raise ShapeError(
            "allclose: wanted shapes that broadcast", f"{a.shape} and {b.shape}"
        ) from None
    return bool(is_close)


functions = (allclose,)
