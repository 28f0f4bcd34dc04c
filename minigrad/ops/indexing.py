"""Reads and writes at an index: views, and rows to select, add to or replace."""

import numpy as np

from minigrad.array.layout import contiguous_strides, reshape_strides, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, ShapeError
from minigrad.formulas.expression import ADD, Program, call, symbol, where
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.base import Structural
from minigrad.ops.inplace import CopyOf, check_recorded, writable
from minigrad.ops.observers import announce, named
from minigrad.ops.operands import check_operands, constant, stored_number
from minigrad.ops.plain_writes import is_written
from minigrad.ops.structural_plan import StructuralPlan
from minigrad.ops.subscripts import (
    Place,
    is_run_time,
    located,
    quickly_located,
    region_shape,
    rows_of,
    spec_of,
    view_of,
    viewed,
    winners,
)
from minigrad.seams import seams
from minigrad.tape.modes import state
from minigrad.tape.node import Node, user_place
from minigrad.tape.variable import Variable, filled

CHOOSE = Program(["m", "y", "x"], [where(symbol("m"), symbol("y"), symbol("x"))])


def folded(shape, axis, count=1):
    """Folds the axes before, at and after an index into one each; returns sizes (outer, n, r).

    An index at axis None has all axes.
    """
    axis, count = (0, len(shape)) if axis is None else (axis, count)
    end = axis + count
    return size_of(shape[:axis]), size_of(shape[axis:end]), size_of(shape[end:])


def as_shape(array, shape):
    """Views a contiguous Array in another shape."""
    return array.view(shape, contiguous_strides(shape))


class Slice(Structural):
    """Ints, slices and new axes, a view.  (...), spec -> (...)."""

    samples = [((3, 4), (1, (0, 2, 2))), ((3,), (None, (2, -1, 3))), ((2, 3), ((0, 1, 0), 1))]
    is_view = True

    def forward(x, spec):
        return x.view(*viewed(x.strides, x.offset, spec))

    gradients = (lambda dy, x_shape, spec: SliceAdjoint.apply(dy, x_shape, spec),)
    array_gradients = "same"


class SlicePlan(StructuralPlan):
    """The plan of a slice. The gradients of all slices of an input add to one array in place."""

    def add_to(self, node, dy, total):
        """Computes total[spec] += dy, without an array of zeros around dy."""
        (spec,) = node.attributes
        place = total.view(*viewed(total.strides, total.offset, spec))
        device_of(dy).elementwise(ADD, (place, dy), (place,))


Slice.plan_type = SlicePlan


class SliceAdjoint(Structural):
    """Zeros of a shape with x where a slice would read.  (...), shape, spec -> shape."""

    samples = [((2,), (3, 4), (1, (0, 2, 2))), ((1, 3), (3,), (None, (2, -1, 3)))]

    def forward(x, shape, spec):
        out = filled(x, 0, shape)
        if x.size:
            device_of(x).copy(x, out.view(*viewed(out.strides, 0, spec)))
        return out

    gradients = (lambda dy, spec: Slice.apply(dy, spec),)
    array_gradients = "same"


class Take(Structural):
    """Selects along an axis.  (..., n, ...), index in [0, n), axis -> (..., *index.shape, ...).

    Along axis None it selects from x flattened.
    The gradient is a sum into the selected rows, in the order of the index.
    """

    samples = [((4, 3), (2, 2), 0), ((2, 4, 3), (5,), 1), ((3,), (0,), 0), ((2, 3), (4,), None)]
    integer_inputs = {1: 3}

    def forward(x, index, axis):
        device = device_of(x)
        shape = x.shape
        before, after = ((), ()) if axis is None else (shape[:axis], shape[axis + 1 :])
        out = device.empty((*before, *index.shape, *after), x.dtype)
        if out.size:
            outer, n, r = folded(shape, axis)
            x = as_shape(device.contiguous(x), (outer, n, r))
            rows = as_shape(out, (outer, index.size, r))
            device.gather(x, device.contiguous(index), rows)
        return out

    gradients = (
        lambda dy, index, x_shape, axis: TakeAdjoint.apply(dy, index, x_shape, axis),
        None,
    )
    array_gradients = "same"


