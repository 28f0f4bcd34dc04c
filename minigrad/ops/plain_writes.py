"""Writes in place that nobody records or watches: `w -= 0.1 * g`, `x[0] = 1.0`, `x[1:] = y`.

Loops by hand are made of them. They need few of the checks of `inplace` and `indexing`, to which
all other writes go.
"""

from minigrad.array.array import View
from minigrad.devices.backend import chosen
from minigrad.devices.cpu.device import cpu
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.fast import EXACT, USABLE
from minigrad.ops.subscripts import spec_of, viewed
from minigrad.tape.modes import NO_GRAD, RECORD, state
from minigrad.tape.node import user_place


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
