"""Turns an index x[...] of any kind into a Place, before anything runs.

A Place is a view (ints, slices, new axes), then at most one integer index over neighbouring axes of
that view. Index arrays over several axes, and masks, are folded into this one index.
"""

import operator
from typing import Any, NamedTuple

import numpy as np

from minigrad.arguments import shown
from minigrad.array.array import View
from minigrad.array.dtypes import bool_, int64
from minigrad.array.layout import (
    MAX_RANK,
    broadcast_shapes,
    check_rank,
    contiguous_strides,
    size_of,
)
from minigrad.devices.backend import device_of, values
from minigrad.errors import ArgumentError, ArgumentTypeError, BoundsError, ShapeError
from minigrad.formulas.expression import Program, call, symbol
from minigrad.ops.operands import check_operands, refuse_masked
from minigrad.ops.quiet import Quiet
from minigrad.seams import seams
from minigrad.tape.probe import check_as
from minigrad.tape.variable import Variable, filled

WHOLE = slice(None)  # for an axis that an index leaves out
_FOLD = Program(["a", "n", "b"], [symbol("a") * symbol("n") + symbol("b")])
_EQUAL = Program(["a", "b"], [call("equal", symbol("a"), symbol("b"))])


class Place(NamedTuple):
    """The location that an index refers to.

    spec: for each item None (a new axis), an int, or (start, step, count) of a slice. order: the
    permutation of the view's axes, or None. axis, count: the first axis of the view that the index
    or the mask covers, and the number of these axes. index: int64, not negative, or None. mask:
    replaces the index if one value is written to all selected elements, because their number is
    then not needed.
    """

    spec: tuple
    order: tuple | None = None
    axis: int = 0
    count: int = 0
    index: Variable | None = None
    mask: Variable | None = None


def viewed(strides, offset, spec):
    """Applies the ints, slices and new axes of a Place; returns (shape, strides, offset)."""
    sizes, steps, axis = [], [], 0
    for item in spec:
        if item is None:
            sizes.append(1)
            steps.append(0)
            continue
        if isinstance(item, int):
            offset += item * strides[axis]
        else:
            start, step, count = item
            offset += start * strides[axis] if count else 0
            sizes.append(count)
            steps.append(step * strides[axis])
        axis += 1
    return tuple(sizes), tuple(steps), offset


def view_of(array, place):
    """Returns the view of an Array that a Place indexes, as (..., indexed axes, ...)."""
    shape, strides, offset = viewed(array.strides, array.offset, place.spec)
    if place.order is not None:
        shape, strides = (tuple(x[d] for d in place.order) for x in (shape, strides))
    return array.view(shape, strides, offset)


def region_shape(shape, place):
    """Returns the shape of x[...]. shape: the shape of x."""
    sizes = viewed((0,) * len(shape), 0, place.spec)[0]
    if place.order is not None:
        sizes = tuple(sizes[d] for d in place.order)
    if place.index is None:
        return sizes
    a = place.axis
    return sizes[:a] + place.index.shape + sizes[a + place.count :]


def located(x, index, value=None):
    """Returns the Place of x[index].

    value: the shape of the value to write, or None. A mask that is a Variable stays a mask if one
    value is written to all elements that it selects.
    """
    items = [_normal(i, x) for i in (index if type(index) is tuple else (index,))]
    arrays = [i for i in items if not (i is None or i is Ellipsis or isinstance(i, (int, slice)))]
    outline = _outlined(x.shape, items)
    return _with_index(x, *outline, arrays, value) if arrays else outline[0]


