"""Selects by index: rows of a table, elements along an axis; one-hot rows, flips, triangles."""

from minigrad.arguments import whole
from minigrad.array.dtypes import as_dtype, float32, int64
from minigrad.array.layout import (
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
)
from minigrad.errors import ArgumentTypeError, DTypeError, ShapeError
from minigrad.formulas.expression import call
from minigrad.ops.indexing import Slice, Take, TakeAdjoint
from minigrad.ops.joining import apart, concatenate, part
from minigrad.ops.operands import (
    as_variable,
    operand,
    storable,
    stored_number,
    variables,
)
from minigrad.ops.quiet import Fixed, FlatIndex
from minigrad.ops.subscripts import wrapped
from minigrad.tape.variable import Variable


def embedding(weight, index):
    """Takes rows of a table by index.  (n, d), (...) ints from 0 to n - 1 -> (..., d).

    >>> import minigrad as mg
    >>> mg.embedding(mg.variable([[0.0, 1.0], [2.0, 3.0]]), [1, 1, 0]).tolist()
    [[2.0, 3.0], [2.0, 3.0], [0.0, 1.0]]
    """
    weight, index = variables("embedding", weight, index)
    if index.dtype.is_float and not weight.dtype.is_float:
        raise ArgumentTypeError(
            "embedding: wanted the weight first, then the index",
            f"{weight.describe()} and {index.describe()}",
            "swap them: mg.embedding(weight, index)",
        )
    if weight.ndim != 2:
        raise ShapeError("embedding: wanted a weight (n, d)", f"{weight.shape}")
    index = wrapped("embedding", index, weight.shape[0], negative=False)
    return Take.apply(weight, index, 0)


def one_hot(index, classes, dtype=float32):
    """Makes rows with 1 at the index and 0 elsewhere.  (...) -> (..., classes).

    The index has ints from 0 to classes - 1.

    >>> import minigrad as mg
    >>> mg.one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    index = as_variable(index, "one_hot")
    dtype = float32 if dtype is None else as_dtype(dtype, "one_hot")
    classes = whole("one_hot", "classes", classes, 1)
    storable("one_hot", classes, int64)
    index = wrapped("one_hot", index, classes, negative=False)
    columns = Fixed.apply(index, "one_hot", (classes,))
    return call("equal", call("unsqueeze", index, -1), columns).to(dtype)


def flat_index(x, index, axis):
    """Returns the index into flattened x for one along an axis, int64 from 0 to n - 1."""
    return index if x.ndim == 1 else FlatIndex.apply(index, axis, x.shape)


def along(x, index, axis):
    """Selects elements as `gather`, at an index that is known to be one."""
    return Take.apply(x, flat_index(x, index, axis), None)


def _checked_index(name, x, index, axis):
    """Returns an index of `gather` as int64 that counts from the front."""
    if index.ndim != x.ndim or any(
        m > n for d, (m, n) in enumerate(zip(index.shape, x.shape, strict=True)) if d != axis
    ):
        raise ShapeError(
            f"{name}: wanted an index with x's number of axes, no larger than x but along the axis",
            f"x {x.shape}, index {index.shape}, axis {axis}",
        )
    return wrapped(name, index, x.shape[axis], (axis, x.shape))


def gather(x, index, axis):
    """Selects elements along an axis: y[i, j] = x[index[i, j], j] for axis 0.

    (...), (...) ints, axis -> the shape of the index. Like np.take_along_axis, but the index may be
    smaller than x along the other axes, as in torch.gather. Negative indices count from the end.
    The gradients of repeated indices add up.

    >>> import minigrad as mg
    >>> mg.gather(mg.variable([[1, 2], [3, 4]]), [[1, 0]], axis=0).tolist()
    [[3, 2]]
    """
    x, index = variables("gather", x, index)
    axis = normalize_axis("gather", axis, x.ndim)
    return along(x, _checked_index("gather", x, index, axis), axis)


def scatter_add(x, index, source, axis):
    """Adds each element of source to x where gather would read: the adjoint of gather.

    y[index[i, j], j] = x[index[i, j], j] + source[i, j] for axis 0, like torch.scatter_add.
    Repeated indices add up.  (...), (...) ints, the shape of the index, axis -> (...), the shape
    and dtype of x.

    >>> import minigrad as mg
    >>> mg.scatter_add(mg.zeros((3,)), [0, 2, 2], mg.variable([1.0, 2.0, 3.0]), axis=0).tolist()
    [1.0, 0.0, 5.0]
    """
    x, index, source = variables("scatter_add", x, index, source)
    axis = normalize_axis("scatter_add", axis, x.ndim)
    if source.shape != index.shape:
        raise ShapeError(
            "scatter_add: wanted a source of the index's shape", f"{source.shape}, {index.shape}"
        )
    if source.dtype is not x.dtype:
        raise DTypeError(f"scatter_add: wanted a source of {x.dtype}", f"{source.dtype}")
    places = flat_index(x, _checked_index("scatter_add", x, index, axis), axis)
    return _with_added(x, TakeAdjoint.apply(source, places, x.shape, None))


def _with_added(x, added):
    """Returns x + added in x's dtype; for bools, whether either is True."""
    return call("logical_or", x, added) if x.dtype.kind == "b" else x + added


