"""Implements the CPU: generated Numba kernels over addresses, memory from a Pool, BLAS."""

import numpy as np

from minigrad.array.array import Array, fork, fresh, ndarray
from minigrad.array.dtypes import int64
from minigrad.array.layout import MAX_SIZE, check_size, size_of
from minigrad.devices import backend
from minigrad.devices.cpu import blas
from minigrad.devices.cpu.programs import Programs
from minigrad.devices.cpu.structural import StructuralKernels
from minigrad.devices.host import HostMemory
from minigrad.devices.narrow import computes_wide
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


@computes_wide
class Cpu(HostMemory, Programs, StructuralKernels):
    """The device table (see `table.Device`) on the CPU."""

    name = "cpu"

    @uninterrupted
    def empty(self, shape, dtype):
        size = size_of(shape)
        if size >= MAX_SIZE:
            check_size(shape)
        return fresh(self.pool.take(size * dtype.itemsize), shape, dtype, size)

    def matmul(self, a, b, out, bias=None, accumulate=False):
        if out.dtype.is_float:
            blas.matmul(a, b, out, bias, self.contiguous, accumulate)
            return
        wide = [self.convert(x, int64) for x in (a, b)]
        result = self.convert(out, int64) if out.dtype is not int64 else out
        np.matmul(*map(ndarray, wide), out=ndarray(result))
        if bias is not None:
            product = ndarray(result)
            product += ndarray(bias)
        if result is not out:
            self.copy(result, out)

    def share(self, x):
        """Copy pinned Arrays, and views of under half their Buffer, at once; fork others."""
        buffer = x.buffer
        if buffer.pins or 2 * x.nbytes < buffer.requested or not x.is_flat:
            return self.convert(x, x.dtype)
        return fork(x)

    @uninterrupted
    def adopt(self, data, dtype):
        """Return an Array that shares the memory of an ndarray in C order."""
        flat = data.reshape(-1).view(np.uint8)
        buffer = self.pool.adopt(flat, data.__array_interface__["data"][0], data.nbytes)
        out = Array(buffer, data.shape, dtype)
        out.is_flat = False  # fast paths of ops do not check is_foreign
        return out

    def item(self, x):
        """Return the one element as a Python number."""
        seams.effects.read(x)
        segment = x.buffer.segment
        start = x.address - segment.address
        cell = np.ndarray((), x.dtype.memory, segment.owner, start)
        return (x.dtype.numbers(cell) if x.dtype.is_coded else cell).item()


cpu = Cpu()
backend.register(cpu)
