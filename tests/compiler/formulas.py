"""Expressions evaluated by NumPy, with the kernels' rules for kinds and types."""

import math

import numpy as np

from minigrad.formulas.expression import COMPARISONS, LOGIC


def _larger(a, b):
    """The larger, as kernels choose it: NaN wins, and of equal ones the first, also of 0 and -0."""
    return np.where((a >= b) | (a != a), a, b)


def _smaller(a, b):
    return np.where((a <= b) | (a != a), a, b)


def stored(value, dtype):
    """A value as elements of a dtype, as kernels store it."""
    return value != 0 if dtype == np.bool_ else value.astype(dtype)


FUNCTIONS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "sqrt": np.sqrt,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "maximum": _larger, "minimum": _smaller,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "equal": np.equal, "not_equal": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not,
    "pow": np.power, "log2": np.log2, "atan2": np.arctan2, "floor_divide": np.floor_divide,
    "remainder": np.remainder,
}  # fmt: skip
REAL_ONLY = {
    "exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "div",
    "log2", "atan2", "cast_float", "row_mean", "row_sum",
}  # fmt: skip
_erf = np.vectorize(math.erf, otypes=[np.float64])


class Formula:
    """Evaluates a tree over a shape: floats in the kernel's real type, ints as int64, bools."""

    def __init__(self, symbols, real, shape):
        self.symbols, self.real, self.shape, self.done = symbols, real, shape, {}

    def __call__(self, e):
        if e not in self.done:
            # in C order, whatever the operands' layout: NumPy's sums and its `exp` round by it
            self.done[e] = np.broadcast_to(self.value(e), self.shape).copy()
        return self.done[e]

    def as_kind(self, x, kind):
        """x as 'f', 'i' or 'b'."""
        if kind == "b":
            return x != 0
        return x.astype(self.real if kind == "f" else np.int64)

    def constant(self, x):
        """A number as kernels take it."""
        if isinstance(x, bool):
            return np.asarray(x)
        return np.asarray(x, self.real if isinstance(x, float) else np.int64)

    def value(self, e):
        """The value of a tree, before it is broadcast."""
        if e.op == "constant":
            return self.constant(e.args[0])
        if e.op == "symbol":
            x = self.symbols[e.args[0]]
            if not isinstance(x, np.ndarray):
                return self.constant(float(x) if isinstance(x, float) else int(x))
            return (
                x
                if x.dtype == np.bool_
                else self.as_kind(x, "f" if "float" in x.dtype.name else "i")
            )
        if e.op == "column_of":
            return np.arange(self.shape[-1])
        args = [self(a) for a in e.args]
        kinds = {"i" if x.dtype.kind in "iu" else x.dtype.kind for x in args}
        common = "f" if "f" in kinds else "b" if kinds == {"b"} else "i"
        if e.op in COMPARISONS:
            return FUNCTIONS[e.op](*(self.as_kind(x, common) for x in args))
        if e.op in LOGIC:
            return FUNCTIONS[e.op](*(x != 0 for x in args))
        if e.op == "where":
            kinds = {"i" if x.dtype.kind in "iu" else x.dtype.kind for x in args[1:]}
            common = "f" if "f" in kinds else "b" if kinds == {"b"} else "i"
            a, b = (self.as_kind(x, common) for x in args[1:])
            return np.where(args[0] != 0, a, b)
        if e.op in REAL_ONLY:
            common = "f"
        elif common == "b" and e.op not in ("maximum", "minimum", "row_max"):
            common = "i"
        return self.function(e.op, [self.as_kind(x, common) for x in args])

    def function(self, op, args):
        """An op on values of one kind."""
        if op in ("row_sum", "row_mean"):
            how = np.sum if op == "row_sum" else np.mean
            return how(args[0], axis=-1, keepdims=True, dtype=np.float64).astype(self.real)
        if op == "row_max":
            return np.max(args[0], axis=-1, keepdims=True)
        if op == "cast_float":
            return args[0]
        if op == "sigmoid":
            return (1 / (1 + np.exp(-args[0].astype(np.float64)))).astype(self.real)
        if op == "erf":
            return _erf(args[0]).astype(self.real)
        return FUNCTIONS[op](*args)
