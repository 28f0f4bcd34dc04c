"""The variance and the standard deviation, whose divisor has to be named."""

from minigrad.arguments import flag, whole
from minigrad.errors import ArgumentError, ShapeError
from minigrad.ops.operands import as_variable
from minigrad.ops.reduction import ONE_TUPLE, Var, plain_axis
from minigrad.ops.unary import RootOfSquares


def var(x, axis=None, *, ddof=None, correction=None, keepdims=False):
    """Sum of squared deviations from the mean, divided by n - ddof.  (...), axis -> (...).

    ddof is required: NumPy's default is 0, PyTorch's 1. `correction` is another name for it.

    >>> import minigrad as mg
    >>> x = mg.variable([1.0, 3.0])
    >>> mg.var(x, ddof=0).item(), mg.var(x, ddof=1).item()
    (1.0, 2.0)
    """
    return _variance("var", x, axis, ddof, correction, keepdims)


def std(x, axis=None, *, ddof=None, correction=None, keepdims=False):
    """Standard deviation, the root of `var`, with the same arguments.  (...), axis -> (...).

    The gradients of equal values, whose deviation is 0, are 0.
    """
    x = as_variable(x, "std")
    if x.dtype.is_narrow:  # it may not hold the variance
        wide = x.to(x.dtype.arithmetic)
        return std(wide, axis, ddof=ddof, correction=correction, keepdims=keepdims).to(x.dtype)
    return RootOfSquares.apply(_variance("std", x, axis, ddof, correction, keepdims))


def _variance(name, x, axis, ddof, correction, keepdims):
    x, keepdims = as_variable(x, name), flag(name, "keepdims", keepdims, ONE_TUPLE)
    if (ddof is None) == (correction is None):
        raise ArgumentError(
            f"{name}: wanted ddof, as NumPy divides by n without it, and PyTorch by n - 1",
            "neither" if ddof is None else "ddof and correction, which are the same",
            f"x.{name}(ddof=0) divides by n, x.{name}(ddof=1) by n - 1",
        )
    given, ddof = ("ddof", ddof) if correction is None else ("correction", correction)
    ddof = whole(name, given, ddof, 0)
    y = Var.apply(x, plain_axis(axis), keepdims)
    if not ddof:
        return y
    count = x.size // max(1, y.size)
    if count <= ddof:
        raise ShapeError(
            f"{name}: wanted more than {ddof} elements along the axes, as {given}={ddof} divides "
            f"by n - {ddof}",
            f"{count}, of shape {x.shape}",
        )
    return y * (count / (count - ddof))