def _outlined(shape, items):
    """Returns what shapes decide: a Place without index, its entries, and the rank of its view.

    items: of an index, as `_normal` returns them. entries: for each array among them (its first
    axis in the view, the number of its axes there, its first axis in x).
    """
    spec, entries, kinds, axis, out = [], [], [], 0, 0
    for item in _completed(shape, items):
        if item is Ellipsis:
            kinds.append("view")  # it separates its neighbours even if it covers no axis
        elif item is None:
            spec.append(None)
            kinds.append("view")
            out += 1
        elif isinstance(item, int):
            n = shape[axis]
            if not -n <= item < n:
                raise BoundsError(
                    f"index: wanted {_range(n)} along axis {axis} of shape {shape}",
                    f"{item}" if abs(item) < 2**70 else shown(item),
                )
            spec.append(item % n)
            kinds.append("int")
            axis += 1
        elif isinstance(item, slice):
            spec.append((0, 1, shape[axis]) if item is WHOLE else _sliced(item, shape[axis]))
            kinds.append("view")
            axis, out = axis + 1, out + 1
        else:
            covers = 1
            if item.dtype.kind != "b":
                spec.append((0, 1, shape[axis]))
            else:
                covers = item.ndim
                sizes = shape[axis : axis + covers]
                if item.shape != sizes:
                    raise ShapeError(
                        f"index: wanted a mask of shape {sizes}, as the axes from {axis} on of "
                        f"{shape}",
                        f"{item.shape}",
                    )
                spec += [(0, 1, n) for n in sizes] or [None]  # one bool gets an axis of one element
            entries.append((out, covers or 1, axis))
            kinds.append("index")
            axis, out = axis + covers, out + (covers or 1)
    if not entries:
        check_rank("index", out)
        return Place(tuple(spec)), (), out
    axes = [a + k for a, covers, _ in entries for k in range(covers)]
    order, first = None, axes[0]
    if not _are_neighbours(kinds):
        order, first = (*axes, *(d for d in range(out) if d not in axes)), 0
    return Place(tuple(spec), order, first, len(axes)), entries, out


def spec_of(x, index):
    """Returns the spec of the Place of x[index] for ints, slices, None and ...; else None."""
    if type(index) is int:
        key = x.array.shape, index
        return (_found.get(key) or _known(key, x, (index,)))[0].spec
    key = [x.array.shape]
    for item in index if type(index) is tuple else (index,):
        if type(item) is slice:
            bounds = item.start, item.stop, item.step
            if not PLAIN.issuperset(map(type, bounds)):
                return None
            key.append(bounds)
        elif type(item) is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            return None
    return _known(tuple(key), x, index if type(index) is tuple else (index,))[0].spec


def quickly_located(x, index):
    """Does what `located` does for ints in arrays among ints and slices, None and ...; else None.

    It remembers what it found for the same shapes, ints and slices.
    """
    key, items, arrays = [x.array.shape], [], []
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is slice:
            part = item.start, item.stop, item.step
            if not PLAIN.issuperset(map(type, part)):
                return None
        elif kind is int or item is None or item is Ellipsis:
            part = item
        else:
            item = _places(x, item)
            if item is None:
                return None
            part = (item.array.shape,)
            arrays.append(item)
        key.append(part)
        items.append(item)
    place, entries, rank = _known(tuple(key), x, items)
    return _with_index(x, place, entries, rank, arrays)


def rows_of(x, index):
    """Returns (number of axes, index over these) for a Variable that indexes the first axes of x.

    The number is 0 for a Variable that `located` must look at.
    """
    shape, places = x.array.shape, index.array
    rank = len(places.shape)
    if rank and shape and not seams.effects.is_tracing:
        if type(x.array) is View or places.buffer.pool is not x.array.buffer.pool:
            check_operands("index", (x, index))
        if places.dtype.kind == "i" and len(shape) + rank <= MAX_RANK:
            return 1, wrapped("index", index, shape[0], (0, shape))
        if places.dtype.kind == "b" and shape[:rank] == places.shape:
            return rank, Variable(device_of(places).nonzero(places))
    return 0, None


def _known(key, x, items) -> Any:
    """Returns `_outlined` for the items of an index, which decide the key."""
    outline = _found.get(key)
    if outline is None:
        if len(_found) >= MOST:
            _found.clear()
        outline = _found[key] = _outlined(x.shape, items)
    return outline


def _places(x, item):
    """Returns an item of an index as ints in a Variable with axes, or None if it has none."""
    if seams.effects.is_tracing:
        return None
    kind = type(item)
    if kind is np.ndarray or kind is list:
        item = _from_python(item)
        if type(item) is int or not item.ndim or item.dtype.kind == "b":
            return None
        return Variable(device_of(x.array).from_numpy(item.astype(np.int64), int64))
    if kind is not Variable or not item.array.shape or item.array.dtype.kind != "i":
        return None
    if type(x.array) is View or item.array.buffer.pool is not x.array.buffer.pool:
        check_operands("index", (x, item))
    return item


PLAIN = {int, type(None)}
MOST = 4096  # cached outlines
_found = {}


def is_run_time(item):
    """Returns whether an item of an index is a number that is known only at run time."""
    return seams.effects.is_tracing and isinstance(item, Variable) and item.array.shape == ()


