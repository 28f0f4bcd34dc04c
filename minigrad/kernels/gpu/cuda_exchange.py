"""Memory of the GPU shared with other libraries: DLPack and `__cuda_array_interface__`, both ways.

Both sides keep their own streams. Whoever takes an array over has its stream wait for what the
other's was asked to do before; later writes are for the caller to order.
"""

from typing import Any

from minigrad.array.array import Array
from minigrad.array.dtypes import BY_NUMPY
from minigrad.array.layout import is_contiguous, size_of
from minigrad.errors import ArgumentTypeError, DTypeError

LEGACY_STREAM = 1  # what DLPack and the interface call the default stream
KDLCUDA = 2


class Lent:
    """What another library holds on to: the Storage stays alive, its Buffer pinned, until it goes.

    The other side may write: autograd copies such values whenever it saves them.
    """

    def __init__(self, array):
        array.mark_foreign()
        self.array, self.buffer = array.storage, array.buffer
        self.buffer.pins += 1

    def __del__(self):
        self.buffer.pins -= 1
        if not self.buffer.pins and self.buffer.home is not None:
            self.buffer.is_foreign = self.buffer.home.is_outside


class Exchange:
    """A part of the device table: Arrays of the GPU for others, and others' as Arrays."""

    driver: Any
    pool: Any
    convert: Any
    prepare_write: Any

    def cuda_array_interface(self, array):
        """The dict of `__cuda_array_interface__`, version 3; the caller keeps the Array alive.

        The memory counts as foreign from now on, since nothing tells when the other side is done.
        """
        self.prepare_write(array)  # counts as one: autograd cannot see theirs
        array.mark_foreign()
        array.buffer.pins += 1  # for good: there is nobody to say that the pointer is gone
        step = array.dtype.itemsize
        return {
            "version": 3,
            "shape": tuple(array.shape),
            "typestr": array.dtype.numpy.str,
            "strides": tuple(s * step for s in array.strides),
            "data": (array.address if array.size else 0, False),
            "stream": int(self.driver.stream.handle),
        }

    def dlpack_device(self):
        """(kind, number) of the device in DLPack's words."""
        return KDLCUDA, self.driver.number

    def dlpack(self, array, stream=None, **options):
        """A capsule of the Array's memory.

        stream: the other side's, as a number; None is the default stream, -1: do not wait.
        """
        self.prepare_write(array)  # as above
        if any(step < 0 for step in array.strides):  # which DLPack has, and most libraries lack
            array = self.convert(array, array.dtype)
        view = self.driver.view(Lent(array), array)
        if stream != -1:
            self.driver.let_wait(LEGACY_STREAM if stream is None else stream)
        return view.__dlpack__(stream=-1, **options)

    def adopt_view(self, data):
        """An Array over the memory of an object that speaks either protocol, shared with it.

        Raises:
            DTypeError: an element type that minigrad lacks.
            ArgumentTypeError: memory that is not the GPU's, or not in C order.
        """
        view = self.driver.view_of(data)
        kind = type(data).__name__
        if not view.is_device_accessible or view.device_id != self.driver.number:
            raise ArgumentTypeError("wanted an array on the GPU that minigrad uses", kind)
        if view.readonly:
            raise ArgumentTypeError("wanted an array that may be written", kind, "copy it first")
        dtype = BY_NUMPY.get(view.dtype)
        if dtype is None:
            raise DTypeError("wanted an element type that minigrad has", f"{view.dtype} of {kind}")
        shape = tuple(view.shape)
        if view.strides is not None and not is_contiguous(shape, view.strides):
            raise ArgumentTypeError(
                "wanted an array in C order, without gaps",
                f"{kind} of shape {shape} with strides {tuple(view.strides)}",
                "make it contiguous first, such as t.contiguous() of PyTorch",
            )
        buffer = self.pool.adopt((view, data), view.ptr, size_of(shape) * dtype.itemsize)
        out = Array(buffer, shape, dtype)
        out.is_flat = False
        return out
