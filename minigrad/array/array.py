"""Array = Storage + layout + dtype. No history, no arithmetic.

The Array that was made together with its bytes plays the part of the **Storage**: it owns a Buffer
and counts its versions. Everything else that shows the same bytes is a **View**, which points at
that Storage and asks it. `clone()` makes a second Storage over the same Buffer (copy-on-write):
`refcount` counts those.
"""

import numpy as np

from minigrad.array.layout import contiguous_strides, is_contiguous, size_of
from minigrad.array.overlap import shares_bytes, span
from minigrad.memory.buffer import unpin
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


class Array:
    """A contiguous array that owns its bytes: layout and Storage in one object.

    shape and strides are tuples, strides and offset count elements; `is_flat` says that the
    elements lie in C order from the first byte of the buffer and that nobody else writes them.
    """

    __slots__ = (
        "__weakref__",
        "buffer",
        "dtype",
        "is_flat",
        "offset",
        "shape",
        "size",
        "strides",
        "version",
        "views",
        "written_at",
    )

    def __init__(self, buffer, shape, dtype):
        self.buffer, self.version = buffer, 0
        self.shape, self.dtype, self.offset = shape, dtype, 0
        self.strides, self.size, self.is_flat = contiguous_strides(shape), size_of(shape), True

    @uninterrupted
    def __del__(self):
        try:
            buffer = self.buffer
        except AttributeError:  # Ctrl-C came before it had one
            return
        buffer.owners -= 1
        if not buffer.owners:
            home = buffer.home
            home.pool.current_bytes -= buffer.nbytes
            home.append(buffer)

    @property
    def storage(self):
        """The Array that owns the bytes: this one."""
        return self

    @property
    def device(self):
        """The name of the device that holds the bytes."""
        return self.buffer.pool.device

    @property
    def nbytes(self):
        """Bytes of the elements shown, not of the buffer."""
        return self.size * self.dtype.itemsize

    @property
    def address(self):
        """Where the first element lies."""
        return self.buffer.address + self.offset * self.dtype.itemsize

    @property
    def is_contiguous(self):
        """Whether the elements lie one after the other in C order."""
        return self.is_flat or is_contiguous(self.shape, self.strides)

    @property
    def is_foreign(self):
        """Whether somebody outside may write these bytes unseen."""
        return self.buffer.is_foreign

    def view(self, shape, strides, offset=None):
        """The same bytes with another layout."""
        return View(self, shape, strides, self.offset if offset is None else offset)

    def layout(self):
        """(shape, strides, offset)."""
        return self.shape, self.strides, self.offset

    is_alias_of = shares_bytes  # whether some byte is shown by both

    def shares_foreign_bytes(self, others):
        """The first of other Storages that shows some of the same memory from outside, or None."""
        if self.is_foreign:
            for other in others:
                if other is not self and self.is_alias_of(other):
                    return other
        return None

    def bytes_shown(self):
        """(first, end) of the addresses of what it shows."""
        low, high, _ = span(self.shape, self.strides)
        step = self.dtype.itemsize
        return self.address + low * step, self.address + high * step

    @uninterrupted
    def mark_foreign(self):
        """Says that others may write these bytes unseen: saving them copies them."""
        storage = self.storage
        storage.buffer.is_foreign = True
        storage.is_flat = False  # the short ways of ops do not look at is_foreign

    def __repr__(self):
        return f"{type(self).__name__}({self.dtype}{list(self.shape)})"


class View(Array):
    """Another layout over a Storage. `made_at`: the version that a recorded op saw, else None."""

    __slots__ = ("base", "made_at")

    @uninterrupted
    def __init__(self, array, shape, strides, offset):
        base = array.storage
        try:
            base.views += 1
        except AttributeError:  # the first one
            base.views = 1
        self.base, self.made_at = base, None
        self.shape, self.strides, self.offset, self.dtype = shape, strides, offset, array.dtype
        self.size = size_of(shape)
        self.is_flat = False  # never the short way: what a view shows may have been written since

    @uninterrupted
    def __del__(self):
        try:
            self.base.views -= 1  # the bytes belong to the base
        except AttributeError:  # as above
            return

    @property
    def storage(self):
        """The Array that owns the bytes."""
        return self.base

    buffer = property(lambda self: self.base.buffer)
    version = property(lambda self: self.base.version)


_new = object.__new__


@uninterrupted
def fresh(buffer, shape, dtype, size):
    """Array(buffer, shape, dtype) without the calls: every operation makes one."""
    array = _new(Array)
    array.buffer, array.version = buffer, 0
    array.shape, array.dtype, array.offset = shape, dtype, 0
    array.strides, array.size, array.is_flat = contiguous_strides(shape), size, True
    return array


@uninterrupted
def prepare_write(array, copy_buffer, place=None):
    """Call before every in-place write: bumps the version and un-shares a copy-on-write Buffer.

    copy_buffer(buffer) -> a Buffer of its own with the same bytes. `place` is the user's line as
    (code, instruction), shown if a saved value turns out to have been overwritten.
    """
    storage = array.storage
    unshare(storage, copy_buffer)
    storage.version += 1
    storage.written_at = place


class Moves:
    """Counts, in this process, Buffers that came to be shared and Storages that got another one.

    Who keeps addresses of Storages, or knows that nobody shares them, remembers the number.
    """

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


moves = Moves()


@uninterrupted
def fork(array):
    """clone() without a copy: a second Storage over the Buffer, copied at a write to either."""
    array.buffer.owners += 1
    moves.count += 1
    clone = fresh(array.buffer, array.shape, array.dtype, array.size)
    clone.is_flat = array.is_flat
    if seams.storage is not None:
        seams.storage.forked(array.storage, clone)
    return clone


@uninterrupted
def unshare(storage, copy_buffer):
    """Gives a Storage a Buffer of its own if it shares one with a clone."""
    if seams.storage is not None and seams.storage.write(storage, copy_buffer):
        moves.count += 1
        return
    old = storage.buffer
    if old.owners > 1:
        storage.buffer = copy_buffer(old)
        old.owners -= 1
        moves.count += 1  # last: who sees the new number sees the new Buffer


class _Exported:
    """What NumPy holds on to: the Storage stays alive, its Buffer pinned, as long as views live."""

    @uninterrupted
    def __init__(self, array, writable):
        self.array = array.storage
        self.buffer = array.buffer
        self.buffer.pins += 1
        step = array.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.numpy.str,
            "strides": tuple(s * step for s in array.strides),
            "data": (array.address, not writable),
        }

    @uninterrupted
    def __del__(self):
        unpin(self.buffer)


def ndarray(array):
    """A transient NumPy view for use inside the engine: not for handing out."""
    seams.effects.read(array)
    segment = array.buffer.segment
    step = array.dtype.itemsize
    start = array.address - segment.address
    strides = tuple(s * step for s in array.strides)
    return np.ndarray(array.shape, array.dtype.numpy, segment.owner, start, strides)


def export(array, copy_buffer, writable=False):
    """A NumPy view that may be kept: it holds the Storage, and pins its Buffer, while it lives.

    A Buffer shared with a copy-on-write clone is copied first: the view must follow this Storage.
    """
    seams.effects.read(array)
    unshare(array.storage, copy_buffer)
    return np.asarray(_Exported(array, writable))
