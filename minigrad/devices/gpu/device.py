"""A real or simulated GPU: the device table, written once over launches and copies of bytes."""

import numpy as np

from minigrad.devices.gpu.elementwise.programs import GpuPrograms
from minigrad.devices.gpu.product.convolution import Convolution
from minigrad.devices.gpu.product.matmul import Matmul
from minigrad.devices.gpu.structural import StructuralKernels
from minigrad.devices.gpu.updates import Updates
from minigrad.devices.narrow import computes_wide
from minigrad.devices.own_pool import OwnPool
from minigrad.errors import DeviceError
from minigrad.memory.interrupts import uninterrupted


@computes_wide
class Gpu(OwnPool, GpuPrograms, Matmul, Convolution, StructuralKernels, Updates):
    """The device table (see `table.Device`) of devices that run CUDA kernels.

    A subclass provides memory (`pool`; methods to write, read and copy it) and runs kernels
    (`launch`).
    """

    # -- memory ----------------------------------------------------------------------------------

    @uninterrupted
    def copy_buffer(self, old):
        new = self.pool.take(old.requested)
        self.copy_bytes(old.address, new.address, old.requested)
        return new

    # -- from and to the host --------------------------------------------------------------------

    def from_numpy(self, data, dtype):
        """Return a new Array with a copy of an ndarray."""
        out = self.empty(data.shape, dtype)
        if data.size:
            whole = np.ascontiguousarray(dtype.cells(data))
            self.upload(whole.reshape(-1).view(np.uint8), out.buffer)
        return out

    def to_numpy(self, x):
        """Return a copy of the elements as an ndarray on the host."""
        self.check_here(x)
        step = x.dtype.itemsize
        first, last = (address - x.buffer.address for address in x.bytes_shown())
        if first == last:
            return np.empty(x.shape, x.dtype.memory)
        data = self.download(x.buffer, first, last - first)
        strides = tuple(s * step for s in x.strides)
        return np.ndarray(x.shape, x.dtype.memory, data, x.offset * step - first, strides)

    def dlpack(self, x, **kwargs):
        """Return a DLPack capsule of an Array's memory; raise if other libraries cannot read it."""
        raise self.not_outside(x)

    def dlpack_device(self):
        """Return DLPack's (kind, number) of this device."""
        raise self.not_outside()

    def not_outside(self, x=None):
        """Return the error for memory that no other library can read."""
        return DeviceError(
            f"other libraries cannot read memory of {self.name}",
            None if x is None else f"{x.dtype}{list(x.shape)} on {x.device}",
            "export a copy: x.to('cpu')",
        )
