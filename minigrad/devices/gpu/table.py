"""Declares the methods that a device with CUDA kernels must provide for the device table."""

import abc

import numpy as np

from minigrad.devices.table import Device


class GpuTable(Device, abc.ABC):
    """A device table over launches and copies of bytes."""

    @abc.abstractmethod
    def launch(self, kernel, blocks, threads, operands, shared=0):
        """Run a GpuKernel.

        Args:
            kernel: a GpuKernel.
            blocks, threads: ints, or tuples of up to three.
            operands: in the order of its signature: Arrays of this device (a pointer to their first
                element), ints and floats.
            shared: bytes of dynamic shared memory.
        """

    @abc.abstractmethod
    def upload(self, data, buffer):
        """Write flat bytes, an ndarray of uint8, to the beginning of a Buffer."""

    @abc.abstractmethod
    def download(self, buffer, first, count):
        """Return a copy of `count` bytes of a Buffer from byte `first` on: an ndarray of uint8."""

    @abc.abstractmethod
    def copy_bytes(self, source, target, count):
        """Copy bytes from one address to another."""

    def copy_flat(self, source, target):
        """Copy a contiguous Array to another of the same dtype and size."""
        if source.nbytes:
            self.copy_bytes(source.address, target.address, source.nbytes)

    @abc.abstractmethod
    def to_numpy(self, x) -> np.ndarray:
        """Return a copy of the elements as an ndarray on the host."""
