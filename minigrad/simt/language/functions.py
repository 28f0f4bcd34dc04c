"""The functions of Python, math and NumPy on values of a kernel, with the types of Numba."""

import builtins
import functools
import inspect
import math
import sys

import numpy as np

from minigrad.errors import is_ours
from minigrad.simt.machine.arrays import ArrayView, Triple
from minigrad.simt.machine.faults import no_zero
from minigrad.simt.machine.local import LocalArray
from minigrad.simt.machine.masks import NUMBERS, Misuse, describe
from minigrad.simt.machine.promotion import BINARY, F2, F4, F8, common_float, truth


def floating(x):
    """Convert ints to float64; return floats as they are."""
    return x if x.dtype.kind == "f" else x.astype(F8)


def _float_function(ufunc, least=F2):
    """Return a function that converts numbers to one float dtype; least: the smallest one."""

    def run(*values):
        dtype = functools.reduce(common_float, (v.dtype for v in values))
        dtype = np.promote_types(dtype, least) if dtype.kind == "f" else F8
        return ufunc(*[v.astype(dtype, copy=False) for v in values])

    run.nin = ufunc.nin
    return run


def _slow(function):
    """Return a function that applies one of math, which NumPy lacks, to each element in float64."""
    each = np.frompyfunc(function, 1, 1)

    def run(x):
        x = floating(x)
        kind = F4 if x.dtype.itemsize == 2 else x.dtype
        return np.asarray(each(x.astype(F8))).astype(kind)[()]

    return run


def _guarded(function, limit):
    """Return infinity, as C does, where a function of math raises: at poles and on overflow."""

    def run(x):
        try:
            return function(x)
        except OverflowError:
            return limit
        except ValueError:
            return math.nan if x != x or x == -math.inf else limit

    return run


def extremum(ufunc):
    """Return min or max of two or more numbers, or of a tuple; a number wins over NaN."""

    def run(*values):
        if len(values) == 1 and isinstance(values[0], tuple):
            (values,) = values
        if len(values) < 2:
            raise Misuse("min and max take two numbers or more")
        return functools.reduce(_of_numbers(ufunc), values)

    return run


def _round(x, digits=None):
    if digits is None:
        return _of_numbers(np.rint)(x).astype(np.int64)
    scale = 10.0 ** float(digits)
    return (np.rint(floating(x) * F8.type(scale)) / F8.type(scale)).astype(floating(x).dtype)


def _int(x):
    if x.dtype.kind == "f" or x.dtype == bool:
        return x.astype(np.int64)
    return x


def _power(x, y, modulus=None):
    if modulus is not None:
        raise Misuse("pow takes two numbers in a kernel")
    return BINARY["Pow"](x, y)


def _len(value):
    if isinstance(value, tuple):
        return np.int64(len(value))
    if isinstance(value, ArrayView | LocalArray):
        return value.shape[0]
    raise Misuse(f"{describe(value)} has no len")


def _ldexp(x, n):
    return np.ldexp(floating(x), n.astype(np.int32))


def _frexp(x):
    mantissa, exponent = np.frexp(floating(x))
    return mantissa, exponent.astype(np.int32)


def _modf(x):
    return np.modf(floating(x))


def _of_numbers(ufunc):
    """Return a function of numbers only: NumPy would also apply it to tuples."""

    def run(*values):
        if not all(isinstance(value, NUMBERS) for value in values):
            raise TypeError  # the call says which of its arguments that is: masks.on_numbers
        return ufunc(*values)

    run.nin = ufunc.nin
    return run


PLAIN = {
    builtins.abs: _of_numbers(np.abs),
    builtins.min: extremum(np.fmin),
    builtins.max: extremum(np.fmax),
    builtins.round: _round,
    builtins.pow: _power,
    builtins.len: _len,
    builtins.int: _int,
    builtins.float: floating,
    builtins.bool: truth,
    math.pow: _float_function(np.power, F4),
    math.ldexp: _ldexp,
    math.frexp: _frexp,
    math.modf: _modf,
    math.fabs: lambda x: np.abs(floating(x)),
    math.isnan: _of_numbers(np.isnan),
    math.isinf: _of_numbers(np.isinf),
    math.isfinite: _of_numbers(np.isfinite),
    math.erf: _slow(math.erf),
    math.erfc: _slow(math.erfc),
    math.gamma: _slow(_guarded(math.gamma, math.inf)),
    math.lgamma: _slow(_guarded(math.lgamma, math.inf)),
    math.log: _float_function(np.log),
}
_HALF = {"ceil", "cos", "exp", "floor", "log10", "log2", "sin", "sqrt", "trunc"}  # of float16
for _name in (  # NumPy has them under the same names
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "sinh", "tan", "tanh"),
    *("copysign", "degrees", "expm1", "fmod", "hypot", "log1p", "nextafter", "radians"),
    *("remainder", *_HALF),
):
    _least = F2 if _name in _HALF else F4
    PLAIN[getattr(math, _name)] = _float_function(getattr(np, _name), _least)
if hasattr(math, "exp2"):
    PLAIN[math.exp2] = _float_function(np.exp2)
for _ufunc in (  # those of NumPy's functions that Numba has for CUDA
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot),
    *(np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.deg2rad, np.rad2deg),
    *(np.log, np.log2, np.log10),
):
    PLAIN[_ufunc] = _float_function(_ufunc)
for _ufunc in (
    *(np.maximum, np.minimum, np.fmax, np.fmin, np.isnan, np.true_divide),
    *(np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or),
    *(np.bitwise_xor, np.invert, np.left_shift, np.right_shift),
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
):
    PLAIN[_ufunc] = _of_numbers(_ufunc)


def refusal(function, name):
    """Return (why a kernel cannot call a function, what to do instead); name: as written."""
    own = getattr(function, "__name__", "")
    fix = (
        f"use math.{own}"
        if own in vars(math)
        else "kernels call math.*, casts such as np.float32(x), min, max, abs, cuda.* and device "
        "functions"
    )
    if isinstance(function, np.ufunc):
        return f"Numba has no {name} for CUDA", fix
    if not inspect.isfunction(function):
        return f"{name} cannot be called in minigrad's kernels", fix
    if is_ours(function.__code__.co_filename):
        fix = "use cuda.syncthreads" if function.__name__ == "synchronize" else fix
        return f"{name} is called outside of kernels, which compute with numbers", fix
    return (
        f"{name} is a plain Python function, which Numba does not compile into a kernel",
        "make it a device function: put @cuda.jit(device=True) above it",
    )


def _divmod(call, f, m, a, b):
    no_zero(f.wave.lanes, m, a, b, call.site)
    return BINARY["FloorDiv"](a, b), BINARY["Mod"](a, b)


def _print(call, f, m, *values):
    """Print one line per active thread, in the order of blocks and threads."""
    count = f.wave.lanes.count
    for lane in range(count) if m is None else np.flatnonzero(m):
        sys.stdout.write(" ".join(_shown(value, lane) for value in values) + "\n")


def _shown(value, lane):
    """Return a value of one lane as text."""
    if isinstance(value, Triple):
        value = value.x, value.y, value.z
    if isinstance(value, tuple):
        return f"({', '.join(_shown(part, lane) for part in value)})"
    if not isinstance(value, (*NUMBERS, str)):
        raise Misuse(f"{describe(value)} cannot be printed", "print elements: x[i]")
    return str(value[lane] if isinstance(value, np.ndarray) and value.ndim else value)


CONTEXT = {builtins.divmod: _divmod, builtins.print: _print}
"""Functions that get the frame, the mask and the site."""
