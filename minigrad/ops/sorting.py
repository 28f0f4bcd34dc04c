"""Sorts along an axis: argsort, and sort and topk made from it."""

from minigrad.arguments import flag, whole
from minigrad.array.dtypes import int64
from minigrad.array.layout import normalize_axis
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentError
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.gathering import along
from minigrad.ops.operands import as_variable
from minigrad.ops.shape import on_last


class OrderOfRows(Structural):
    """The first k indices, int64, that sort each row; NaN counts as the largest.

    (..., n) -> (..., k). Equal elements keep their order, also if `descending`.
    """

    samples = [
        ((3, 4), 4, False), ((2, 3, 5), 5, True), ((9,), 9, False), ((2, 1), 1, True),
        ((0, 3), 3, False), ((2, 0), 0, False), ((3, 9), 2, False), ((2, 7), 3, True),
    ]  # fmt: skip
    gradients = None

    def forward(x, k, descending):
        device = device_of(x)
        out = device.empty((*x.shape[:-1], k), int64)
        if out.size:
            is_computed = x.dtype.is_float or x.dtype is int64
            x = device.contiguous(x if is_computed else device.convert(x, int64))
            n, rows = x.shape[-1], out.size // k
            device.argsort(x.view((rows, n), (n, 1)), out.view((rows, k), (k, 1)), descending)
        return out


def _order(name, x, axis, descending, k=None):
    """Returns (x with at least one axis, the axis, the first k indices that sort x along it).

    k: None for all.
    """
    descending = flag(name, "descending", descending, f"the axis by name: {name}(x, axis=1)")
    axis = normalize_axis(name, axis, x.ndim or 1)
    x = x if x.ndim else call("reshape", x, (1,))
    n = x.shape[axis]
    k = n if k is None else k
    if k > n:
        raise ArgumentError(
            f"{name}: wanted k of at most {n}, the size of axis {axis}",
            f"{k}",
            f"{name}(x, min(k, {n})), or another axis, as in axis=0: the last one is the default",
        )
    return x, axis, on_last(lambda x: OrderOfRows.apply(x, k, descending), x, axis)


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
    order = _order("argsort", x, axis, descending)[2]
    return order if x.ndim else call("reshape", order, ())


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
    values, axis, order = _order("sort", x, axis, descending)
    values = along(values, order, axis)
    return values if x.ndim else call("reshape", values, ())


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
    x, axis, places = _order("topk", x, axis, flag("topk", "largest", largest), k)
    return along(x, places, axis), places


functions = (argsort, sort, topk)
