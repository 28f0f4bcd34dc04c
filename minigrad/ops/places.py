"""What x[...] means: an index of any kind -> a Place, checked before anything runs.

A Place is a view (ints, slices, new axes), then at most one integer index over neighbouring axes of
that view. Index arrays over several axes, and masks, are folded into that one.
"""

from typing import NamedTuple

import numpy as np

from minigrad.array.dtypes import bool_, int64
from minigrad.array.layout import broadcast_shapes, check_rank, contiguous_strides, size_of
from minigrad.errors import ArgumentError, ArgumentTypeError, BoundsError, ShapeError
from minigrad.graph.probe import check_as
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import device_of, values
from minigrad.ops.operands import check_operands


class Place(NamedTuple):
    """Where an index points to.

    spec: per item None (a new axis), an int, or (start, step, count) of a slice. order: how the
    view's axes are permuted, or None. axis, count: which of them the index runs over. index: int64,
    not negative, or None.
    """

    spec: tuple
    order: tuple | None = None
    axis: int = 0
    count: int = 0
    index: Variable | None = None


def viewed(shape, strides, offset, spec):
    """(shape, strides, offset) of a layout after the ints, slices and new axes of a Place."""
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
    """The view of an Array that a Place indexes, as (..., indexed axes, ...)."""
    shape, strides, offset = viewed(array.shape, array.strides, array.offset, place.spec)
    if place.order is not None:
        shape, strides = (tuple(x[d] for d in place.order) for x in (shape, strides))
    return array.view(shape, strides, offset)


def region_shape(shape, place):
    """The shape of x[...]."""
    found = viewed(shape, (0,) * len(shape), 0, place.spec)[0]
    if place.order is not None:
        found = tuple(found[d] for d in place.order)
    if place.index is None:
        return found
    a = place.axis
    return found[:a] + place.index.shape + found[a + place.count :]


def located(x, index):
    """The Place of x[index]."""
    shape, given = x.shape, index if type(index) is tuple else (index,)
    items = _completed(shape, [_normal(i, x) for i in given])
    spec, entries, kinds, axis, out = [], [], [], 0, 0
    for item in items:
        if item is Ellipsis:
            kinds.append("view")  # it stands between its neighbours even where it covers no axis
        elif item is None:
            spec.append(None)
            kinds.append("view")
            out += 1
        elif isinstance(item, int):
            n = shape[axis]
            if not -n <= item < n:
                raise BoundsError(
                    f"index: wanted {_range(n)} along axis {axis} of shape {shape}", f"{item}"
                )
            spec.append(item % n)
            kinds.append("int")
            axis += 1
        elif isinstance(item, slice):
            spec.append(_sliced(item, shape[axis]))
            kinds.append("view")
            axis, out = axis + 1, out + 1
        else:
            covers = item.ndim if item.dtype.kind == "b" else 1
            sizes = shape[axis : axis + covers]
            entries.append((out, covers, _entry(item, sizes, axis, shape)))
            spec += [(0, 1, n) for n in sizes]
            kinds.append("index")
            axis, out = axis + covers, out + covers
    if not entries:
        check_rank("index", out)
        return Place(tuple(spec))
    return _with_index(shape, tuple(spec), entries, out, _are_neighbours(kinds))


