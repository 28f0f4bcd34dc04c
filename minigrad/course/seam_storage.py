"""Puts a learner's copy-on-write class under the engine's clones."""

import weakref
from collections.abc import Callable

import numpy as np

from minigrad.array.array import ndarray
from minigrad.course.seam_parts import Part
from minigrad.memory.interrupts import uninterrupted


class CopyOnWrite:
    """storage=CowBuffer: CowBuffer(array), .fork() -> another, .write() -> the array to write to.

    clone() calls fork(). Before a write, the engine calls write(), which copies if it must; the
    array that it returns becomes the memory of the Variable to be written.
    """

    def __init__(self, part):
        self.part, self.cls = part, part.function
        self.known = weakref.WeakKeyDictionary()

    def forked(self, source, clone):
        """Fork the buffer of a Storage that the engine cloned; other devices copy on their own."""
        if source.device != "cpu":
            return
        buffer = self.known.get(source)
        if buffer is None:
            buffer = self.known[source] = self.part(ndarray(source))
        fork = self.part_of("fork", buffer)()
        if not isinstance(fork, self.cls):
            self.part.refuse(f"{self.cls.__name__} from fork()", type(fork).__name__)
        self.known[clone] = fork

    def part_of(self, method, buffer) -> Callable:
        """Return a method as a Part, so that errors name it."""
        return Part(f"storage ({self.cls.__name__}.{method})", getattr(buffer, method))

    def write(self, storage, copy_buffer):
        """Prepare a Storage for a write; return True if the learner's class did so."""
        buffer = self.known.get(storage)
        if buffer is None:
            return False
        write, old = self.part_of("write", buffer), storage.buffer
        values = write()
        here = ndarray(storage)
        if not isinstance(values, np.ndarray) or values.shape != here.shape:
            write.refuse(f"an array of shape {here.shape}", getattr(values, "shape", type(values)))
        if values.dtype != here.dtype or not values.flags.c_contiguous:
            write.refuse(f"a contiguous array of {here.dtype}", f"{values.dtype}")
        if not values.flags.writeable:
            write.refuse("an array that can be written to", "a read-only one")
        if values.ctypes.data == here.ctypes.data:
            if old.owners > 1:
                write.refuse(
                    "a copy, as a clone still shows these bytes", "the shared array itself"
                )
            return True
        if not np.array_equal(values, here, equal_nan=True):
            write.refuse("a copy of the same values", "other values")
        _put(storage, values)
        return True


@uninterrupted
def _put(storage, values):
    """Replace the memory of a Storage by an ndarray."""
    old, flat = storage.buffer, values.reshape(-1).view(np.uint8)
    new = old.pool.adopt(flat, values.ctypes.data, values.nbytes)
    new.is_foreign = False  # only the engine writes there
    storage.buffer = new
    old.owners -= 1
    if not old.owners:
        old.pool.release(old)
