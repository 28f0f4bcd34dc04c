"""Clipping by norms as formulas, used while a step is traced."""

import functools

from minigrad.array.dtypes import float32, float64
from minigrad.devices.backend import default_device
from minigrad.errors import NonFiniteError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, call, symbol, where
from minigrad.seams import seams
from minigrad.tape.node import place_line, user_place
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable

MOST = 16  # numbers added by one formula
x_, f_, t_, most_ = map(symbol, ("x", "f", "t", "most"))
SQUARE = Program(["x"], [x_ * x_])
ROOT = Program(["x"], [e.sqrt(x_)])
SCALED = Program(["x", "f"], [x_ * f_])
FACTOR = Program(["t", "most"], [where(call("less_equal", t_, most_), 1.0, most_ / t_)])


class TracedNumber(Variable):
    """A number computed in the step, of shape (): a Python float after the compiled step has run.

    Arithmetic is that of a float: with numbers the result is another such number, with Variables it
    keeps their dtype.
    """

    __slots__ = ()
    is_number = True


def _arithmetic(name):
    plain = getattr(Variable, name)

    def method(self, *other):
        if other and isinstance(other[0], Variable) and not isinstance(other[0], TracedNumber):
            dtype = other[0].dtype if other[0].dtype.is_float else float32
            return plain(Variable(self.array).to(dtype), *other)
        return TracedNumber(plain(self, *other).array)

    setattr(TracedNumber, name, method)


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _arithmetic(f"__{_name}__")
    _arithmetic(f"__r{_name}__")
_arithmetic("__neg__")


@functools.cache
def _sum_of(count):
    names = [f"x{k}" for k in range(count)]
    return Program(names, [functools.reduce(lambda a, b: a + b, map(symbol, names))])


def clip(name, found, max_norm, error_if_nonfinite, together):
    """Scales gradients by one common factor or one factor each; returns the norms before.

    found: (parameter, gradient) pairs. Returns a TracedNumber, or a list of them.
    """
    return run_as(name, _clip, name, found, max_norm, error_if_nonfinite, together)


def _clip(name, found, max_norm, error_if_nonfinite, together):
    device, place = default_device(), user_place()
    sums = [_squares(device, g.array) for _, g in found]
    if error_if_nonfinite:
        for (p, _), x in zip(found, sums, strict=True):
            seams.effects.check_finite(x, _error(name, p, place))
    if together:
        norms = [_apply(device, ROOT, _total(device, sums))] * len(found)
    else:
        norms = [_apply(device, ROOT, x) for x in sums]
    factors = {}
    for (_, g), norm in zip(found, norms, strict=True):
        key = id(norm), g.dtype
        if key not in factors:
            factor = _apply(device, FACTOR, norm, float(max_norm))
            factors[key] = device.convert(factor, g.dtype) if g.dtype is not float64 else factor
        device.prepare_write(g.array, place)
        device.elementwise(SCALED, (g.array, factors[key]), (g.array,))
    return TracedNumber(norms[0]) if together else list(map(TracedNumber, norms))


def _apply(device, program, *inputs):
    out = device.empty((), float64)
    device.elementwise(program, inputs, (out,))
    return out


def _squares(device, x):
    out = device.empty((), float64)
    device.reduce(SQUARE, "sum", (x,), out, x.shape, tuple(range(len(x.shape))))
    return out


def _total(device, sums):
    while len(sums) > 1:
        parts = [sums[k : k + MOST] for k in range(0, len(sums), MOST)]
        sums = [_apply(device, _sum_of(len(part)), *part) for part in parts]
    return sums[0]


def _error(name, parameter, place):
    """A function that makes the error for a gradient that is not finite."""
    return lambda: NonFiniteError(
        f"{name}: wanted finite gradients",
        f"NaN or infinity in the gradient of '{parameter.name or parameter.describe()}'",
        "leave this step out (optimizer.zero_grad()), or look for its source: "
        "with mg.debug.detect_anomaly(): ...",
        where=place_line(place),
    )
