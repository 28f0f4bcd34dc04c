"""The product along axes. The gradient of a factor is the product of all others."""

from minigrad.array.dtypes import int64
from minigrad.array.layout import normalize_axes
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.joining import concatenate
from minigrad.ops.reduction import SHAPES, count, reduced, spread
from minigrad.tape.variable import Variable


class Prod(Structural):
    """Product over axes; int64 for ints and bools.  (...), axis -> (...) without the axes.

    The gradient multiplies the other factors, so it is correct if factors are 0.
    """

    samples = SHAPES

    def forward(x, axis=None, keepdims=False):
        dtype = x.dtype if x.dtype.is_float else int64
        return reduced("prod", "prod", x, axis, keepdims, dtype)

    gradients = (
        lambda dy, x, x_shape, axis, keepdims: (
            spread(dy, x_shape, axis, keepdims)
            * products_of_others(x, normalize_axes("prod", axis, len(x_shape)))
        ),
    )


def products_of_others(x, axes):
    """For each element the product of all others along the axes, by halving, without division."""
    rest = tuple(d for d in range(x.ndim) if d not in axes)
    moved = call("permute", x, rest + axes)
    kept = moved.shape[: len(rest)]
    others = _others(call("reshape", moved, (*kept, count("prod", x.shape, axes))))
    back = call("reshape", others, moved.shape)
    order = rest + axes
    return call("permute", back, tuple(order.index(d) for d in range(x.ndim)))


def _others(x):
    n = x.shape[-1]
    if n <= 1:
        out = device_of(x.array).empty(x.shape, x.dtype)
        device_of(x.array).fill(out, 1.0)
        return Variable(out)
    half = n // 2
    left, right = x[..., :half], x[..., half : 2 * half]
    if n == 2:
        return concatenate([right, left], -1)
    pairs = left * right
    if n % 2:
        last = x[..., 2 * half :]
        outer = _others(concatenate([pairs, last], -1))
        outer, rest = outer[..., :half], [outer[..., half:]]
    else:
        outer, rest = _others(pairs), []
    return concatenate([outer * right, outer * left, *rest], -1)