def _normal(item, x):
    """Returns an item as an int, slice, None or Ellipsis, or as ints or bools in an array.

    The array is an ndarray or a Variable. A Variable of one int becomes this int, except in a
    traced step, where each run reads it.
    """
    if item is None or item is Ellipsis or isinstance(item, slice) or type(item) is int:
        return item
    if not isinstance(item, Variable):
        return _from_python(item)
    if item.dtype.is_float:
        raise ArgumentTypeError(
            "index: wanted ints or bools", item.describe(), "convert it: x.to('int64')"
        )
    if not item.array.shape and not is_run_time(item):
        return _from_python(item.item())
    check_operands("index", (x, item))
    return item


def _from_python(item):
    """Converts an item other than a Variable to an int, or to an array of ints or bools."""
    if not isinstance(item, (bool, float, list, tuple, range, np.ndarray, np.generic)):
        if hasattr(item, "__index__"):
            return item.__index__()
        raise ArgumentTypeError(
            "index: wanted ints, slices, None, ..., bools or arrays of ints",
            f"{type(item).__name__} {item!r:.60}",
        )
    is_list = isinstance(item, (list, tuple))
    if is_list and seams.effects.is_tracing and any(isinstance(x, Variable) for x in _leaves(item)):
        return _stacked(item)
    refuse_masked("index", item)
    try:
        data = np.asarray(item)
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(
            "index: wanted ints or bools, in lists of equal lengths", f"{error}"
        ) from None
    if not data.size and not isinstance(item, (np.ndarray, np.generic)):
        data = data.astype(np.int64)  # NumPy makes floats of an empty list
    if data.dtype.kind not in "iub":
        raise ArgumentTypeError(
            "index: wanted ints or bools", f"{data.dtype}", "convert it: x.to('int64')"
        )
    return data.item() if not data.ndim and data.dtype.kind != "b" else data


def _stacked(items):
    """Makes one Variable of nested lists of ints and Variables of one int."""
    leaves = list(_leaves(items))
    scalars = [x for x in leaves if isinstance(x, Variable)]
    for x in scalars:
        if x.ndim or x.dtype.kind != "i":
            raise ArgumentTypeError(
                "index: wanted a list of ints, or of Variables of one int", x.describe()
            )
    device = device_of(scalars[0].array)
    out = device.empty((len(leaves),), int64)
    for k, x in enumerate(leaves):
        device.copy(x.array if isinstance(x, Variable) else operator.index(x), out.view((), (), k))
    shape = np.asarray(_without_leaves(items)).shape
    return Variable(out.view(shape, contiguous_strides(shape)))


def _leaves(items):
    for x in items:
        if isinstance(x, (list, tuple)):
            yield from _leaves(x)
        else:
            yield x


def _without_leaves(items):
    return [_without_leaves(x) if isinstance(x, (list, tuple)) else 0 for x in items]


def _completed(shape, items):
    """Adds whole slices for omitted axes to the items, after the ellipsis or at the end."""
    used = 0
    for i in items:
        if i is not None and i is not Ellipsis:
            used += 1 if isinstance(i, (int, slice)) or i.dtype.kind != "b" else i.ndim
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise BoundsError("index: wanted one ellipsis (...) at most", f"{len(dots)}")
    if used > len(shape):
        raise BoundsError(
            f"index: wanted at most {len(shape)} indices for shape {shape}", f"{used}"
        )
    whole = [WHOLE] * (len(shape) - used)
    if not dots:
        return [*items, *whole]
    return [*items[: dots[0] + 1], *whole, *items[dots[0] + 1 :]]


def _sliced(item, n):
    try:
        start, stop, step = item.indices(n)
    except TypeError:
        raise ArgumentTypeError("index: wanted ints or None in a slice", f"{item}") from None
    except ValueError:
        raise ArgumentError("index: wanted a slice with a step other than 0", f"{item}") from None
    count = len(range(start, stop, step))
    return start, step if count > 1 else 1, count  # an unused step may be huge


def _range(n):
    return f"an index from {-n} to {n - 1}" if n else "no index, as the size is 0,"


def _entry(item, x, axis):
    """Returns the index of x from `axis` on as an int64 Variable. A mask gives True positions."""
    device = device_of(x.array)
    if isinstance(item, Variable):
        if item.dtype.kind == "b":
            return Variable(device.nonzero(item.array))
        return wrapped("index", item, x.shape[axis], (axis, x.shape))
    if item.dtype.kind == "b":
        return Variable(device.from_numpy(np.flatnonzero(item), int64))
    n, where = x.shape[axis], (axis, x.shape)
    places = item.astype(np.int64)
    if not seams.effects.is_tracing:
        return wrapped("index", Variable(device.from_numpy(places, int64)), n, where)
    bad = np.flatnonzero((places < -n) | (places >= n))  # check here, not at each run
    if bad.size:
        raise _outside("index", places, bad[0], n, where)
    return Variable(device.from_numpy(np.where(places < 0, places + n, places), int64))


