"""Computes formulas on numbers as kernels do: each step is rounded to the kernel's type.

Only operations that IEEE 754 defines to the last bit are computed here. `exp` and the like stay in
kernels: they are our own polynomials, and their results must not depend on the caller.
"""

import numpy as np

from minigrad.array import dtypes
from minigrad.compiler.program.program import Ref
from minigrad.formulas.expression import COMPARISONS
from minigrad.formulas.kinds import result_kind

EXACT_SUM = 1 << 24  # float32 sums of integers up to here are exact in any order


def _larger(a, b):
    return a if a >= b or a != a else b  # NaN wins


def _smaller(a, b):
    return a if a <= b or a != a else b


def _rounder(function):
    return lambda x: x if kind_of(x) == "i" else function(x)


DONE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": _rounder(np.floor),
    "ceil": _rounder(np.ceil),
    "round": _rounder(np.rint),
    "maximum": _larger,
    "minimum": _smaller,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "cast_float": lambda x: x,
    "where": None,
}


def real_of(inputs, outputs):
    """Return the NumPy float type of a kernel over these operands."""
    types = (x.value.dtype for x in (*inputs, *outputs) if isinstance(x, Ref))
    return dtypes.real_of(types).numpy.type


def kind_of(x):
    """Return 'f', 'i' or 'b' for a NumPy scalar."""
    return x.dtype.kind


def result(e, numbers, real):
    """Return the value of a formula as a NumPy scalar, or None if it is left to a kernel.

    Args:
        numbers: {name of a symbol: Python number}.
        real: NumPy's float32 or float64, in which the kernel computes.

    >>> from minigrad.formulas.expression import symbol, exp
    >>> x = symbol("x")
    >>> result(x * 0.1 + 1, {"x": 0.1}, np.float32), result(exp(x), {"x": 0.1}, np.float32)
    (np.float32(1.01), None)
    """
    done = {}
    with np.errstate(all="ignore"):
        return _visit(e, numbers, real, done)


def _visit(e, numbers, real, done):
    if e not in done:
        done[e] = _value(e, numbers, real, done)
    return done[e]


def as_input(x, real):
    """Convert a Python number to the type in which kernels receive it."""
    return real(x) if isinstance(x, float) else np.int64(x)


def _converted(x, kind, real):
    if kind == "b":
        return np.bool_(x != 0)
    return real(x) if kind == "f" else np.int64(x)


def _value(e, numbers, real, done):
    if e.op == "symbol":
        return as_input(numbers[e.args[0]], real)
    if e.op == "constant":
        x = e.args[0]
        return np.bool_(x) if isinstance(x, bool) else as_input(x, real)
    if e.op not in DONE:
        return None
    args = [_visit(a, numbers, real, done) for a in e.args]
    if any(a is None for a in args):
        return None
    op = "maximum" if e.op in COMPARISONS else e.op  # of the operands' common kind
    kind = result_kind(op, [kind_of(a) for a in args])
    if e.op == "where":
        return _converted(args[1] if args[0] != 0 else args[2], kind, real)
    return DONE[e.op](*(_converted(a, kind, real) for a in args))


def stored(x, dtype):
    """Return what a NumPy scalar becomes when stored as a dtype, as a Python number.

    Return None for a float that is out of range of an integer type.

    >>> from minigrad.array.dtypes import float32, int32, uint8
    >>> stored(np.float64(0.1), float32), stored(np.int64(300), uint8)
    (0.10000000149011612, 44)
    """
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            return bool(x != 0)
        if dtype.is_float:
            return dtype.numbers(dtype.cells(np.asarray(x))).item()
        if kind_of(x) == "f":
            low, high = dtype.limits
            if not low < x < high:
                return None
        return int(np.int64(x).astype(dtype.numpy))


def filled(number, dtype):
    """Return what a Python number becomes when it fills an array; see `stored`."""
    real = dtypes.real_of([dtype]).numpy.type
    with np.errstate(all="ignore"):
        return stored(as_input(number, real), dtype)


def reduced(x, how, count, real):
    """Reduce `count` copies of a NumPy scalar; return None if the result may be rounded.

    >>> reduced(np.float32(2), "sum", 5, np.float32), reduced(np.float32(0.1), "sum", 5, np.float32)
    (np.float32(10.0), None)
    """
    if not count:
        return None
    if how in ("any", "all"):
        return np.bool_(x != 0)
    if how in ("max", "min"):
        return x
    if how == "prod":
        return x if x in (0, 1) and not np.signbit(x) else None
    number = float(x)
    if not number.is_integer() or abs(number) * count > EXACT_SUM:
        return None
    if how == "mean":
        return real(x) + 0  # sums begin as 0: of -0 they are 0
    kind = "f" if kind_of(x) == "f" else "i"
    return _converted(x, kind, real) * _converted(count, kind, real) + 0