class TakeAdjoint(Structural):
    """Adds slices along an axis to zeros of a shape, each at its index.

    (..., *index.shape, ...), index, shape, axis -> shape.
    """

    samples = [
        ((2, 2, 3), (2, 2), (4, 3), 0), ((2, 5, 3), (5,), (2, 4, 3), 1), ((4,), (4,), (2, 3), None),
    ]  # fmt: skip
    integer_inputs = {1: 3}

    def forward(x, index, shape, axis):
        device, out = device_of(x), filled(x, 0, shape)
        if x.size:
            outer, n, r = folded(shape, axis)
            x = as_shape(device.contiguous(x), (outer, index.size, r))
            device.scatter_add(x, device.contiguous(index), as_shape(out, (outer, n, r)))
        return out

    gradients = (lambda dy, index, axis: Take.apply(dy, index, axis), None)
    array_gradients = "same"


class SetItem(Structural):
    """x with y at a place.  (...), (...) that broadcasts to the region, place -> (...).

    If an index names a target twice, the last value stays, and only this value gets a gradient.
    """

    name = "setitem"
    samples = [((3, 4), (2,), Place(((1, 1, 2), 1))), ((3,), (), Place(((0, 1, 3),)))]

    def forward(x, y, place):
        out = device_of(x).convert(x, x.dtype)
        put(out, y, place)
        return out

    gradients = (
        lambda dy, place: SetItem.apply(dy, constant(0.0, near=dy), place),
        lambda dy, place: _last_ones(dy, place),
    )


def _last_ones(dy, place):
    y = read(dy, place)
    if place.mask is not None:
        return call("where", Variable(_mask_of(place, y.ndim)), y, 0.0)
    if place.index is None or place.index.size < 2:
        return y
    shape = view_of(dy.array, place).shape
    stays = winners(place, size_of(shape[place.axis : place.axis + place.count])).array
    return call("where", Variable(_widened(stays, len(shape) - place.axis - place.count)), y, 0.0)


def _mask_of(place, rank):
    """Returns the mask of a Place with the axes that broadcast to its view."""
    mask = place.mask.array
    if not mask.shape:  # a scalar mask indexes an axis of one element
        mask = mask.view((1,), (1,), mask.offset)
    return _widened(mask, rank - place.axis - place.count)


def _widened(array, count):
    """Views an Array with `count` more axes of size 1 at the end."""
    shape, strides = (*array.shape, *(1,) * count), (*array.strides, *(0,) * count)
    return array.view(shape, strides, array.offset)


def put(array, y, place):
    """Computes array[place] = y for Arrays. y broadcasts to the region."""
    device, view = device_of(array), view_of(array, place)
    if place.mask is not None:
        if view.size:
            device.elementwise(CHOOSE, (_mask_of(place, len(view.shape)), y, view), (view,))
        return
    if place.index is None:
        if view.size:
            device.copy(y, view)
        return
    outer, n, r = folded(view.shape, place.axis, place.count)
    m = place.index.size
    if not (outer and m and r):
        return
    source = device.empty(region_shape(array.shape, place), array.dtype)
    device.copy(y, source)
    source = as_shape(source, (outer, m, r))
    strides = reshape_strides(view.shape, view.strides, (outer, n, r))
    if strides == contiguous_strides((outer, n, r)):
        device.put(source, place.index.array, view.view((outer, n, r), strides))
        return
    whole = device.convert(view, view.dtype)
    device.put(source, place.index.array, as_shape(whole, (outer, n, r)))
    device.copy(whole, view)


def read(x, place):
    """Returns x[place]; for a mask, all elements that the mask covers."""
    if place.index is place.order is None:
        return Slice.apply(x, place.spec)
    if place.spec != tuple([(0, 1, n) for n in x.array.shape]):
        x = Slice.apply(x, place.spec)
    if place.order is not None:
        x = call("permute", x, place.order)
    if place.index is None:
        return x
    if place.count != 1:
        a, shape = place.axis, x.shape
        merged = size_of(shape[a : a + place.count])
        x = call("reshape", x, (*shape[:a], merged, *shape[a + place.count :]))
    return Take.apply(x, place.index, place.axis)


