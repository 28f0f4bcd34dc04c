"""Array = Storage + layout + dtype, without history or arithmetic.

The Array that is made together with its memory is the **Storage**: it owns a Buffer and counts its
versions. Every other Array over the same memory is a **View**, which refers to the Storage. A clone
is a second Storage over the same Buffer (copy-on-write); `Buffer.owners` counts these Storages.
"""

from sys import getrefcount
from typing import Any

import numpy as np

from minigrad.array.layout import contiguous_strides, is_contiguous, size_of
from minigrad.array.overlap import shares_bytes, span
from minigrad.memory.buffer import unpin
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


class Array:
    """A contiguous array that owns its memory: layout and Storage in one object.

    shape and strides are tuples of ints; strides and offset count elements. is_flat: whether the
    elements are in C order from the start of the buffer and no foreign code writes them.
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
        except AttributeError:  # Ctrl-C came before __init__ set it
            return
        buffer.owners -= 1
        if not buffer.owners:
            home = buffer.home
            home.pool.current_bytes -= buffer.nbytes
            home.append(buffer)

    @property
    def storage(self):
        """The Array that owns the memory: this one."""
        return self

    @property
    def device(self):
        """The name of the device that holds the memory."""
        return self.buffer.pool.device

    @property
    def nbytes(self):
        """Bytes of the array's elements, not of the buffer."""
        return self.size * self.dtype.itemsize

    @property
    def address(self):
        """The address of the first element."""
        return self.buffer.address + self.offset * self.dtype.itemsize

    @property
    def is_contiguous(self):
        """Whether the elements are contiguous in C order."""
        return self.is_flat or is_contiguous(self.shape, self.strides)

    @property
    def is_broadcast(self):
        """Whether several indices refer to one element, along an axis of stride 0."""
        pairs = zip(self.shape, self.strides, strict=True)
        return self.size > 0 and any(n > 1 and s == 0 for n, s in pairs)

    @property
    def is_foreign(self):
        """Whether foreign code may write the memory unnoticed."""
        return self.buffer.is_foreign

    def view(self, shape, strides, offset=None):
        """Returns a View of the same memory with another layout."""
        return View(self, shape, strides, self.offset if offset is None else offset)

    def layout(self):
        """Returns (shape, strides, offset)."""
        return self.shape, self.strides, self.offset

    is_alias_of = shares_bytes  # whether they share memory

    def shares_foreign_bytes(self, others):
        """Returns the first of `others` that shares foreign memory with this Array, or None."""
        if self.is_foreign:
            for other in others:
                if other is not self and self.is_alias_of(other):
                    return other
        return None

    def bytes_shown(self):
        """Returns (first, end), the address range of the elements."""
        low, high, _ = span(self.shape, self.strides)
        step = self.dtype.itemsize
        return self.address + low * step, self.address + high * step

    @uninterrupted
    def mark_foreign(self):
        """Declares that foreign code may write the memory unnoticed. Saving then copies it."""
        storage = self.storage
        storage.buffer.is_foreign = True
        storage.is_flat = False  # the fast paths of ops do not check is_foreign

    def __repr__(self):
        return f"{type(self).__name__}({self.dtype}{list(self.shape)})"


class View(Array):
    """Another layout over a Storage. made_at: the version at which a recorded op made it."""

    __slots__ = ("base", "made_at")

    def __init__(self, array, shape, strides, offset):
        self.base, self.made_at = array.storage, None
        self.shape, self.strides, self.offset, self.dtype = shape, strides, offset, array.dtype
        self.size = size_of(shape)
        self.is_flat = False  # no fast path: they do not check whether the base was written

    # It does nothing, because the base owns the memory. A Ctrl-C cannot get lost in a C function.
    __del__: Any = object.__sizeof__

    def shown_by(self, variable):
        """Has a Variable hold the base's `views`: its count of references says how many do."""
        try:
            variable.shows = self.base.views
        except AttributeError:  # this is the first view
            variable.shows = self.base.views = object()

    @property
    def storage(self):
        """The Array that owns the memory."""
        return self.base

    buffer = property(lambda self: self.base.buffer)
    version = property(lambda self: self.base.version)


def views_shown(storage):
    """Returns how many living Variables have shown a view of a Storage."""
    return _references(storage) - UNSHOWN if hasattr(storage, "views") else 0


def _references(storage):
    return getrefcount(storage.views)


_new = object.__new__
_probe = _new(Array)
_probe.views = object()
UNSHOWN = _references(_probe)  # references to `views` that are no Variable's; Pythons differ


@uninterrupted
def fresh(buffer, shape, dtype, size):
    """Does what Array(buffer, shape, dtype) does without calls: every operation makes an Array."""
    array = _new(Array)
    array.buffer, array.version = buffer, 0
    array.shape, array.dtype, array.offset = shape, dtype, 0
    array.strides, array.size, array.is_flat = contiguous_strides(shape), size, True
    return array


@uninterrupted
def prepare_write(array, copy_buffer, place=None):
    """Increments the version and unshares a copy-on-write Buffer. Call before in-place writes.

    copy_buffer(buffer) -> a new Buffer with the same contents. place: the user's line as (code,
    instruction), which an error shows if the write changes a saved value.
    """
    storage = array.storage
    unshare(storage, copy_buffer)
    storage.version += 1
    storage.written_at = place


class Moves:
    """Counts Buffers that became shared and new ones of Storages; caches of addresses check it."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


moves = Moves()


@uninterrupted
def fork(array):
    """Makes a second Storage over the same Buffer; the first write to either copies the Buffer."""
    array.buffer.owners += 1
    moves.count += 1
    clone = fresh(array.buffer, array.shape, array.dtype, array.size)
    clone.is_flat = array.is_flat
    if seams.storage is not None:
        seams.storage.forked(array.storage, clone)
    return clone


@uninterrupted
def unshare(storage, copy_buffer):
    """Gives a Storage a new Buffer if it shares its Buffer with a clone."""
    if seams.storage is not None and seams.storage.write(storage, copy_buffer):
        moves.count += 1
        return
    old = storage.buffer
    if old.owners > 1:
        storage.buffer = copy_buffer(old)
        old.owners -= 1
        moves.count += 1  # last: a thread that sees the new count also sees the new Buffer


class _Exported:
    """The base of NumPy views: a live view keeps the Storage alive and its Buffer pinned."""

    @uninterrupted
    def __init__(self, array, writable):
        self.array = array.storage
        self.buffer = array.buffer
        self.buffer.pins += 1
        step = array.dtype.itemsize
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.memory.str,
            "strides": tuple(s * step for s in array.strides),
            "data": (array.address, not writable),
        }

    @uninterrupted
    def __del__(self):
        unpin(self.buffer)


def ndarray(array):
    """Returns a short-lived NumPy view for the engine. Never pass it to users."""
    seams.effects.read(array)
    segment = array.buffer.segment
    step = array.dtype.itemsize
    start = array.address - segment.address
    strides = tuple(s * step for s in array.strides)
    return np.ndarray(array.shape, array.dtype.memory, segment.owner, start, strides)


def export(array, copy_buffer, writable=False):
    """Returns a NumPy view of memory for users: it keeps the Storage alive and its Buffer pinned.

    It first copies a Buffer that is shared with a clone, because the view must follow this Storage.
    """
    seams.effects.read(array)
    unshare(array.storage, copy_buffer)
    return np.asarray(_Exported(array, writable))
