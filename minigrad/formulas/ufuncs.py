"""Formulas computed by NumPy: floats in one type, ints as int64, truth values as bools."""

import math

import numpy as np

from minigrad.array.dtypes import OF_KIND, by_name, int64
from minigrad.formulas.expression import COMPARISONS, walk
from minigrad.formulas.kinds import result_kind

quiet = np.errstate(all="ignore")  # no warnings for NaN, infinities or overflow of ints


def _power(a, b):
    """Return a ** b; an int to a negative power is truncated, as in `source/powers.py`."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    of_units = np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0)
    return np.where(b < 0, of_units, np.power(a, np.maximum(b, 0)))


def _sigmoid(x):
    e = np.exp(-np.abs(x))  # at most 1, so that nothing overflows
    return np.where(x > 0, np.ones_like(e), e) / (1 + e)


_erf = np.vectorize(math.erf, otypes=[np.float64])
FUNCTIONS = {  # those that have other names in NumPy, or none
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "pow": _power,
    "atan2": np.arctan2, "cast_float": np.positive, "sigmoid": _sigmoid,
    "erf": lambda x: _erf(x).astype(x.dtype),
    # NaN wins, and of two equals, such as 0 and -0, the second
    "maximum": lambda a, b: np.where((a > b) | (a != a), a, b),
    "minimum": lambda a, b: np.where((a < b) | (a != a), a, b),
}  # fmt: skip


def as_stored(x, dtype):
    """Return computed values as new elements of a dtype."""
    return np.asarray(x != 0 if dtype.kind == "b" else dtype.cells(x))


def wide(dtype):
    """Return the NumPy dtype for sums over a dtype: float64 for floats, else int64."""
    return np.promote_types(dtype, np.int64)


def reduced(how, x, axes, keepdims=False):
    """Return an ndarray reduced over axes: sum, mean, prod, max, min, any, all.

    Means, and sums and products of floats, are computed in float64; other sums and products in
    int64.
    """
    more: dict = {"axis": axes, "keepdims": keepdims}
    if how in ("max", "min"):
        ends = {"f": (-math.inf, math.inf), "b": (False, True)}.get(x.dtype.kind, int64.limits)
        more["initial"] = ends[how == "min"]
    elif how not in ("any", "all"):
        more["dtype"] = float if how == "mean" else wide(x.dtype)
    result = getattr(np, "sum" if how == "mean" else how)(x, **more)
    return np.divide(result, math.prod(x.shape[a] for a in axes)) if how == "mean" else result


@quiet
def values_of(program, operands, shape, real):
    """Return the values of a Program's formulas: one ndarray each, broadcastable to `shape`.

    Args:
        program, operands: a Program, and an ndarray or number for each of its inputs.
        shape: the full shape; rows are reduced along its last axis.
        real: NumPy's type in which floats are computed.
    """
    named, done = dict(zip(program.inputs, operands, strict=True)), {}

    def as_kind(x, kind):
        return x.astype(real if kind == "f" else OF_KIND[kind].numpy, copy=False)

    for e in walk(program.outputs):
        if e.op in ("symbol", "constant"):
            x = np.asarray(named[e.args[0]] if e.op == "symbol" else e.args[0])
            done[e] = as_kind(x, _kind(x))
        elif e.op == "column_of":
            done[e] = np.arange(shape[-1])
        elif e.op.startswith("as_"):
            dtype = by_name(e.op[3:])
            cells = as_stored(done[e.args[0]], dtype)
            done[e] = as_kind(dtype.numbers(cells), dtype.kind)
        else:
            args = [done[a] for a in e.args]
            name = "maximum" if e.op in COMPARISONS else e.op  # their operands have one kind, too
            kind = result_kind(name, [_kind(x) for x in args])
            kinds = ["b" if e.op == "where" else kind, *[kind] * (len(args) - 1)]
            args = [as_kind(x, k) for x, k in zip(args, kinds, strict=True)]
            if e.op.startswith("row_"):
                row = np.broadcast_to(args[0], np.broadcast_shapes(args[0].shape, shape[-1:]))
                done[e] = as_kind(reduced(e.op[4:], row, (-1,), True), kind)
            else:
                done[e] = (FUNCTIONS.get(e.op) or getattr(np, e.op))(*args)
    return [done[e] for e in program.outputs]


def _kind(x):
    """Return 'f', 'i' or 'b': the kind of an ndarray's elements."""
    return "i" if x.dtype.kind == "u" else x.dtype.kind
