"""Serves devices whose memory is the host's: Python reads and writes it as ndarrays."""

from minigrad.array.array import ndarray
from minigrad.devices.table import Device
from minigrad.memory.host import of_the_host
from minigrad.memory.interrupts import uninterrupted
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool


class HostMemory(Device):
    """The device table's functions (see `table.Device`) for memory that NumPy shows."""

    is_host = True

    def __init__(self):
        self.pool = Pool(self.name, of_the_host)
        register_pool(self.pool)

    @uninterrupted
    def copy_buffer(self, old):
        new = self.pool.take(old.requested)
        start = old.address - old.segment.address
        target = new.address - new.segment.address
        size = old.requested
        new.segment.owner[target : target + size] = old.segment.owner[start : start + size]
        return new

    def from_numpy(self, data, dtype):
        """Return a new Array with a copy of an ndarray."""
        out = self.empty(data.shape, dtype)
        ndarray(out)[...] = dtype.cells(data) if dtype.is_narrow else data
        return out

    def to_numpy(self, x):
        return ndarray(x).copy()

    def copy_flat(self, source, target):
        """Copy a contiguous Array to another of the same dtype and size."""
        ndarray(target)[...] = ndarray(source).reshape(target.shape)
