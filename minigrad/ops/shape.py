"""Operations that change the layout of elements: views where possible."""

import functools

from minigrad.arguments import whole
from minigrad.array.dtypes import as_dtype
from minigrad.array.layout import (
    MAX_RANK,
    broadcast_shapes,
    check_rank,
    check_size,
    contiguous_strides,
    expand_strides,
    normalize_axes,
    normalize_axis,
    reshape_strides,
    size_of,
)
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, ShapeError
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.gradient_plan import sum_to
from minigrad.ops.operands import as_variable

BACKWARDS = [tuple(range(rank))[::-1] for rank in range(MAX_RANK + 1)]


def shape_of(name, shape):
    """Checks a user's shape; returns a tuple of ints."""
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple([n if type(n) is int else whole(name, "each size of a shape", n) for n in shape])


class Reshape(Structural):
    """The same elements in C order in another shape; a view if possible.  (...), shape -> shape."""

    samples = [((3, 4), (2, 6)), ((0, 3), (3, 0)), ((), (1, 1))]
    is_view = True

    def forward(x, shape):
        shape = completed(x, shape)
        strides = reshape_strides(x.shape, x.strides, shape)
        if strides is None:
            x = device_of(x).contiguous(x)
            strides = contiguous_strides(shape)
        return x.view(shape, strides)

    gradients = (lambda dy, x_shape: Reshape.apply(dy, x_shape),)
    array_gradients = "same"


