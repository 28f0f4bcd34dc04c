"""Elementwise operations of one input."""

from minigrad.kernels import expression as e
from minigrad.kernels.expression import where
from minigrad.ops.base import Elementwise

SHAPES = [((3, 4),), ((),), ((0,),), ((1,),)]
SQRT_2_OVER_PI = 0.7978845608028654
SQRT_HALF = 0.7071067811865476
TWO_OVER_SQRT_PI = 1.1283791670955126


class Neg(Elementwise):
    """-x.  (...) -> (...)."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return -x

    def gradient(dy):
        return -dy


class Abs(Elementwise):
    """|x|.  (...) -> (...).  Its derivative at 0 is 0 here (any value in [-1, 1] would do)."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return e.absolute(x)

    def gradient(dy, x):
        return where(x > 0.0, dy, where(x < 0.0, -dy, 0.0))


class Sign(Elementwise):
    """-1, 0 or 1; NaN stays NaN.  (...) -> (...).  Its gradient is 0 everywhere."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return where(x > 0, 1, where(x < 0, -1, x))

    def gradient(dy):
        return dy * 0.0


class Square(Elementwise):
    """x^2.  (...) -> (...)."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return x * x

    def gradient(dy, x):
        return dy * 2.0 * x


class Sqrt(Elementwise):
    """Square root, NaN below 0.  (...) -> (...).  The derivative at 0 is infinite."""

    samples = SHAPES
    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.sqrt(x)

    def gradient(dy, y):
        return dy * 0.5 / y


class Rsqrt(Elementwise):
    """1 / sqrt(x).  (...) -> (...)."""

    samples = SHAPES
    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return 1.0 / e.sqrt(x)

    def gradient(dy, y):
        return dy * -0.5 * y * y * y


class Reciprocal(Elementwise):
    """1 / x.  (...) -> (...)."""

    samples = SHAPES
    domain = (0.3, 3.0)
    result = "real"

    def formula(x):
        return 1.0 / x

    def gradient(dy, y):
        return -dy * y * y


class Exp(Elementwise):
    """e^x.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.exp(x)

    def gradient(dy, y):
        return dy * y


class Expm1(Elementwise):
    """e^x - 1, exact near 0.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.expm1(x)

    def gradient(dy, y):
        return dy * (y + 1.0)


class Log(Elementwise):
    """Natural logarithm; -inf at 0, NaN below.  (...) -> (...)."""

    samples = SHAPES
    domain = (0.1, 4.0)
    result = "real"

    def formula(x):
        return e.log(x)

    def gradient(dy, x):
        return dy / x


class Log1p(Elementwise):
    """log(1 + x), exact near 0.  (...) -> (...)."""

    samples = SHAPES
    domain = (-0.8, 4.0)
    result = "real"

    def formula(x):
        return e.log1p(x)

    def gradient(dy, x):
        return dy / (1.0 + x)


class Sin(Elementwise):
    """Sine, of radians.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.sin(x)

    def gradient(dy, x):
        return dy * e.cos(x)


class Cos(Elementwise):
    """Cosine, of radians.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.cos(x)

    def gradient(dy, x):
        return -dy * e.sin(x)


class Tanh(Elementwise):
    """Hyperbolic tangent.  (...) -> (...).  d tanh(x)/dx = 1 - tanh(x)^2."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.tanh(x)

    def gradient(dy, y):
        return dy * (1.0 - y * y)


class Sigmoid(Elementwise):
    """1 / (1 + e^-x), without overflow.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.sigmoid(x)

    def gradient(dy, y):
        return dy * y * (1.0 - y)


class Erf(Elementwise):
    """Gauss error function.  (...) -> (...).  erf'(x) = 2/sqrt(pi) e^(-x^2)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.erf(x)

    def gradient(dy, x):
        return dy * TWO_OVER_SQRT_PI * e.exp(-x * x)


class Relu(Elementwise):
    """max(x, 0); NaN stays NaN.  (...) -> (...).  Its derivative at 0 is 0 here."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return e.maximum(x, 0)

    def gradient(dy, y):
        return where(y > 0.0, dy, 0.0)


class LeakyRelu(Elementwise):
    """x above 0, slope * x below.  (...) -> (...).  Its derivative at 0 is slope."""

    samples = SHAPES
    numbers = (0.1,)
    result = "real"

    def formula(x, slope):
        return where(x > 0.0, x, x * slope)

    def gradient(dy, x, slope):
        return where(x > 0.0, dy, dy * slope)


class Elu(Elementwise):
    """x above 0, alpha (e^x - 1) below (Clevert et al. 2015).  (...) -> (...)."""

    samples = SHAPES
    numbers = (1.3,)
    result = "real"

    def formula(x, alpha):
        return where(x > 0.0, x, alpha * e.expm1(e.minimum(x, 0.0)))

    def gradient(dy, x, alpha):
        return where(x > 0.0, dy, dy * alpha * e.exp(e.minimum(x, 0.0)))


class Gelu(Elementwise):
    """x Phi(x) with the exact normal distribution (Hendrycks, Gimpel 2016).  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return 0.5 * x * (1.0 + e.erf(x * SQRT_HALF))

    def gradient(dy, x):
        density = 0.5 * SQRT_2_OVER_PI * e.exp(-0.5 * x * x)
        return dy * (0.5 * (1.0 + e.erf(x * SQRT_HALF)) + x * density)


class GeluTanh(Elementwise):
    """GELU by its tanh approximation.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return 0.5 * x * (1.0 + e.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))

    def gradient(dy, x):
        t = e.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
        slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * x * x)
        return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)


class Silu(Elementwise):
    """x sigmoid(x), also called swish.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return x * e.sigmoid(x)

    def gradient(dy, x):
        s = e.sigmoid(x)
        return dy * s * (1.0 + x * (1.0 - s))


class Softplus(Elementwise):
    """log(1 + e^x), without overflow.  (...) -> (...)."""

    samples = SHAPES
    result = "real"

    def formula(x):
        return e.maximum(x, 0.0) + e.log1p(e.exp(-e.absolute(x)))

    def gradient(dy, x):
        return dy * e.sigmoid(x)


class Round(Elementwise):
    """To the nearest integer, halves to even.  (...) -> (...).  Its gradient is 0."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return e.round_(x)

    def gradient(dy):
        return dy * 0.0


class Floor(Elementwise):
    """The largest integer not above x.  (...) -> (...).  Its gradient is 0."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return e.floor(x)

    def gradient(dy):
        return dy * 0.0


class Ceil(Elementwise):
    """The smallest integer not below x.  (...) -> (...).  Its gradient is 0."""

    samples = SHAPES
    takes_bool = False

    def formula(x):
        return e.ceil(x)

    def gradient(dy):
        return dy * 0.0


class LogicalNot(Elementwise):
    """not x, of truth values; numbers count as x != 0.  (...) -> (...) of bool."""

    samples = SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.logical_not(x)


class IsNan(Elementwise):
    """Whether x is NaN.  (...) -> (...) of bool."""

    name = "isnan"
    samples = SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.not_equal(x, x)


class IsFinite(Elementwise):
    """Whether x is neither NaN nor infinite.  (...) -> (...) of bool."""

    name = "isfinite"
    samples = SHAPES
    result = "bool"
    gradient = None

    def formula(x):
        return e.equal(x - x, 0.0)
