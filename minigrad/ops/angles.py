"""The tangent, and the angle of a point."""

from minigrad.formulas import expression as e
from minigrad.formulas.expression import where
from minigrad.ops.base import Elementwise


class Tan(Elementwise):
    """Tangent, of radians.  (...) -> (...).  d tan(x)/dx = 1 + tan(x)^2."""

    domain = (-1.2, 1.2)
    result = "real"

    def formula(x):
        return e.sin(x) / e.cos(x)

    def gradient(dy, y):
        return dy * (1.0 + y * y)


class Atan2(Elementwise):
    """The angle of the point (b, a), from -pi to pi, broadcast.  (...), (...) -> (...).

    mg.atan2(y, 1.0) is arctan(y). The angle of (0, 0) is 0, or pi if b is -0; the gradients there
    are 0.
    """

    domains = ((-2.0, 2.0), (0.3, 2.0))
    result = "real"

    def formula(a, b):
        return e.atan2(a, b)

    def gradient(dy, a, b):
        square = a * a + b * b
        is_zero = e.equal(square, 0.0)
        slope = where(is_zero, 0.0, dy / where(is_zero, 1.0, square))
        return slope * b, -slope * a