class Wrapped(Quiet):
    """Counts an index from the front: int64 from 0 to n - 1, as `wrapped`.  (...) -> (...)."""

    inputs, attributes = ("index",), ("name", "n", "where", "negative")

    def forward(index, name, n, where, negative):
        device = device_of(index)
        source, out = device.contiguous(index), device.empty(index.shape, int64)
        bad = check_as(name, _first_outside, device, source, n, out, negative)
        if bad >= 0:
            raise _outside(name, values(source), bad, n, where, negative)
        return out


def wrapped(name, index, n, where=(), negative=True) -> Any:
    """Returns an integer Variable as int64 from 0 to n - 1.

    where: (axis, shape) of what is indexed, for the message.

    Raises:
        BoundsError: an index is out of range; the error names the first one.
    """
    if index.array.dtype.kind != "i":
        raise ArgumentTypeError(
            f"{name}: wanted an index of ints", index.describe(), "convert it: x.to('int64')"
        )
    return Wrapped.apply(index, name, n, where, negative)


def _outside(name, data, bad, n, where, negative=True):
    """Returns the BoundsError for element `bad`, in C order, of an ndarray of ints."""
    place = tuple(int(k) for k in np.unravel_index(bad, data.shape))
    wanted = _range(n) if negative else f"an index from 0 to {n - 1}"
    along = f" along axis {where[0]} of shape {where[1]}" if where else ""
    return BoundsError(
        f"{name}: wanted {wanted}{along}",
        f"{data[place]} at {place[0] if len(place) == 1 else place} of the index",
    )


def _first_outside(device, source, n, out, negative):
    """Fills `out` with the index counted from the front; returns the first bad element, or -1."""
    bad = device.wrap_index(source, n, out) if source.size else -1
    if bad < 0 and not negative and source.size and not device.all_within(source, 0, n - 1):
        bad = int(np.argmax(values(source).reshape(-1) < 0))
    return bad


def _are_neighbours(kinds):
    """Returns whether all index arrays are neighbours. As in NumPy, ints count as index arrays."""
    places = [k for k, kind in enumerate(kinds) if kind != "view"]
    return places[-1] - places[0] == len(places) - 1


def _with_index(x, place, entries, rank, arrays, value=None):
    """Returns a Place with the index of its arrays, folded into one over neighbouring axes."""
    if value is not None and len(arrays) == 1 and isinstance(arrays[0], Variable):
        mask, after = arrays[0], rank - place.count - place.axis
        if mask.dtype.kind == "b" and (len(value) <= after or value[len(value) - after - 1] == 1):
            return Place(place.spec, place.order, place.axis, place.count, None, mask)
    indices = [_entry(item, x, axis) for item, (*_, axis) in zip(arrays, entries, strict=True)]
    index = indices[0]
    if len(indices) > 1:
        index = _folded(indices, entries, viewed((0,) * x.ndim, 0, place.spec)[0])
    check_rank("index", rank - place.count + index.ndim)
    return Place(place.spec, place.order, place.axis, place.count, index)


def _folded(indices, entries, sizes):
    """Folds one index per axis into one index over all indexed axes, in C order."""
    arrays = [index.array for index in indices]
    common = broadcast_shapes("index", *(a.shape for a in arrays))
    device, total = device_of(arrays[0]), arrays[0]
    for (a, covers, _), array in zip(entries[1:], arrays[1:], strict=True):
        before, total = total, device.empty(common, int64)
        device.elementwise(_FOLD, (before, size_of(sizes[a : a + covers]), array), (total,))
    return Variable(total)


def winners(place, n):
    """Returns bools: whether an entry of the index is the last one that writes to its target."""
    index = place.index.array
    device, m = device_of(index), index.size
    order = device.from_numpy(np.arange(m), int64)
    last, winner = filled(index, 0, (1, n, 1)), device.empty((1, m, 1), int64)
    device.put(order.view((1, m, 1), (m, 1, 1)), index, last)
    device.gather(last, index, winner)
    stays = device.empty(index.shape, bool_)
    if m:
        winner = winner.view((m,), (1,))
        device.elementwise(_EQUAL, (winner, order), (stays.view((m,), (1,)),))
    return Variable(stays)
