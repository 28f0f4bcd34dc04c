"""Elementwise activation functions."""

from minigrad.arguments import choice, number
from minigrad.formulas import expression as e
from minigrad.formulas.expression import where
from minigrad.ops.base import Elementwise

SQRT_2_OVER_PI = 0.7978845608028654
SQRT_HALF = 0.7071067811865476


class Relu(Elementwise):
    """max(x, 0); NaN stays NaN.  (...) -> (...).  The derivative is 0 at 0, and 1 at NaN."""

    takes_bool = False

    def formula(x):
        return e.maximum(x, 0)

    def gradient(dy, y):
        return where(y <= 0.0, 0.0, dy)


class LeakyRelu(Elementwise):
    """x above 0, slope * x below.  (...) -> (...).  The derivative at 0 is slope."""

    numbers = (0.1,)
    result = "real"

    def formula(x, slope):
        return where(x > 0.0, x, x * slope)

    def gradient(dy, x, slope):
        return where(x > 0.0, dy, dy * slope)


class Elu(Elementwise):
    """x above 0, alpha (e^x - 1) below (Clevert et al. 2015).  (...) -> (...).

    The derivatives at 0 are the left derivatives.
    """

    numbers = (1.3,)
    result = "real"

    def formula(x, alpha):
        return where(x > 0.0, x, alpha * e.expm1(where(x > 0.0, 0.0, x)))

    def gradient(dy, x, alpha):
        return where(x > 0.0, dy, dy * alpha * e.exp(where(x > 0.0, 0.0, x)))


class Gelu(Elementwise):
    """x Phi(x) with the exact normal distribution (Hendrycks, Gimpel 2016).  (...) -> (...)."""

    result = "real"

    def formula(x):
        return 0.5 * x * (1.0 + e.erf(x * SQRT_HALF))

    def gradient(dy, x):
        density = 0.5 * SQRT_2_OVER_PI * e.exp(-0.5 * x * x)
        return dy * (0.5 * (1.0 + e.erf(x * SQRT_HALF)) + x * density)


class GeluTanh(Elementwise):
    """GELU by its tanh approximation.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return 0.5 * x * (1.0 + e.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))

    def gradient(dy, x):
        t = e.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
        slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x)
        return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)


class Silu(Elementwise):
    """x sigmoid(x), also called swish.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return x * e.sigmoid(x)

    def gradient(dy, x):
        s = e.sigmoid(x)
        return dy * s * (1.0 + x * (1.0 - s))


class Softplus(Elementwise):
    """log(1 + e^x), without overflow.  (...) -> (...)."""

    result = "real"

    def formula(x):
        return e.maximum(x, 0.0) + e.log1p(e.exp(-e.absolute(x)))

    def gradient(dy, x):
        return dy * e.sigmoid(x)


def gelu(x, approximate=None):
    """x Phi(x); approximate='tanh' uses the tanh formula.  (...) -> (...)."""
    choice("gelu", "approximate", approximate, (None, "none", "tanh"))
    return (GeluTanh if approximate == "tanh" else Gelu).apply(x)


def leaky_relu(x, slope=0.01):
    """x above 0, slope * x below.  (...) -> (...)."""
    return LeakyRelu.apply(x, number("leaky_relu", "slope", slope))


def elu(x, alpha=1.0):
    """x above 0, alpha (e^x - 1) below.  (...) -> (...)."""
    return Elu.apply(x, number("elu", "alpha", alpha))


functions = (gelu, leaky_relu, elu)
