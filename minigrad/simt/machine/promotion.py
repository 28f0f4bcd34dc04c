"""Result types: those of Numba's CUDA target, which are not always NumPy's.

Integers of any width give int64 (uint64 if both are unsigned), `/` of integers gives float64, and
so does float32 with a 32-bit or wider integer, such as the literal 2.
"""

import operator
from typing import Any

import numpy as np

from minigrad.simt.machine.masks import NUMBERS, Misuse, describe

I8, U8, F2, F4, F8 = map(np.dtype, (np.int64, np.uint64, np.float16, np.float32, np.float64))
BOOL = np.dtype(bool)

OPERATORS = {  # name -> (sign, ufunc, Python's operator, which is far faster on scalars)
    "Add": ("+", np.add, operator.add),
    "Sub": ("-", np.subtract, operator.sub),
    "Mult": ("*", np.multiply, operator.mul),
    "Div": ("/", np.true_divide, operator.truediv),
    "FloorDiv": ("//", np.floor_divide, operator.floordiv),
    "Mod": ("%", np.remainder, operator.mod),
    "Pow": ("**", np.power, operator.pow),
    "LShift": ("<<", np.left_shift, operator.lshift),
    "RShift": (">>", np.right_shift, operator.rshift),
    "BitAnd": ("&", np.bitwise_and, operator.and_),
    "BitOr": ("|", np.bitwise_or, operator.or_),
    "BitXor": ("^", np.bitwise_xor, operator.xor),
    "Lt": ("<", np.less, operator.lt),
    "LtE": ("<=", np.less_equal, operator.le),
    "Gt": (">", np.greater, operator.gt),
    "GtE": (">=", np.greater_equal, operator.ge),
    "Eq": ("==", np.equal, operator.eq),
    "NotEq": ("!=", np.not_equal, operator.ne),
}
_COMPARISONS = {"Lt", "LtE", "Gt", "GtE", "Eq", "NotEq"}
_BITS = {"BitAnd", "BitOr", "BitXor"}


def result_dtype(name, a, b):
    """Return the dtype of `a op b`; None if Numba has no such operation."""
    if name in _COMPARISONS:
        return BOOL
    floats = [d for d in (a, b) if d.kind == "f"]
    if name in ("LShift", "RShift"):
        return None if floats else U8 if a.kind == "u" else I8
    if name in _BITS and floats:
        return None
    if name in _BITS and a == b == BOOL:
        return BOOL
    if not floats:
        return F8 if name == "Div" else U8 if a.kind == b.kind == "u" else I8
    if name == "Pow" and b.kind != "f":
        return F8 if a == F8 else F4
    wide = common_float(a, b)
    return F4 if wide == F2 and name in ("FloorDiv", "Mod", "Pow") else wide


def common_float(a, b):
    """Return the common float of two dtypes, at least one a float; uint8 and uint16 widen it."""
    wide = np.promote_types(a, b)
    if a != b and np.dtype(np.uint16) in (a, b):
        return F8
    return F4 if wide == F2 and np.dtype(np.uint8) in (a, b) else wide


def _build(name, a, b):
    sign, ufunc, plain = OPERATORS[name]
    wanted = result_dtype(name, a, b)
    if wanted is None:
        raise Misuse(f"{a} {sign} {b}: Numba has no such operation")
    if name in _COMPARISONS:
        return plain
    try:
        natural = ufunc(np.ones(1, a), np.ones(1, b)).dtype
    except TypeError:
        natural = None
    if name == "Pow" and wanted == I8:
        return _integer_power
    if natural == wanted:
        return plain
    if (name == "Div" and wanted == F8) or natural is None:
        return lambda x, y: ufunc(x.astype(wanted), y.astype(wanted))
    return lambda x, y: ufunc(x, y, dtype=wanted, casting="unsafe")


def _integer_power(x, y):
    """Compute powers in int64; treat negative exponents, which NumPy refuses, as Numba does."""
    x, y = x.astype(I8), y.astype(I8)
    power = np.power(x, np.where(y < 0, y & 1, y))  # for 1 and -1 the parity is enough
    rest = np.where(x == 0, np.iinfo(np.int64).min, np.where(np.abs(x) == 1, power, 0))
    return np.where(y < 0, rest, power)[()]


def binary(name):
    """Return a function (a, b) -> a op b of scalars and vectors, with Numba's result type."""
    table = {}

    def apply(a, b):
        try:
            function = table.get((a.dtype.num, b.dtype.num))
            if function is None:
                function = table[a.dtype.num, b.dtype.num] = _build(name, a.dtype, b.dtype)
            return function(a, b)
        except (AttributeError, TypeError):
            return _objects(name, a, b)

    return apply


def _objects(name, a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        if name == "Add":
            return a + b
        if name in ("Eq", "NotEq"):
            same: Any = np.bool_(len(a) == len(b))
            for x, y in zip(a, b, strict=False):
                same = same & BINARY["Eq"](x, y)
            return same if name == "Eq" else ~same
    fix = "compute with elements, one thread one element: x[i] + 1"
    if any(
        getattr(value, "shape", None) == () and not isinstance(value, NUMBERS) for value in (a, b)
    ):
        fix = "of an array without axes n[()] is the number; or give the kernel a number: float(n)"
    elif "a triple" in (describe(a), describe(b)):
        fix = "take one of the three: cuda.threadIdx.x"
    raise Misuse(
        f"{describe(a)} {OPERATORS[name][0]} {describe(b)}: a kernel has no such operation", fix
    )


BINARY = {name: binary(name) for name in OPERATORS}


def _wide(x):
    return x.astype(U8 if x.dtype.kind == "u" else I8, copy=False) if x.dtype.kind in "iub" else x


def _invert(x):
    if x.dtype.kind == "f":
        raise Misuse(f"~{x.dtype}: Numba has no such operation")
    return ~x if x.dtype == BOOL else ~_wide(x)


UNARY = {
    "USub": lambda x: -_wide(x),
    "UAdd": _wide,
    "Invert": _invert,
    "Not": lambda x: np.logical_not(truth(x)),
}


def truth(value):
    """Return the value of a condition as bools."""
    if isinstance(value, tuple):
        return np.bool_(len(value) > 0)
    if value is None:
        return np.bool_(False)
    if not isinstance(value, NUMBERS):
        raise Misuse(f"{describe(value)} is no condition")
    return value if value.dtype == BOOL else value != 0
