"""The device `simt`: every kernel of the GPU, run by the simulator, over memory of the host."""

import os

import numpy as np

from minigrad import simt
from minigrad.array.array import Array
from minigrad.devices import backend
from minigrad.devices.gpu.device import Gpu
from minigrad.memory.host import of_the_host
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool
from minigrad.simt.machine.addresses import bytes_at


def bytes_of(buffer, count=None):
    """The bytes of a Buffer as an ndarray that shows them."""
    start = buffer.address - buffer.segment.address
    return buffer.segment.owner[start : start + (buffer.requested if count is None else count)]


TYPES = {
    "f4": np.float32, "f8": np.float64, "i4": np.int32, "i8": np.int64, "u1": np.uint8,
    "u4": np.uint32,
}  # fmt: skip


def alone(buffer):
    """The bytes that were asked for of a Buffer: what lies beside them is out of bounds.

    An ndarray that is a view of none: the simulator takes the whole that a view is of.
    """
    return bytes_at(buffer.address, buffer.requested)


class Simt(Gpu):
    """A GPU that is simulated: see `minigrad.simt`.

    Attributes:
        watch: whether kernels are searched for data races and the like while they run, which takes
            several times as long. MINIGRAD_SIMT_WATCH=1 says so from the start.
    """

    name = "simt"

    def __init__(self):
        self.pool = Pool("simt", of_the_host)
        self.watch = os.environ.get("MINIGRAD_SIMT_WATCH", "") not in ("", "0")

    def launch(self, kernel, blocks, threads, operands, shared=0):
        """Runs a GpuKernel: see `Gpu.launch`."""
        buffers, arguments = {}, []
        for word, x in zip(kernel.signature.split(), operands, strict=True):
            kind = TYPES[word.rstrip("*")]
            if not isinstance(x, Array):
                arguments.append(kind(x))
                continue
            self.check_here(x)
            data = buffers.get(id(x.buffer))
            if data is None:
                data = buffers[id(x.buffer)] = alone(x.buffer)
            arguments.append(simt.Pointer(data, kind, x.offset * x.dtype.itemsize))
        simt.launch(kernel.simulated(), blocks, threads, arguments, shared, self.watch)

    def upload(self, data, buffer):
        """Writes flat bytes to the beginning of a Buffer."""
        bytes_of(buffer)[: data.size] = data

    def download(self, buffer, first, count):
        """Bytes of a Buffer: an ndarray of its own."""
        return bytes_of(buffer)[first : first + count].copy()

    def copy_bytes(self, source, target, count):
        """Copies the first bytes of a Buffer to another one."""
        bytes_of(target)[:count] = bytes_of(source)[:count]

    def copy_flat(self, source, target):
        """Copies a contiguous Array to another one of its dtype and size."""
        place = {x: x.address - x.buffer.address for x in (source, target)}
        part = {x: bytes_of(x.buffer)[at : at + x.nbytes] for x, at in place.items()}
        part[target][...] = part[source]


device = Simt()
register_pool(device.pool)
backend.register(device)
