"""Elementwise operations of two and three inputs, broadcast."""

import math

from minigrad.array.array import Array
from minigrad.devices.backend import device_of, values
from minigrad.errors import ArgumentError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import where
from minigrad.ops.base import Elementwise
from minigrad.ops.operands import as_variable, operand
from minigrad.ops.unary import Reciprocal, Rsqrt, Sqrt, Square
from minigrad.tape.variable import Variable


class Add(Elementwise):
    """Sum, broadcast.  (...), (...) -> (...)."""

    takes_bool, commutes = False, True

    def formula(a, b):
        return a + b

    def gradient(dy):
        return dy, dy


class Sub(Elementwise):
    """Difference, broadcast.  (...), (...) -> (...)."""

    takes_bool = False

    def formula(a, b):
        return a - b

    def gradient(dy):
        return dy, -dy


class Mul(Elementwise):
    """Product, broadcast.  (...), (...) -> (...).  d(ab) = b da + a db."""

    takes_bool, commutes = False, True

    def formula(a, b):
        return a * b

    def gradient(dy, a, b):
        return dy * b, dy * a


class Div(Elementwise):
    """Quotient, broadcast; float32 for ints.  (...), (...) -> (...)."""

    domains = ((-2.0, 2.0), (0.5, 2.0))
    result = "real"

    def formula(a, b):
        return a / b

    def gradient(dy, b, y):
        return dy / b, -dy * y / b


class Pow(Elementwise):
    """a to the power b, broadcast.  (...), (...) -> (...).

    At a = 0 the gradient of b is 0 for b >= 0. At b = 0 the result is 1, the gradient of a is 0.
    """

    domains = ((0.3, 2.0), (-2.0, 2.0))
    takes_bool = routes_ints = False

    @classmethod
    def forward(cls, *operands):
        """Computes the output Array. Raises for negative exponents of ints."""
        b = operands[1]
        if not cls.result_dtype(operands).is_float:
            lowest = b
            if isinstance(b, Array):
                fine = not b.size or device_of(b).all_within(b, 0, 2**63 - 1)
                lowest = 0 if fine else values(b).min()
            if lowest < 0:
                raise ArgumentError(
                    "pow: wanted exponents of at least 0 for ints, as the result is an int",
                    f"{lowest}",
                    "convert first: x.to('float32') ** -1",
                )
        return super().forward(*operands)

    def formula(a, b):
        return e.power(a, b)

    def gradient(dy, a, b, y):
        # At b = 0 the derivative by a is 0, and the derivative of that by b is 1 / a. For an
        # extreme a, a^(b - 1) would turn both into 0 times infinity.
        flat = e.equal(b, 0.0)
        ordinary = e.logical_and(e.absolute(a) > 1e-30, e.absolute(a) < 1e30)
        level = where(ordinary, dy, 0.0) * b / where(ordinary, a, 1.0)
        da = where(flat, level, dy * b * e.power(a, where(flat, 1.0, b) - 1.0))
        is_zero = e.equal(a, 0.0)
        slope = y * e.log(where(is_zero, 1.0, a))
        return da, dy * where(e.logical_and(is_zero, b < 0.0), -y, slope)


class Maximum(Elementwise):
    """The larger of two, NaN if one is.  (...), (...) -> (...).  In a tie each gets half of dy.

    If one is NaN, both get dy. For 0 and -0 the result is the second operand.
    """

    def formula(a, b):
        return e.maximum(a, b)

    def gradient(dy, a, b):
        share = where(e.equal(a, b), 0.5 * dy, dy)
        return where(a < b, 0.0, share), where(b < a, 0.0, share)


class Minimum(Elementwise):
    """The smaller of two, NaN if one is.  (...), (...) -> (...).  In a tie each gets half of dy.

    If one is NaN, both get dy. For 0 and -0 the result is the second operand.
    """

    def formula(a, b):
        return e.minimum(a, b)

    def gradient(dy, a, b):
        share = where(e.equal(a, b), 0.5 * dy, dy)
        return where(a > b, 0.0, share), where(b > a, 0.0, share)


class Where(Elementwise):
    """a where c else b, broadcast.  (...), (...), (...) -> (...).

    Both sides are computed. A NaN on the side not taken does not reach the output, but it can reach
    the gradient (0 * NaN). Replace the inputs that cause it before the operation, not after. A
    number that the result's dtype does not hold is an error; infinities and NaN are in every float.
    """

    samples = [((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((0,), (0,), (1,))]
    promotes = slice(1, 3)
    stores_numbers = True

    def formula(c, a, b):
        return where(c, a, b)

    def gradient(dy, c):
        return None, where(c, dy, 0.0), where(c, 0.0, dy)


class Clip(Elementwise):
    """x limited to [low, high], Variables or numbers, broadcast.  (...), (...), (...) -> (...).

    dy goes to x within the bounds and at them, otherwise to the bound that is the result. Where x
    is below two equal bounds, dy goes to none of them, as in PyTorch.
    """

    samples = [((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((0,), (0,), (1,))]

    def formula(x, low, high):
        return e.minimum(e.maximum(x, low), high)

    def gradient(dy, x, low, high):
        within = e.logical_and(x >= low, x <= high)
        is_low = e.logical_and(x < low, low < high)
        is_high = e.maximum(x, low) > high
        return where(within, dy, 0.0), where(is_low, dy, 0.0), where(is_high, dy, 0.0)


def clip(x, low=None, high=None):
    """x limited to [low, high]; None means no limit on that side.  (...) -> (...).

    Bounds may be Variables, which broadcast. A bound gets the gradient where it is the result.
    """
    x = as_variable(x, "clip")
    low, high = (v if v is None else operand(v, "clip", (x,)) for v in (low, high))
    if low is None and high is None:
        raise ArgumentError("clip: wanted low, high or both")
    bounds = [v for v in (low, high) if isinstance(v, Variable)]
    if (low is None or high is None) and not any(v.dtype.is_float for v in (x, *bounds)):
        # Integers have no infinity.
        return Maximum.apply(x, low) if high is None else Minimum.apply(x, high)
    return Clip.apply(x, -math.inf if low is None else low, math.inf if high is None else high)


NUMBERS = {int, float}
COMMON_POWERS = {2: Square, 0.5: Sqrt, -1: Reciprocal, -0.5: Rsqrt}


def power(a, b):
    """a to the power b; common exponents use special ops.  (...), (...) -> (...)."""
    if type(b) not in NUMBERS:
        b = operand(b, "pow", (a,))
    quick = COMMON_POWERS.get(b) if type(b) in NUMBERS else None
    if quick is not None and isinstance(a, Variable) and (a.array.dtype.is_float or b == 2):
        return quick.apply(a)
    return Pow.apply(a, b)
