"""Writes in place that nobody records or watches: `w -= 0.1 * g`, `x[0] = 1.0`, `x[1:] = y`.

Loops by hand are made of them. They need few of the checks of `inplace` and `indexing`, to which
all other writes go.
"""

from sys import _getframe as getframe

from minigrad.array.array import View
from minigrad.devices.backend import chosen
from minigrad.devices.cpu.device import cpu
from minigrad.devices.threads import SPLIT, work_of
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.fast import EXACT, USABLE
from minigrad.ops.subscripts import spec_of, viewed
from minigrad.seams import seams
from minigrad.tape.modes import NO_GRAD, RECORD, state
from minigrad.tape.node import OURS, user_place
from minigrad.tape.variable import Variable


def writer(op, otherwise):
    """Returns a function (x, other) that computes x = op(x, other) in place and returns x.

    It writes at once if x is a whole Array and `other` a number or an Array of the same layout, as
    in `w -= step`: training loops by hand spend their time here, so nothing is called but the
    kernel. otherwise(x, other) does all other writes.
    """
    program = op.program
    entries, numbered = program.entry_in_place, program.entry_number_in_place
    alone = SPLIT // work_of(program)

    @uninterrupted
    def write(x, other):
        if type(x) is not Variable:
            return otherwise(x, other)
        a, kind, path = x.array, type(other), state.path
        if not (
            a.is_flat
            and a.size < alone
            and path <= NO_GRAD
            and not (path == RECORD and x._requires_grad)
        ):
            return otherwise(x, other)
        entry = None
        if kind is Variable:
            b = other.array
            if (
                b.is_flat
                and a is not b
                and a.shape == b.shape
                and a.dtype is b.dtype
                and not (path == RECORD and other._requires_grad)
            ):
                entry, source = entries[a.dtype.index], b.buffer.address
        elif (kind is float or kind is int) and -EXACT <= other <= EXACT and not a.dtype.is_narrow:
            entry, source = numbered[a.dtype.index], float(other)
        buffer = a.buffer
        if (
            entry is None
            or not a.dtype.is_float
            or buffer.owners > 1
            or seams.storage is not None
            or chosen.device is not None
        ):
            return otherwise(x, other)
        frame = getframe(1)
        while OURS[frame.f_code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
        a.version += 1
        a.written_at = frame.f_code, frame.f_lasti
        address = buffer.address
        entry(address, source, address, a.size)
        return x

    return write


@uninterrupted
def is_written(op, x, value, index=None):
    """Computes x = op(x, value), or x[index] = op(x[index], value), if that is a plain write.

    Returns whether it did; if not, nothing has happened. op: elementwise, of two operands.
    """
    array = x.array
    dtype = array.dtype
    if not dtype.is_float or dtype.is_narrow or chosen.device is not None:
        return False
    if not _is_usable(x, array):
        return False
    shape, strides, offset = array.shape, array.strides, array.offset
    if index is not None:
        spec = spec_of(x, index)
        if spec is None:
            return False
        shape, strides, offset = viewed(strides, offset, spec)
    if 0 in array.strides or 0 in strides or 0 in shape:
        return False
    kind, storage = type(value), array.storage
    if kind is float or kind is int:
        if not -EXACT <= value <= EXACT:  # the dtype may not hold it, or it is NaN
            return False
        source, other = float(value), float
    else:
        if USABLE[kind] > state.path:
            return False
        source = value.array
        other = source.shape, source.strides, source.dtype
        if source.dtype is not dtype or source.shape != shape or not _is_usable(value, source):
            return False
        if source.storage is storage:  # the last of the steps of x[index] += 1 writes what is there
            if index is None or source.layout() != (shape, strides, offset):
                return False
            cpu.prepare_write(storage, user_place())
            return True
    cpu.prepare_write(storage, user_place())
    layout = shape, strides, dtype
    bound = op.program.layouts.get(("in place", layout, other, layout))
    if bound is None:
        target = array if index is None else View(array, shape, strides, offset)
        cpu.elementwise(op.program, (target, source), (target,))
        return True
    size = dtype.itemsize
    address = storage.buffer.address + offset * size
    if other is not float:
        source = source.storage.buffer.address + source.offset * size
    bound.run([address, source, address])
    return True


def _is_usable(x, array):
    """Returns whether a Variable's Array may be read or written now without further questions."""
    path, buffer = state.path, array.buffer
    return (
        USABLE[type(x)] <= path <= NO_GRAD
        and not (path == RECORD and x._requires_grad)
        and not (type(array) is View and x.node is not None)
        and buffer.pool is cpu.pool
        and not buffer.is_foreign
    )
