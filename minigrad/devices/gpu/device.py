"""A real or simulated GPU: the device table, written once over launches and copies of bytes."""

import numpy as np

from minigrad.array.array import Array, View, fork
from minigrad.array.dtypes import bool_
from minigrad.array.layout import MAX_SIZE, check_size, size_of
from minigrad.devices.gpu.elementwise.programs import GpuPrograms
from minigrad.devices.gpu.product.convolution import Convolution
from minigrad.devices.gpu.product.matmul import Matmul
from minigrad.devices.gpu.structural import StructuralKernels
from minigrad.devices.gpu.updates import Updates
from minigrad.errors import DeviceError
from minigrad.formulas.expression import Program, call, logical_and, symbol
from minigrad.memory.interrupts import uninterrupted

_x, _low, _high = map(symbol, ("x", "low", "high"))
WITHIN = Program(
    ["x", "low", "high"],
    [logical_and(call("less_equal", _low, _x), call("less_equal", _x, _high))],
)


class Gpu(GpuPrograms, Matmul, Convolution, StructuralKernels, Updates):
    """The device table (see `table.Device`) of devices that run CUDA kernels.

    A subclass provides memory (`pool`; methods to write, read and copy it) and runs kernels
    (`launch`). Its Arrays are never `is_flat`: the fast paths of ops call CPU code.
    """

    # -- memory ----------------------------------------------------------------------------------

    @uninterrupted
    def empty(self, shape, dtype):
        size = size_of(shape)
        if size >= MAX_SIZE:
            check_size(shape)
        out = Array(self.pool.take(size * dtype.itemsize), shape, dtype)
        out.is_flat = False
        return out

    def check_here(self, x):
        """Raise DeviceError if an Array's memory belongs to another device."""
        if x.buffer.pool is not self.pool:
            raise DeviceError(
                f"wanted arrays on {self.name}, the device that computes",
                f"{x.dtype}{list(x.shape)} on {x.device}",
                f"move it: x.to({self.name!r})",
            )

    @uninterrupted
    def copy_buffer(self, old):
        new = self.pool.take(old.requested)
        self.copy_bytes(old.address, new.address, old.requested)
        return new

    def share(self, x):
        """Copy views, and pinned or foreign Arrays, at once; fork others."""
        buffer = x.buffer
        if buffer.pins or buffer.is_foreign or type(x) is View:
            return self.convert(x, x.dtype)
        self.check_here(x)
        return fork(x)

    # -- from and to the host --------------------------------------------------------------------

    def from_numpy(self, data, dtype):
        """Return a new Array with a copy of an ndarray."""
        out = self.empty(data.shape, dtype)
        if data.size:
            whole = np.ascontiguousarray(data.astype(dtype.numpy, copy=False))
            self.upload(whole.reshape(-1).view(np.uint8), out.buffer)
        return out

    def to_numpy(self, x):
        """Return a copy of the elements as an ndarray on the host."""
        self.check_here(x)
        step = x.dtype.itemsize
        first, last = (address - x.buffer.address for address in x.bytes_shown())
        if first == last:
            return np.empty(x.shape, x.dtype.numpy)
        data = self.download(x.buffer, first, last - first)
        strides = tuple(s * step for s in x.strides)
        return np.ndarray(x.shape, x.dtype.numpy, data, x.offset * step - first, strides)

    def item(self, x):
        """Return the one element as a Python number."""
        return self.to_numpy(x).item()

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

    # -- what the kernels do ---------------------------------------------------------------------

    def all_within(self, x, low, high, wanted=None):
        """Return whether every element of an integer Array is in [low, high].

        wanted: what a compiled step's error says if one is not.
        """
        if not x.size:
            return True
        out, axes = self.empty((), bool_), tuple(range(len(x.shape)))
        self.reduce(WITHIN, "all", (x, int(low), int(high)), out, x.shape, axes)
        return bool(self.item(out))

    def side_by_side(self, function, count, work):
        """Call function(0, 0, count): kernels are already parallel."""
        function(0, 0, count)

    def parts(self, count, work):
        return 1
