"""Floor division and remainder, with the rules of Python and NumPy."""

from minigrad.array.array import Array
from minigrad.array.dtypes import bool_
from minigrad.devices.backend import device_of
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, symbol
from minigrad.ops.base import Elementwise
from minigrad.ops.operands import demand, fitting_numbers

NOT_ZERO = Program(["b"], [e.not_equal(symbol("b"), 0)])


class Quotient(Elementwise, abstract=True):
    """An op of a quotient. Ints stay ints, and dividing ints by 0 raises."""

    domains = ((-4.0, 4.0), (0.5, 2.0))
    takes_bool = False

    @classmethod
    def forward(cls, *operands):
        """Computes the output Array. Raises for ints divided by 0."""
        device = device_of(next(x for x in operands if isinstance(x, Array)))
        dtype = cls.result_dtype(operands)
        if not dtype.is_float:
            _, b = fitting_numbers(cls.name, operands, dtype)
            flags = device.empty(b.shape if isinstance(b, Array) else (), bool_)
            device.elementwise(NOT_ZERO, (b,), (flags,))
            demand(
                flags,
                f"{cls.name}: wanted ints other than 0 to divide ints by",
                "0",
                "convert first: x.to('float32') // 0 is infinite, % 0 is NaN",
            )
        return super().forward(*operands)


class FloorDivide(Quotient):
    """a // b: the exact quotient rounded down, broadcast.  (...), (...) -> (...).

    Ints stay ints; dividing ints by 0 raises ArgumentError. The gradients are 0.
    """

    def formula(a, b):
        return e.floor_divide(a, b)

    def gradient(dy, a, b):
        return e.zero_of(dy), e.zero_of(dy)


class Remainder(Quotient):
    """a % b = a - b (a // b), with the sign of b, broadcast.  (...), (...) -> (...).

    The result is exact: no step rounds floats. Ints stay ints; dividing ints by 0 raises
    ArgumentError. Where a // b jumps, the gradients are those of either side.
    """

    def formula(a, b):
        return e.remainder(a, b)

    def gradient(dy, a, b):
        return dy, -dy * e.floor_divide(a, b)