def _normal(item, x):
    """An int, a slice, None, Ellipsis, or an integer or bool Variable, on x's device."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, int) and not isinstance(item, bool):
        return item
    if not isinstance(item, Variable):
        if not isinstance(item, (bool, float, list, tuple, range, np.ndarray, np.generic)):
            if hasattr(item, "__index__"):
                return item.__index__()
            raise ArgumentTypeError(
                "index: wanted ints, slices, None, ..., bools or arrays of ints",
                f"{type(item).__name__} {item!r:.60}",
            )
        data = np.asarray(item)
        if not data.size and not isinstance(item, (np.ndarray, np.generic)):
            data = data.astype(np.int64)  # an empty list
        if data.dtype.kind not in "iub":
            raise ArgumentTypeError(
                "index: wanted ints or bools", f"{data.dtype}", "convert it: x.to('int64')"
            )
        dtype = bool_ if data.dtype.kind == "b" else int64
        item = Variable(device_of(x.array).from_numpy(data.astype(dtype.numpy), dtype))
    if item.dtype.is_float:
        raise ArgumentTypeError(
            "index: wanted ints or bools", item.describe(), "convert it: x.to('int64')"
        )
    if not item.ndim:
        if item.dtype.kind == "b":
            raise ArgumentTypeError("index: wanted a mask with at least one axis", "one bool")
        return item.item()
    check_operands("index", (x, item))
    return item


def _completed(shape, items):
    """The items with whole slices for the axes left out, after the ellipsis or at the end."""
    used = sum(0 if i is None or i is Ellipsis else i.ndim if _is_mask(i) else 1 for i in items)
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise BoundsError("index: wanted one ellipsis (...) at most", f"{len(dots)}")
    if used > len(shape):
        raise BoundsError(
            f"index: wanted at most {len(shape)} indices for shape {shape}", f"{used}"
        )
    whole = [slice(None)] * (len(shape) - used)
    if not dots:
        return [*items, *whole]
    return [*items[: dots[0] + 1], *whole, *items[dots[0] + 1 :]]


def _is_mask(item):
    return isinstance(item, Variable) and item.dtype.kind == "b"


def _sliced(item, n):
    try:
        start, stop, step = item.indices(n)
    except TypeError:
        raise ArgumentTypeError("index: wanted ints or None in a slice", f"{item}") from None
    except ValueError:
        raise ArgumentError("index: wanted a slice with a step other than 0", f"{item}") from None
    return start, step, len(range(start, stop, step))


def _range(n):
    return f"an index from {-n} to {n - 1}" if n else "no index, as the size is 0,"


def _entry(item, sizes, axis, shape):
    """The int64 Variable of an index array, or of the places of a mask over the axes `sizes`."""
    if item.dtype.kind != "b":
        return wrapped("index", item, sizes[0], f"along axis {axis} of shape {shape}")
    if item.shape != sizes:
        raise ShapeError(
            f"index: wanted a mask of shape {sizes}, as the axes from {axis} on of {shape}",
            f"{item.shape}",
        )
    return Variable(device_of(item.array).nonzero(item.array))


def wrapped(name, index, n, where="", negative=True):
    """An integer Variable as int64 from 0 to n - 1; BoundsError with the first that is outside."""
    array = index.array
    if array.dtype.kind != "i":
        raise ArgumentTypeError(
            f"{name}: wanted an index of ints", index.describe(), "convert it: x.to('int64')"
        )
    device = device_of(array)
    source, out = device.contiguous(array), device.empty(array.shape, int64)
    bad = check_as(name, _first_outside, device, source, n, out, negative)
    if bad >= 0:
        place = tuple(int(k) for k in np.unravel_index(bad, array.shape))
        wanted = _range(n) if negative else f"an index from 0 to {n - 1}"
        raise BoundsError(
            f"{name}: wanted {wanted} {where}".rstrip(),
            f"{values(source)[place]} at {place[0] if len(place) == 1 else place} of the index",
        )
    return Variable(out)


def _first_outside(device, source, n, out, negative):
    """Which element lies outside, or -1; else out = the index counted from the front."""
    bad = device.wrap_index(source, n, out) if source.size else -1
    if bad < 0 and not negative and source.size and not device.all_within(source, 0, n - 1):
        bad = int(np.argmax(values(source).reshape(-1) < 0))
    return bad


def _are_neighbours(kinds):
    """NumPy's rule: ints count as index arrays, and all must stand next to each other."""
    places = [k for k, kind in enumerate(kinds) if kind != "view"]
    return places[-1] - places[0] == len(places) - 1


def _with_index(shape, spec, entries, rank, neighbours):
    """The Place of a view with index arrays, folded into one over neighbouring axes."""
    axes = [a + k for a, covers, _ in entries for k in range(covers)]
    order, first = None, axes[0]
    if not neighbours:
        order, first = (*axes, *(d for d in range(rank) if d not in axes)), 0
    sizes = viewed(shape, (0,) * len(shape), 0, spec)[0]
    index = entries[0][2] if len(entries) == 1 else _folded(entries, sizes)
    check_rank("index", rank - len(axes) + index.ndim)
    return Place(spec, order, first, len(axes), index)


def _folded(entries, sizes):
    """One index over all indexed axes in C order, from one per axis."""
    common = broadcast_shapes("index", *(index.shape for _, _, index in entries))
    spans = [size_of(sizes[a : a + covers]) for a, covers, _ in entries]
    total = np.zeros(common, np.int64)
    for (_, _, index), step in zip(entries, contiguous_strides(tuple(spans)), strict=True):
        total += values(index.array) * step
    return Variable(device_of(entries[0][2].array).from_numpy(total, int64))


def winners(place, n):
    """Which entries of an index are the last to write to their target; None if all are."""
    assert place.index is not None
    index = values(place.index.array).reshape(-1)
    last, order = np.empty(n, np.int64), np.arange(index.size)
    last[index] = order
    is_last = last[index] == order
    return None if is_last.all() else is_last.reshape(place.index.shape)
