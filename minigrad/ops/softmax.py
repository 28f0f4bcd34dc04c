"""Softmax, its logarithm and the logarithm of its sum, along any axis."""

from minigrad.arguments import flag
from minigrad.array.layout import normalize_axes, normalize_axis, size_of
from minigrad.ops import rows, shape
from minigrad.ops.operands import as_variable
from minigrad.ops.reduction import ONE_TUPLE


def _last_axis(op, x, axis, *others):
    """Runs a row op along any axis."""
    if x.ndim or axis != -1:
        axis = normalize_axis(op.name.removesuffix("_row"), axis, x.ndim or 1)
    if not x.ndim:
        return shape.reshape(op.apply(shape.reshape(x, (1,)), *others), ())
    return shape.on_last(lambda x: op.apply(x, *others), x, axis)


def softmax(x, axis=-1):
    """exp(x) / sum exp(x) along an axis, without overflow.  (..., n, ...) -> (..., n, ...)."""
    return _last_axis(rows.SoftmaxRow, as_variable(x, "softmax"), axis)


def log_softmax(x, axis=-1):
    """x - log sum exp(x) along an axis.  (..., n, ...) -> (..., n, ...)."""
    return _last_axis(rows.LogSoftmaxRow, as_variable(x, "log_softmax"), axis)


def logsumexp(x, axis=None, keepdims=False):
    """log sum exp(x) over axes, without overflow.  (...), axis -> (...) without the axes."""
    x, keepdims = as_variable(x, "logsumexp"), flag("logsumexp", "keepdims", keepdims, ONE_TUPLE)
    axes = normalize_axes("logsumexp", axis, x.ndim)
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    rest = [d for d in range(x.ndim) if d not in axes]
    if tuple(range(len(rest), x.ndim)) != axes:
        x = shape.permute(x, (*rest, *axes))
    if len(axes) != 1:
        x = shape.reshape(x, (*x.shape[: len(rest)], size_of(x.shape[len(rest) :])))
    y = rows.LogSumExpRow.apply(x)
    return shape.reshape(y, kept if keepdims else y.shape[:-1])
