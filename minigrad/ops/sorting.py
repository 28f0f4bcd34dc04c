"""Sorts along an axis: argsort, and sort and topk made from it."""

from minigrad.arguments import flag, whole
from minigrad.array.dtypes import int64
from minigrad.array.layout import normalize_axis
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.gathering import gather
from minigrad.ops.joining import part
from minigrad.ops.operands import as_variable


class OrderOfRows(Structural):
    """The indices, int64, that sort each row in ascending order, NaN last.  (..., n) -> (..., n).

    Equal elements keep their order.
    """

    samples = [((3, 4),), ((2, 3, 5),), ((9,),), ((2, 1),), ((0, 3),), ((2, 0),)]
    gradients = None

    def forward(x):
        device = device_of(x)
        out = device.empty(x.shape, int64)
        if x.size:
            is_computed = x.dtype.is_float or x.dtype is int64
            x = device.contiguous(x if is_computed else device.convert(x, int64))
            rows = (x.size // x.shape[-1], x.shape[-1])
            device.argsort(x.view(rows, (rows[1], 1)), out.view(rows, (rows[1], 1)))
        return out


def _order(name, x, axis, descending):
    """Returns (x with at least one axis, the axis, the indices that sort x along it)."""
    descending = flag(name, "descending", descending, f"the axis by name: {name}(x, axis=1)")
    axis = normalize_axis(name, axis, x.ndim or 1)
    x = x if x.ndim else call("reshape", x, (1,))
    if axis == x.ndim - 1 and not descending:
        return x, axis, OrderOfRows.apply(x)
    moved = [d for d in range(x.ndim) if d != axis] + [axis]
    rows = call("permute", x.detach(), moved)
    if descending:  # sort the flipped rows: equal elements keep their order, and NaN is first
        rows = call("flip", rows, -1)
    order = OrderOfRows.apply(rows)
    if descending:
        order = (x.shape[axis] - 1) - call("flip", order, -1)
    return x, axis, call("permute", order, [moved.index(d) for d in range(x.ndim)])


def argsort(x, axis=-1, descending=False):
    """Returns the indices that sort x along an axis in ascending order.  (...) -> (...) of int64.

    Equal elements keep their order, even if `descending`. NaN counts as the largest.

    Raises:
        ShapeError: the axis does not exist.

    >>> import minigrad as mg
    >>> x = mg.variable([3.0, 1.0, 2.0])
    >>> mg.argsort(x).tolist(), mg.argsort(x, descending=True).tolist()
    ([1, 2, 0], [0, 2, 1])
    """
    x = as_variable(x, "argsort")
    return call("reshape", _order("argsort", x, axis, descending)[2], x.shape)


def sort(x, *, axis=-1, descending=False):
    """Sorts the elements along an axis in ascending order, NaN last.  (...) -> (...), of x's dtype.

    The gradient goes back to the elements' positions in x. As in NumPy, the result has only the
    values; `mg.argsort` gives the indices.

    Raises:
        ShapeError: the axis does not exist.

    >>> import minigrad as mg
    >>> mg.sort(mg.variable([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    x = as_variable(x, "sort")
    found, axis, order = _order("sort", x, axis, descending)
    return call("reshape", gather(found, order, axis), x.shape)


def topk(x, k, axis=-1, largest=True):
    """Returns the k largest elements along an axis, the largest first, and their indices.

    (..., n, ...), k -> (values, indices), both (..., k, ...), the indices int64.

    Args:
        x: a Variable.
        k: the number of elements, from 0 to n.
        axis: the axis to search.
        largest: False returns the k smallest, the smallest first.

    Raises:
        ArgumentError: there are fewer than k elements along the axis.

    >>> import minigrad as mg
    >>> values, places = mg.topk(mg.variable([1.0, 5.0, 3.0]), 2)
    >>> values.tolist(), places.tolist()
    ([5.0, 3.0], [1, 2])
    """
    x, k = as_variable(x, "topk"), whole("topk", "k", k, 0)
    largest = flag("topk", "largest", largest)
    found, axis, order = _order("topk", x, axis, largest)
    if k > found.shape[axis]:
        raise ArgumentError(
            f"topk: wanted k of at most {found.shape[axis]}, the size of axis {axis}", f"{k}"
        )
    places = part(order, axis, 0, k)
    return gather(found, places, axis), places


functions = (argsort, sort, topk)
