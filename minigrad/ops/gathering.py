"""Selection by index: rows of a table, elements along an axis; one-hot rows, flips, triangles."""

import numpy as np

from minigrad.arguments import whole
from minigrad.array.dtypes import as_dtype, float32
from minigrad.array.layout import contiguous_strides, normalize_axes, normalize_axis
from minigrad.errors import ArgumentTypeError, DTypeError, ShapeError
from minigrad.formulas.expression import call
from minigrad.ops.indexing import Slice, Take, TakeAdjoint
from minigrad.ops.operands import as_variable, constant, variables
from minigrad.ops.places import wrapped


def embedding(weight, index):
    """The rows of a table that an index names.  (n, d), (...) from 0 to n - 1 -> (..., d).

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
    """Rows with a 1 at the index and 0 elsewhere.  (...) from 0 to classes - 1 -> (..., classes).

    >>> import minigrad as mg
    >>> mg.one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    index, dtype = as_variable(index, "one_hot"), float32 if dtype is None else as_dtype(dtype)
    classes = whole("one_hot", "classes", classes, 1)
    index = wrapped("one_hot", index, classes, negative=False)
    columns = constant(np.arange(classes), near=index)
    return call("equal", call("unsqueeze", index, -1), columns).to(dtype)


def _flat_index(name, x, index, axis):
    """The index into flattened x of each element of a gather along an axis."""
    if index.ndim != x.ndim or any(
        m > n for d, (m, n) in enumerate(zip(index.shape, x.shape, strict=True)) if d != axis
    ):
        raise ShapeError(
            f"{name}: wanted an index with x's number of axes, no larger than x but along the axis",
            f"x {x.shape}, index {index.shape}, axis {axis}",
        )
    index = wrapped(name, index, x.shape[axis], f"along axis {axis} of shape {x.shape}")
    strides = contiguous_strides(x.shape)
    others = np.zeros((1,) * index.ndim, np.int64)
    for d, n in enumerate(index.shape):
        if d != axis:
            others = others + np.arange(n).reshape(-1, *(1,) * (index.ndim - d - 1)) * strides[d]
    return call("add", call("mul", index, strides[axis]), constant(others, near=index))


def gather(x, index, axis):
    """Element by element along an axis: y[i, j] = x[index[i, j], j] for axis 0.

    Like np.take_along_axis, but the index may be smaller than x along the other axes, as in
    torch.gather. Negative indices count from the end. The gradients of repeated indices add up.
    (...), (...) ints, axis -> the shape of the index.

    >>> import minigrad as mg
    >>> mg.gather(mg.variable([[1, 2], [3, 4]]), [[1, 0]], axis=0).tolist()
    [[3, 2]]
    """
    x, index = variables("gather", x, index)
    axis = normalize_axis("gather", axis, x.ndim)
    places = _flat_index("gather", x, index, axis)
    return Take.apply(call("reshape", x, (x.size,)), places, 0)


def scatter_add(x, index, source, axis):
    """x plus the elements of source, each added where gather would read: the adjoint of gather.

    y[index[i, j], j] = x[index[i, j], j] + source[i, j] for axis 0, like torch.scatter_add;
    repeated indices add up.  (...), (...) ints, the shape of the index, axis -> the shape of x.

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
    places = _flat_index("scatter_add", x, index, axis)
    return x + call("reshape", TakeAdjoint.apply(source, places, (x.size,), 0), x.shape)


def flip(x, axis=None):
    """The elements in reverse order along axes (None: along all), a view.  (...), axis -> (...)."""
    x = as_variable(x, "flip")
    axes = normalize_axes("flip", axis, x.ndim)
    spec = [(n - 1, -1, n) if d in axes and n else (0, 1, n) for d, n in enumerate(x.shape)]
    return Slice.apply(x, tuple(spec))


def triangle(name, x, diagonal, lower):
    """x with 0 above (or below) a diagonal of its last two axes."""
    x, diagonal = as_variable(x, name), whole(name, "diagonal", diagonal)
    if x.ndim < 2:
        raise ShapeError(f"{name}: wanted at least two axes", f"{x.shape}")
    rows, columns = x.shape[-2:]
    keep = np.tri(rows, columns, diagonal if lower else diagonal - 1, dtype=bool)
    zero = 0.0 if x.dtype.is_float else 0
    return call("where", constant(keep if lower else ~keep, near=x), x, zero)


def tril(x, diagonal=0):
    """x with 0 above a diagonal of the last two axes.  (..., m, n) -> (..., m, n)."""
    return triangle("tril", x, diagonal, True)


def triu(x, diagonal=0):
    """x with 0 below a diagonal of the last two axes.  (..., m, n) -> (..., m, n)."""
    return triangle("triu", x, diagonal, False)


functions = (embedding, one_hot, gather, scatter_add, flip, tril, triu)