def index_add(x, index, source, axis):
    """Adds slices of source to x along an axis, at the index. Repeated indices add up.

    (..., n, ...), (m,) ints from -n to n - 1, (..., m, ...), axis -> (..., n, ...), of x's dtype.

    Raises:
        BoundsError: an index is out of range.
        ShapeError: source does not have a slice of x's shape for each index.
        DTypeError: source has another dtype than x.

    >>> import minigrad as mg
    >>> mg.index_add(mg.zeros((3,)), [0, 2, 2], mg.variable([1.0, 2.0, 3.0]), axis=0).tolist()
    [1.0, 0.0, 5.0]
    """
    x, index, source = variables("index_add", x, index, source)
    axis = normalize_axis("index_add", axis, x.ndim)
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    if index.ndim != 1 or source.shape != shape:
        raise ShapeError(
            "index_add: wanted an index (m,), and a source of x's shape but m along the axis",
            f"x {x.shape}, index {index.shape}, source {source.shape}, axis {axis}",
        )
    if source.dtype is not x.dtype:
        raise DTypeError(f"index_add: wanted a source of {x.dtype}", f"{source.dtype}")
    places = wrapped("index_add", index, x.shape[axis], (axis, x.shape))
    return _with_added(x, TakeAdjoint.apply(source, places, x.shape, axis))


def masked_fill(x, mask, value):
    """Sets x to one value where a mask is True.  (...), bools that broadcast to x, number -> (...).

    The result has x's dtype and shape. The gradient of x is 0 where the mask is True. A value that
    is a Variable () gets the sum of dy there.

    Raises:
        DTypeError: the mask has no bools, or x's dtype cannot hold the value.
        ShapeError: the mask does not broadcast to x, or the value has more than one element.

    >>> import minigrad as mg
    >>> mg.masked_fill(mg.variable([1.0, 2.0]), [True, False], 0.5).tolist()
    [0.5, 2.0]
    """
    x, mask = variables("masked_fill", x, mask)
    value = operand(value, "masked_fill", (x,))
    if mask.dtype.kind != "b":
        raise DTypeError(
            "masked_fill: wanted a mask of bools", mask.describe(), "compare first: mask != 0"
        )
    if broadcast_shapes("masked_fill", x.shape, mask.shape) != x.shape:
        raise ShapeError(
            f"masked_fill: wanted a mask that broadcasts to {x.shape}", f"{mask.shape}"
        )
    if not isinstance(value, Variable):
        given, value = value, stored_number("masked_fill", value, x.dtype)
        if x.dtype.kind == "i" and value != given:
            raise DTypeError(f"masked_fill: wanted a value that {x.dtype} holds", f"{given}")
    elif value.ndim:
        raise ShapeError(
            "masked_fill: wanted one value", value.describe(), "mg.where(mask, values, x)"
        )
    else:
        value = value if value.dtype is x.dtype else value.to(x.dtype)
    return call("where", mask, value, x)


def roll(x, shift, axis=None):
    """Moves elements along axes. Elements that leave at the end come back at the beginning.

    (...), int or a tuple of ints, axis or axes -> (...). As in np.roll, axis None rolls the
    flattened x.

    Raises:
        ShapeError: an axis does not exist, or there is not one shift for each axis.

    >>> import minigrad as mg
    >>> mg.roll(mg.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    given = x = as_variable(x, "roll")
    shape = None
    if axis is None:
        x, shape, axis = call("reshape", x, (-1,)), x.shape, 0
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(
            "roll: wanted one shift for each axis", f"{len(shifts)} for {len(axes)} axes"
        )
    for k, a in zip(shifts, axes, strict=True):
        d = normalize_axis("roll", a, x.ndim)
        n = x.shape[d]
        cut = n - whole("roll", "shift", k) % max(1, n)
        x = concatenate([part(x, d, cut, n - cut), part(x, d, 0, cut)], d)
    return apart(x if shape is None else call("reshape", x, shape), given)


def flip(x, axis=None):
    """Reverses the order along axes, or along all for None; a view.  (...), axis -> (...)."""
    x = as_variable(x, "flip")
    axes = normalize_axes("flip", axis, x.ndim)
    spec = [(n - 1, -1, n) if d in axes and n else (0, 1, n) for d, n in enumerate(x.shape)]
    return Slice.apply(x, tuple(spec))


def triangle(name, x, diagonal):
    """Sets x to 0 above ("tril") or below ("triu") a diagonal of its last two axes."""
    x, diagonal = as_variable(x, name), whole(name, "diagonal", diagonal)
    if x.ndim < 2:
        raise ShapeError(f"{name}: wanted at least two axes", f"{x.shape}")
    rows, columns = x.shape[-2:]
    diagonal = max(-rows, min(diagonal, columns + 1))  # further out the result does not change
    zero = 0.0 if x.dtype.is_float else 0
    return call("where", Fixed.apply(x, name, (rows, columns, diagonal)), x, zero)


def tril(x, diagonal=0):
    """Sets x to 0 above a diagonal of the last two axes.  (..., m, n) -> (..., m, n)."""
    return triangle("tril", x, diagonal)


def triu(x, diagonal=0):
    """Sets x to 0 below a diagonal of the last two axes.  (..., m, n) -> (..., m, n)."""
    return triangle("triu", x, diagonal)


functions = (
    embedding, one_hot, gather, scatter_add, index_add, masked_fill, roll, flip, tril, triu,
)  # fmt: skip