def completed(x, shape):
    """Replaces -1 in a shape with the remaining size."""
    if type(shape) is tuple and size_of(shape) == x.size and min(shape, default=0) >= 0:
        check_rank("reshape", len(shape))
        return shape
    shape = shape_of("reshape", shape)
    unknown = [d for d, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise ShapeError(
            "reshape: wanted at most one -1, which stands for the remaining size", f"{shape}"
        )
    known = size_of(n for n in shape if n != -1)
    if len(unknown) == 1 and known and x.size % known == 0:
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    if min(shape, default=0) < 0 or size_of(shape) != x.size:
        raise ShapeError(
            f"reshape: wanted a shape of {x.size} elements, as {x.shape} has", f"{shape}"
        )
    check_rank("reshape", len(shape))
    return shape


class Permute(Structural):
    """The axes in another order, a view.  (...), axes -> (...)."""

    samples = [((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ())]
    is_view = True

    def forward(x, axes):
        shape, strides = x.shape, x.strides
        order = ordered(tuple(axes), len(shape))
        return x.view(tuple([shape[a] for a in order]), tuple([strides[a] for a in order]))

    gradients = (lambda dy, axes: Permute.apply(dy, inverse(axes)),)
    array_gradients = "same"


@functools.lru_cache(4096)
def ordered(axes, rank):
    """Returns a permutation of `rank` axes without negative ones; raises ShapeError if invalid."""
    order = tuple([normalize_axis("permute", a, rank) for a in axes])
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"permute: wanted each of {rank} axes once", f"{axes}")
    return order


@functools.lru_cache(4096)
def inverse(axes):
    """Returns the inverse of a permutation. Axes may be negative."""
    return tuple(sorted(range(len(axes)), key=lambda d: axes[d] % len(axes)))


class Expand(Structural):
    """Broadcast to a shape, a view with stride 0.  (...), shape -> shape."""

    samples = [((4,), (3, 4)), ((2, 1), (2, 3)), ((), (2,))]
    is_view = True

    def forward(x, shape):
        shape = kept_sizes(x, shape_of("expand", shape))
        if len(shape) < len(x.shape) or broadcast_shapes("expand", x.shape, shape) != shape:
            raise ShapeError(f"expand: wanted a shape to which {x.shape} broadcasts", f"{shape}")
        check_rank("expand", len(shape))
        check_size(shape)
        return x.view(shape, expand_strides(x.shape, x.strides, shape))

    gradients = (lambda dy, x_shape: call("sum_to", dy, x_shape),)
    array_gradients = (lambda dy, x_shape: sum_to(dy, x_shape),)


def kept_sizes(x, shape):
    """Replaces each -1 in a shape with x's size along this axis."""
    new = len(shape) - len(x.shape)
    if min(shape, default=0) < -1 or -1 in shape[: max(new, 0)]:
        raise ShapeError(
            f"expand: wanted sizes of at least 0, or -1 to keep a size of {x.shape}",
            f"{shape}",
            "a new axis in front needs a size of its own" if -1 in shape[: max(new, 0)] else None,
        )
    return tuple(x.shape[d - new] if n == -1 and new >= 0 else n for d, n in enumerate(shape))


def transpose(x):
    """Reverses the order of the axes, as x.T; a view.  (a, b, ..., z) -> (z, ..., b, a)."""
    x = as_variable(x, "transpose")
    return Permute.apply(x, BACKWARDS[len(x.array.shape)])


def keep_transposed(x, value):
    """Takes what x.T += y has made of x.T: x is written already. Raises for any other value."""
    array = getattr(value, "array", None)
    if array is None or (array.storage, array.layout()) != (
        x.array.storage,
        (x.array.shape[::-1], x.array.strides[::-1], x.array.offset),
    ):
        raise ArgumentTypeError(
            "x.T = y: wanted no value for T, which is a view of x",
            type(value).__name__,
            "x.copy_(y.T) writes to x",
        )


def on_last(function, x, axis):
    """Runs a function that works along the last axis along another one.  (...) -> (...)."""
    if axis == x.ndim - 1:
        return function(x)
    order = (*[d for d in range(x.ndim) if d != axis], axis)
    return Permute.apply(function(Permute.apply(x, order)), inverse(order))


def swap_last(x):
    """Exchanges the last two axes, a view.  (..., m, n) -> (..., n, m)."""
    rank = len(x.array.shape)
    return Permute.apply(x, (*range(rank - 2), rank - 1, rank - 2))


def expand(x, *shape):
    """Broadcasts to a shape, a view: expand(x, (3, 4)) or expand(x, 3, 4). -1 keeps a size.

    (...), shape -> shape.
    """
    return Expand.apply(x, shape_of("expand", shape[0] if len(shape) == 1 else shape))


def reshape(x, *shape):
    """Gives the elements another shape, in which one size may be -1: reshape(x, (2, -1)).

    (...), shape -> shape. The result is a view if the strides allow it, else a copy.
    """
    return Reshape.apply(x, shape_of("reshape", shape[0] if len(shape) == 1 else shape))


def permute(x, *axes):
    """Puts the axes in another order, a view: permute(x, (2, 0, 1)) or permute(x, 2, 0, 1).

    (a, b, c), (2, 0, 1) -> (c, a, b).
    """
    axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    axes = [a if type(a) is int else whole("permute", "each axis", a) for a in axes]
    return Permute.apply(x, tuple(axes))


def flatten(x, start_axis=0, end_axis=-1):
    """Joins axes start_axis to end_axis into one.  (a, b, c) -> (a*b*c,)."""
    x = as_variable(x, "flatten")
    if not x.ndim:
        whole("flatten", "start_axis", start_axis)
        whole("flatten", "end_axis", end_axis)
        return reshape(x, (1,))
    start = normalize_axis("flatten", start_axis, x.ndim)
    end = normalize_axis("flatten", end_axis, x.ndim)
    if start > end:
        raise ShapeError("flatten: wanted start_axis <= end_axis", f"{start_axis}, {end_axis}")
    shape = x.shape
    return reshape(x, (*shape[:start], size_of(shape[start : end + 1]), *shape[end + 1 :]))


def unsqueeze(x, axis):
    """Inserts an axis of size 1 at `axis`.  (a, b), 1 -> (a, 1, b)."""
    x = as_variable(x, "unsqueeze")
    axis = normalize_axis("unsqueeze", axis, x.ndim + 1)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(x, axis=None):
    """Removes the axes of size 1, or only those in `axis`.  (a, 1, b) -> (a, b)."""
    x = as_variable(x, "squeeze")
    if axis is None:
        return reshape(x, tuple(n for n in x.shape if n != 1))
    axes = normalize_axes("squeeze", axis, x.ndim)
    for d in axes:
        if x.shape[d] != 1:
            raise ShapeError(f"squeeze: wanted size 1 along axis {d}", f"shape {x.shape}")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))


class Cast(Structural):
    """Converts to a dtype; ints get floats rounded towards 0.  (...), dtype -> (...)."""

    samples = [((3, 4), "float64"), ((0,), "float32")]

    def forward(x, dtype):
        return device_of(x).convert(x, as_dtype(dtype, "to"))

    gradients = (lambda dy: dy,)  # the engine casts a gradient to its input's dtype
    array_gradients = "same"


class Clone(Structural):
    """The same values in a new Storage, differentiable; copied at the first write to either.

    (...) -> (...).
    """

    samples = [((3, 4),), ((),)]

    def forward(x):
        return device_of(x).share(x)

    gradients = (lambda dy: dy,)
    array_gradients = "same"


def clone(self):
    """Returns the same values in a new Storage, as part of the graph.

    (...) -> (...), of the same dtype. The first write to either copies the memory.
    """
    return Clone.apply(self)