def get_item(x, index):
    """x[index] by NumPy's rules: a view for ints, slices, None and ..., else a copy.

    Raises:
        BoundsError: an index is beyond its axis, or there are more indices than axes.
        ArgumentTypeError: an index has another type.

    >>> import minigrad as mg
    >>> x = mg.variable([[1, 2, 3], [4, 5, 6]])
    >>> x[0, ::-1].tolist(), x[:, [0, 2]].tolist(), x[x > 4].tolist()
    ([3, 2, 1], [[1, 3], [4, 6]], [5, 6])
    """
    if type(index) is Variable:
        count, places = rows_of(x, index)
        if count:
            shape = x.array.shape
            if count > 1:
                x = call("reshape", x, (size_of(shape[:count]), *shape[count:]))
            return Take.apply(x, places, 0)
    spec = spec_of(x, index)
    if spec is not None:
        return Slice.apply(x, spec)
    place = quickly_located(x, index)
    if place is not None:
        return read(x, place)
    place = located(x, index)
    y = read(x, place)
    if place.index is not None and seams.effects.is_tracing and _is_view(index):
        seams.effects.stand_in(y.array, x.array)
    return y


def _is_view(index):
    """Returns whether x[index] would be a view if Variables of one int were ints."""
    items = index if type(index) is tuple else (index,)
    numbers = [i for i in items if is_run_time(i)]
    return bool(numbers) and all(
        i is None or i is Ellipsis or isinstance(i, (int, slice, np.integer)) or is_run_time(i)
        for i in items
    )


@named
@uninterrupted
def set_item(x, index, value):
    """Sets x[index] = value with all checks, and records it if gradients depend on it."""
    x.write_check("x[index] = y")
    if isinstance(value, (int, float, np.floating)):
        value = stored_number("x[index] = y", value, x.dtype)
    y = given = value if isinstance(value, Variable) else constant(value, "x[index] = y", x)
    place = located(x, index, y.shape)
    if y.dtype is not x.dtype:
        y = y.to(x.dtype)
    check_operands("setitem", (x, y))
    region = region_shape(x.shape, place)
    after = len(region) - place.axis - place.count
    if place.mask is not None and y.ndim > after:  # the axis of selected elements: all of the mask
        cut = y.ndim - after
        y = y.reshape(*y.shape[: cut - 1], *(1,) * place.count, *y.shape[cut:])
    while y.ndim > len(region) and y.shape[0] == 1:
        y = y[0]
    if len(y.shape) > len(region) or any(
        m not in (1, n) for m, n in zip(y.shape[::-1], region[::-1], strict=False)
    ):
        raise ShapeError(f"x[index] = y: wanted a y that broadcasts to {region}", f"{y.shape}")
    records = state.recording and (x._requires_grad or y._requires_grad) and x.dtype.is_float
    if records:
        check_recorded(SetItem, x, "x[index] = y", (given, y))
    target = x.array
    writable(target, "x[index] = y")
    device, source = device_of(target), y.array
    if source.is_alias_of(target):
        source = device.convert(source, source.dtype)
    if isinstance(value, Variable):
        seams.effects.put_back(value.array, target)
    device.prepare_write(target, user_place())
    put(target, source, place)
    if records:
        mask = bool(x._requires_grad) + 2 * bool(y._requires_grad)
        edges = tuple((v.node or v) if v._requires_grad else None for v in (x, y))
        wanted = ((x.shape, x.dtype), (y.shape, y.dtype))
        seams.effects.change(x, "x[index] = y, recorded")
        x.node = Node(SetItem.plan(mask), edges, (), (), wanted, (place,))
        x._requires_grad = True
    if state.path >= 2:
        announce("setitem", x, (y,))


def assign(x, index, value):
    """Sets x[index] = value in place. value broadcasts to x[index] and is converted to x's dtype.

    The write is recorded if gradients depend on it. Of several values for one element the last one
    stays.
    """
    if not is_written(CopyOf, x, value, index):
        set_item(x, index, value)


def rows_of_axis_0(x):
    """Returns an iterator of x[0], x[1], ..., the items of `for row in x`."""
    if not x.ndim:
        raise ArgumentTypeError("iteration: wanted at least one axis", x.describe())
    rest = [(0, 1, n) for n in x.shape[1:]]
    return (Slice.apply(x, (i, *rest)) for i in range(x.shape[0]))
