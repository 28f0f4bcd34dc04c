"""In-place writes: x += y, x.copy_(y), x[i] = y. Each makes a new node over the same Storage."""

import gc

from minigrad.array.array import Array, View, views_shown
from minigrad.array.layout import broadcast_shapes
from minigrad.devices.backend import device_of
from minigrad.errors import DTypeError, InPlaceError, ShapeError
from minigrad.formulas.expression import zero_of
from minigrad.hints import teaching
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops import binary
from minigrad.ops.base import Elementwise
from minigrad.ops.observers import announce
from minigrad.ops.operands import check_operands, fitting_numbers, operand, stored_number
from minigrad.ops.plain_writes import is_written, writer
from minigrad.seams import seams
from minigrad.tape.modes import ANNOUNCED, state
from minigrad.tape.node import Node, user_place
from minigrad.tape.probe import run_as
from minigrad.tape.variable import Variable

OUT_OF_PLACE = {"add": "x = x + y", "sub": "x = x - y", "mul": "x = x * y", "div": "x = x / y"}


class CopyOf(Elementwise):
    """b, which overwrites a.  (...), (...) -> (...).  The gradient of a is 0."""

    samples = [((3, 4), (3, 4)), ((3, 4), (4,))]
    promotes = slice(0, 1)

    def formula(a, b):
        return b

    def gradient(dy):
        return zero_of(dy), dy


def write(op, x, *others, called=None):
    """Computes x = op(x, *others) in the Storage of x, and records it if gradients depend on it.

    called: the name for errors, if it differs from the op's.
    """
    if is_written(op, x, *others):
        return x
    if state.path in ANNOUNCED:
        return run_as(f"{op.name}_", _write, op, x, others, called)
    return _write(op, x, others, called)


@uninterrupted
def _write(op, x, others, called):
    name = called or f"{op.name} in place"
    others = [operand(o, name, (x,)) for o in others]
    x.write_check(name)
    variables = [x, *[o for o in others if isinstance(o, Variable)]]
    check_operands(name, variables)
    target = x.array
    shape = broadcast_shapes(name, target.shape, *[v.shape for v in variables[1:]])
    if shape != target.shape:
        raise ShapeError(
            f"{name}: wanted operands that broadcast to {target.shape}",
            " and ".join(f"{v.shape}" for v in variables[1:]),
        )
    arrays = [o.array if isinstance(o, Variable) else o for o in others]
    dtype = op.result_dtype([target, *arrays])
    if dtype is not target.dtype and not (op is CopyOf or dtype.kind == target.dtype.kind):
        raise DTypeError(
            f"{name}: wanted a result of {target.dtype}, as x is",
            f"{dtype}",
            OUT_OF_PLACE.get(op.name),
        )
    if op is CopyOf and not isinstance(arrays[0], Array):
        arrays = [stored_number(name, arrays[0], target.dtype)]
    arrays = fitting_numbers(name, arrays, target.dtype)
    records = state.recording and any(v._requires_grad for v in variables) and target.dtype.is_float
    if records:
        check_recorded(op, x, name, variables)
    writable(target, name)
    device = device_of(target)
    needs = [isinstance(o, Variable) and o._requires_grad for o in (x, *others)]
    mask = sum(1 << k for k, is_needed in enumerate(needs) if is_needed)
    kept = before_write([target, *arrays], op.plan(mask).saved_index) if records else None
    arrays = [
        device.convert(a, a.dtype)
        if isinstance(a, Array)
        and a.is_alias_of(target)
        and not (a.buffer is target.buffer and a.layout() == target.layout())
        else a
        for a in arrays
    ]
    device.prepare_write(target, user_place())
    device.elementwise(op.program, (target, *arrays), (target,))
    if records:
        recorded = op.record([x, *others], kept, target, mask)
        seams.effects.change(x, f"{name}, recorded")
        x.node, x._requires_grad = recorded.node, True
    if state.path >= 2:
        announce(f"{op.name}_", x, others)
    return x


