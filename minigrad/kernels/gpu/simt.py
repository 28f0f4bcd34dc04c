"""The device `simt`: every kernel of the GPU, run by the simulator, over memory of the host."""

import numpy as np

from minigrad.kernels import backend
from minigrad.kernels.gpu.device import Gpu
from minigrad.memory.buffer import ALIGNMENT
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool


def _allocate(nbytes):
    try:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    except (ValueError, OverflowError) as error:  # more than an address can count
        raise MemoryError from error
    start = -memory.ctypes.data % ALIGNMENT
    memory = memory[start : start + nbytes]
    return memory, memory.ctypes.data


def bytes_of(buffer, count=None):
    """The bytes of a Buffer as an ndarray that shows them."""
    start = buffer.address - buffer.segment.address
    return buffer.segment.owner[start : start + (buffer.requested if count is None else count)]


class Simt(Gpu):
    """A GPU that is simulated: see `minigrad.simt`."""

    name = "simt"

    def __init__(self):
        self.pool = Pool("simt", _allocate)
        register_pool(self.pool)

    def upload(self, data, buffer):
        """Writes flat bytes to the beginning of a Buffer."""
        bytes_of(buffer)[: data.size] = data

    def download(self, buffer, first, count):
        """Bytes of a Buffer: an ndarray of its own."""
        return bytes_of(buffer)[first : first + count].copy()

    def copy_bytes(self, source, target, count):
        """Copies the first bytes of a Buffer to another one."""
        bytes_of(target)[:count] = bytes_of(source)[:count]


device = Simt()
backend.register(device)
