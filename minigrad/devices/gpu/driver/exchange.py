"""GPU memory shared with other libraries, both ways: DLPack and `__cuda_array_interface__`.

Each side keeps its own stream. The side that takes over an array makes its stream wait for the work
queued on the other's. The caller orders what both do to it later, as with all libraries. Memory
that DLPack releases may be used again, so there we wait once more, which the protocol does not
do:

- Lent memory comes back: our stream waits for the one that the other library named; if that is not
  the default stream, the host waits for the whole GPU. With -1 (no waiting) neither does.
- We release borrowed memory: the owner's default stream waits for ours. Users of another stream
  call `mg.cuda.synchronize()` before they drop the last Variable over such memory.
"""

import contextlib
import weakref
from typing import Any

from minigrad.array.array import Array
from minigrad.array.bits import as_bfloats
from minigrad.array.dtypes import of_numpy
from minigrad.array.layout import is_contiguous, size_of
from minigrad.devices.gpu.driver.driver import LEGACY_STREAM
from minigrad.devices.gpu.table import GpuTable
from minigrad.errors import ArgumentTypeError, DTypeError, GpuError
from minigrad.memory.buffer import unpin
from minigrad.memory.interrupts import uninterrupted

NO_WAITING = -1
KDLCUDA = 2


class Lent:
    """Keeps the Storage alive and its Buffer pinned while another library holds this.

    The other side may write, so autograd copies such values whenever it saves them. stream: the
    other side's stream, as a number.
    """

    @uninterrupted
    def __init__(self, driver, array, stream):
        array.mark_foreign()
        self.driver, self.stream = driver, stream
        self.array, self.buffer = array.storage, array.buffer
        self.buffer.pins += 1

    @uninterrupted
    def __del__(self):
        if self.stream != NO_WAITING:
            with contextlib.suppress(
                GpuError
            ):  # it is lost, or a fork's: there is nothing to order
                self.driver.wait_for(self.stream)
        unpin(self.buffer)


class Borrowed:
    """Holds memory of another library until we release it."""

    def __init__(self, driver, *owners):
        self.driver, self.owners = driver, owners

    @uninterrupted
    def __del__(self):
        with contextlib.suppress(GpuError):  # as above
            self.driver.let_wait(LEGACY_STREAM)


class Exchange(GpuTable):
    """A part of the device table: lends Arrays to other libraries, adopts their arrays."""

    driver: Any  # the CUDA driver of the device

    def cuda_array_interface(self, array):
        """Return `__cuda_array_interface__`'s dict, version 3; the caller keeps the Array alive.

        The memory counts as foreign while the Array lives, since the other side does not say when
        it is done.
        """
        self.prepare_write(array)  # counts as a write: autograd cannot see the other side's
        array.mark_foreign()
        array.buffer.pins += 1  # while the Storage lives: its pointer is never given back
        weakref.finalize(array.storage, unpin, array.buffer).atexit = False
        step = array.dtype.itemsize
        return {
            "version": 3,
            "shape": tuple(array.shape),
            "typestr": array.dtype.memory.str,
            "strides": tuple(s * step for s in array.strides),
            "data": (array.address if array.size else 0, False),
            "stream": int(self.driver.stream.handle),
        }

    def dlpack_device(self):
        """Return DLPack's (kind, number) of the device."""
        return KDLCUDA, self.driver.number

    def dlpack(self, array, stream=None, **options):
        """Return a DLPack capsule of the Array's memory.

        stream: the other side's, as a number; None or 1: the default stream, -1: do not wait.
        """
        self.prepare_write(array)  # as above
        if any(step < 0 for step in array.strides):  # DLPack allows them, most libraries do not
            array = self.convert(array, array.dtype)
        stream = LEGACY_STREAM if stream is None else stream
        if stream != NO_WAITING:
            self.driver.let_wait(stream)
        view = self.driver.view(Lent(self.driver, array, stream), array)
        capsule = view.__dlpack__(stream=NO_WAITING, **options)
        return as_bfloats(capsule) if array.dtype.is_coded else capsule

    def adopt_view(self, data):
        """Return an Array that shares the memory of an object with either protocol.

        Raises:
            DTypeError: an element type that minigrad lacks.
            ArgumentTypeError: memory that is not the GPU's, or not in C order; an array of a graph.
        """
        kind = type(data).__name__
        if getattr(data, "requires_grad", False):  # PyTorch's own DLPack refuses it too
            raise ArgumentTypeError("wanted an array without a graph", kind, "t.detach()")
        view = self.driver.view_of(data)
        if not view.is_device_accessible or view.device_id != self.driver.number:
            raise ArgumentTypeError("wanted an array on the GPU that minigrad uses", kind)
        if view.readonly:
            raise ArgumentTypeError("wanted an array that may be written", kind, "copy it first")
        wanted = "wanted an element type that minigrad has"
        try:
            numpy_dtype = view.dtype
        except (NotImplementedError, TypeError) as error:  # bfloat16, and what NumPy lacks
            raise DTypeError(wanted, f"{kind}: {error}") from None
        dtype = of_numpy(numpy_dtype)
        if dtype is None:
            raise DTypeError(wanted, f"{numpy_dtype} of {kind}")
        shape = tuple(view.shape)
        if view.strides is not None and not is_contiguous(shape, view.strides):
            raise ArgumentTypeError(
                "wanted an array in C order, without gaps",
                f"{kind} of shape {shape} with strides {tuple(view.strides)}",
                "make it contiguous first, such as t.contiguous() of PyTorch",
            )
        owner = Borrowed(self.driver, view, data)
        buffer = self.pool.adopt(owner, view.ptr, size_of(shape) * dtype.itemsize)
        out = Array(buffer, shape, dtype)
        out.is_flat = False
        return out