def before_write(operands, saved):
    """Replaces saved operands that the write may change with copies; returns the operands.

    The target comes first. Operands on its Storage are copied. So are operands in foreign memory,
    because two Storages may cover the same foreign memory.
    """
    target, copies = operands[0].storage, {}
    for k in saved:
        x = operands[k] if k >= 0 else None
        if not isinstance(x, Array) or id(x) in copies:
            continue
        if x.storage is target or x.is_foreign:
            copies[id(x)] = device_of(x).convert(x, x.dtype)
    return [copies.get(id(x), x) for x in operands] if copies else operands


def writable(array, name):
    """Raises for a broadcast view, because a write to one element would change several."""
    if array.is_broadcast:
        raise InPlaceError(
            f"{name}: wanted memory of its own for every element",
            f"a broadcast view {array.shape} with strides {array.strides}",
            "write to x.clone(), which has an element of its own at each place",
        )


def check_recorded(op, x, name, operands=()):
    """Raises if x is a view or has a living view, because views do not follow a recorded write.

    Views among the operands are allowed, because they are read before the write.
    """
    form = OUT_OF_PLACE.get(op.name, "x = ...")
    if type(x.array) is View:
        place = form.replace("x", "x[i]")
        raise InPlaceError(
            f"{name}: a write to a view cannot be recorded: its base would not know",
            x.describe(),
            "write inside `with mg.no_grad():`, or out of place: the base is a leaf"
            if _shows_leaf(x)
            else f"{place.replace('...', 'y')} in one line, which writes to x itself, or {form} "
            "out of place",
        )
    storage = x.array.storage
    total = views_shown(storage)
    if total and total > len({id(o) for o in operands if o.shows is storage.views}):
        # rare, as an error follows, unless the others show an operand's Array, or this one no more
        shown = [y for y in gc.get_referrers(storage.views) if isinstance(y, Variable)]
        read = {id(o.array) for o in operands}
        if len(shown) < total or any(  # gc.freeze() hides some, and they may be views
            type(y.array) is View and y.array.storage is storage and id(y.array) not in read
            for y in shown
        ):
            raise InPlaceError(
                f"{name}: a view of this Variable is alive and would not know",
                x.describe(),
                f"write out of place: {form}, or make the view after the write",
            )


def _shows_leaf(x):
    """Returns whether x is a view, direct or indirect, of a leaf that requires gradients."""
    node = x.node
    while type(node) is Node and getattr(getattr(node.plan, "op", None), "is_view", False):
        node = node.edges[0]
    return isinstance(node, Variable)


def _method(op, name, doc=None):
    called = name if op is CopyOf else None
    method = writer(op, lambda x, other: write(op, x, other, called=called))
    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


_fill, _zero = _method(CopyOf, "fill_"), _method(CopyOf, "zero_")


def fill_(x, value):
    """Sets every element to a number, in place. Returns x."""
    return _fill(x, value)


def zero_(x):
    """Sets every element to 0, in place. Returns x."""
    return _zero(x, 0.0 if x.dtype.is_float else 0)


@uninterrupted
def apply_(x, program, *others):
    """Computes x = program(x, *others) in place, unrecorded, for optimizers and clipping."""
    device = device_of(x.array)
    device.prepare_write(x.array, user_place())
    device.elementwise(program, (x.array, *others), (x.array,))


def install(cls):
    """Adds the methods to Variable."""
    for op in (binary.Add, binary.Sub, binary.Mul, binary.Div):
        form = OUT_OF_PLACE[op.name]
        method = _method(op, f"{op.name}_", f"Computes {form} in place. Returns x.")
        setattr(cls, method.__name__, teaching(method))
        name = "truediv" if op.name == "div" else op.name
        setattr(cls, f"__i{name}__", method)
    text = "Copies the elements of `other`, which broadcasts to x, into x. Returns x."
    copy_ = _method(CopyOf, "copy_", text)
    cls.copy_, cls.fill_, cls.zero_ = map(teaching, (copy_, fill_, zero_))
