"""Elementwise operations of one input."""

from minigrad.formulas import expression as e
from minigrad.formulas.expression import where
from minigrad.ops.base import Elementwise

TWO_OVER_SQRT_PI = 1.1283791670955126
LOG2_OF_E = 1.4426950408889634


class Neg(Elementwise):
    """-x.  (...) -> (...)."""

    takes_bool = False

    def formula(x):
        return -x

    def gradient(dy):
        return -dy


class Abs(Elementwise):
    """|x|.  (...) -> (...).  The derivative at 0 is 0 (any value in [-1, 1] would do)."""

    takes_bool = False

    def formula(x):
        return e.absolute(x)

    def gradient(dy, x):
        return where(e.equal(x, 0.0), 0.0, where(x < 0.0, -dy, dy))


class Sign(Elementwise):
    """-1, 0 or 1; NaN stays NaN.  (...) -> (...).  The gradient is 0 everywhere."""

    takes_bool = False

    def formula(x):
        return e.sign(x)

    def gradient(dy):
        return e.zero_of(dy)


class Square(Elementwise):
    """x^2.  (...) -> (...)."""

    takes_bool = False

    def formula(x):
        return x * x

    def gradient(dy, x):
        return dy * 2.0 * x


class Sqrt(Elementwise):
    """Square root, NaN below 0.  (...) -> (...).  The derivative at 0 is infinite."""

    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.sqrt(x)

    def gradient(dy, y):
        return dy * 0.5 / y


class RootOfSquares(Elementwise):
    """sqrt(x) of a sum of squares x.  (...) -> (...).  The derivative at 0 is 0.

    So the standard deviation of equal values has the gradient 0, like the norm of zeros, not NaN.
    """

    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.sqrt(x)

    def gradient(dy, y):
        return where(e.equal(y, 0.0), 0.0, dy * 0.5 / where(e.equal(y, 0.0), 1.0, y))


class Rsqrt(Elementwise):
    """1 / sqrt(x): infinite at 0, NaN below.  (...) -> (...)."""

    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return 1.0 / e.sqrt(x)

    def gradient(dy, y):
        return dy * -0.5 * y * y * y


class Reciprocal(Elementwise):
    """1 / x.  (...) -> (...)."""

    domain = (0.3, 3.0)
    result = "real"

    def formula(x):
        return 1.0 / x

    def gradient(dy, y):
        return -dy * y * y


class Exp(Elementwise):
    """e^x.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.exp(x)

    def gradient(dy, y):
        return dy * y


class Expm1(Elementwise):
    """e^x - 1, exact near 0.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.expm1(x)

    def gradient(dy, y):
        return dy * (y + 1.0)


class Log(Elementwise):
    """Natural logarithm; -inf at 0, NaN below.  (...) -> (...)."""

    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.log(x)

    def gradient(dy, x):
        return dy / x


class Log1p(Elementwise):
    """log(1 + x), exact near 0.  (...) -> (...)."""

    domain = (-0.8, 4.0)
    result = "real"

    def formula(x):
        return e.log1p(x)

    def gradient(dy, x):
        return dy / (1.0 + x)


class Log2(Elementwise):
    """Logarithm to base 2, exact for powers of 2; -inf at 0, NaN below.  (...) -> (...)."""

    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.log2(x)

    def gradient(dy, x):
        return dy * LOG2_OF_E / x


class Sin(Elementwise):
    """Sine, of radians.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.sin(x)

    def gradient(dy, x):
        return dy * e.cos(x)


class Cos(Elementwise):
    """Cosine, of radians.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.cos(x)

    def gradient(dy, x):
        return -dy * e.sin(x)


class Tanh(Elementwise):
    """Hyperbolic tangent.  (...) -> (...).  d tanh(x)/dx = 1 - tanh(x)^2."""

    result = "real"

    def formula(x):
        return e.tanh(x)

    def gradient(dy, y):
        return dy * (1.0 - y * y)


class Sigmoid(Elementwise):
    """1 / (1 + e^-x), without overflow.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.sigmoid(x)

    def gradient(dy, y):
        return dy * y * (1.0 - y)


class Erf(Elementwise):
    """Gauss error function.  (...) -> (...).  erf'(x) = 2/sqrt(pi) e^(-x^2)."""

    result = "real"

    def formula(x):
        return e.erf(x)

    def gradient(dy, x):
        return dy * TWO_OVER_SQRT_PI * e.exp(-x * x)


class Round(Elementwise):
    """The nearest integer, halves to even.  (...) -> (...).  The gradient is 0."""

    takes_bool = False

    def formula(x):
        return e.round_(x)

    def gradient(dy):
        return e.zero_of(dy)


class Floor(Elementwise):
    """The largest integer not above x.  (...) -> (...).  The gradient is 0."""

    takes_bool = False

    def formula(x):
        return e.floor(x)

    def gradient(dy):
        return e.zero_of(dy)


class Ceil(Elementwise):
    """The smallest integer not below x.  (...) -> (...).  The gradient is 0."""

    takes_bool = False

    def formula(x):
        return e.ceil(x)

    def gradient(dy):
        return e.zero_of(dy)
