"""Running sums, products, and the indices of extremes."""

from minigrad.array.dtypes import int64
from minigrad.array.layout import normalize_axes, normalize_axis
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import call
from minigrad.ops import reduction
from minigrad.ops.base import Structural
from minigrad.ops.joining import apart, concatenate, part
from minigrad.ops.operands import as_variable
from minigrad.ops.reduction import SHAPES, count, not_empty, reduced, spread
from minigrad.tape.variable import Variable, filled


class Cumsum(Structural):
    """Running sum along an axis; int64 for ints and bools.  (...), axis -> (...)."""

    samples = [((3, 4),), ((5,),), ((0, 3),)]

    def forward(x, axis=0):
        device = device_of(x)
        out = device.empty(x.shape, x.dtype if x.dtype.is_float else int64)
        device.cumsum(x, out, normalize_axis("cumsum", axis, len(x.shape)))
        return out

    gradients = (lambda dy, axis: call("flip", call("cumsum", call("flip", dy, axis), axis), axis),)


def cumsum(x, axis=None):
    """Running sum along an axis, or of flattened x.  (...), axis -> (...)."""
    x = as_variable(x, "cumsum")
    if axis is None:
        return Cumsum.apply(call("reshape", x, (-1,)), 0)
    return Cumsum.apply(x, axis)


def cumprod(x, axis=None):
    """Running product along an axis, or of flattened x; int64 for ints and bools.  (...) -> (...).

    Each step multiplies by the elements 1, 2, 4, ... positions before (Hillis, Steele 1986). It
    never divides, so that all derivatives are correct where factors are 0.

    Raises:
        ShapeError: the axis does not exist.

    >>> import minigrad as mg
    >>> mg.cumprod(mg.variable([2.0, 3.0, 4.0])).tolist()
    [2.0, 6.0, 24.0]
    """
    given = x = as_variable(x, "cumprod")
    x = x if x.dtype.is_float else x.to(int64)
    if axis is None:
        x, axis = call("reshape", x, (-1,)), 0
    axis, distance = normalize_axis("cumprod", axis, x.ndim), 1
    n = x.shape[axis]
    while distance < n:
        rest = part(x, axis, distance, n - distance) * part(x, axis, 0, n - distance)
        x, distance = concatenate([part(x, axis, 0, distance), rest], axis), distance * 2
    return apart(x, given)


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
    """Returns for each element the product of all others along the axes.

    It multiplies halves recursively, and never divides.
    """
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
        return Variable(filled(x.array, 1.0))
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


class Argmax(Structural):
    """Index of the first largest value along an axis, or of all.  (...) -> (...) of int64.

    The first NaN counts as the largest, as in NumPy.
    """

    samples = [((3, 4),), ((5,),)]
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return _arg("argmax", x, axis, keepdims)


class Argmin(Structural):
    """Index of the first smallest value along an axis, or of all.  (...) -> (...) of int64.

    The first NaN counts as the smallest, as in NumPy.
    """

    samples = [((3, 4),), ((5,),)]
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return _arg("argmin", x, axis, keepdims)


def _arg(name, x, axis, keepdims):
    along = None if axis is None else normalize_axis(name, axis, len(x.shape))
    not_empty(name, x.shape, along)
    axes, without, result = reduction.axes_and_shapes(name, x.shape, along, keepdims)
    device = device_of(x)
    source, out = device.contiguous(x), device.empty(without, int64)
    if along is None:
        source, along = source.view((x.size,), (1,)), 0
    device.arg_reduce(source, out, along, name == "argmax")
    if result == without:
        return out
    return out.view(result, reduction.kept_strides(out, axes, len(x.shape)))
