"""The device table on an NVIDIA GPU.

The device table, its kernels and how they are launched are those of `simt`. Here is what differs:
memory of the GPU in our Pool, copies through pinned memory, kernels compiled to cubins. Everything
is asked for and done later, in order, on one stream; reading a value waits for it.
"""

import numpy as np

from minigrad.devices.gpu.device import Gpu
from minigrad.devices.gpu.driver import cubins as cuda_cubins
from minigrad.devices.gpu.driver.exchange import Exchange
from minigrad.devices.gpu.driver.matmul import LibraryMatmul
from minigrad.devices.gpu.driver.transfer import Transfer
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool

CONVERT = {"f4": np.float32, "f8": float}  # of a number, before it is launched; else int


class Cuda(Exchange, LibraryMatmul, Gpu):
    """The device table on a GPU.

    driver: what offers the calls of `driver.Driver`.
    """

    name = "cuda"

    def __init__(self, driver):
        self.driver, self.capability = driver, driver.capability
        self.transfer = Transfer(driver)
        self.pool = Pool(self.name, driver.allocate, memset=driver.fill)
        self._loaded = {}  # GpuKernel -> (what the driver launches, converters)
        register_pool(self.pool)

    # -- kernels ---------------------------------------------------------------------------------

    def launch(self, kernel, blocks, threads, operands, shared=0):
        function, converters = self._loaded.get(kernel) or self.load(kernel)
        arguments = [c(x) for c, x in zip(converters, operands, strict=True)]
        self.driver.launch(function, blocks, threads, shared, arguments)

    def load(self, kernel):
        """Compiles a GpuKernel and hands it to the driver, before its first launch."""
        if kernel in self._loaded:
            return self._loaded[kernel]
        cubin = cuda_cubins.cubin(kernel, self.capability)
        words = kernel.signature.split()
        converters = [self._pointer if w.endswith("*") else CONVERT.get(w, int) for w in words]
        self._loaded[kernel] = found = self.driver.load(cubin), converters
        return found

    def _pointer(self, x):
        """The address of an Array's first element; an int is one already: 0 is no memory."""
        if type(x) is int:
            return x
        if x.buffer.pool is not self.pool:
            self.check_here(x)
        return x.address

    def synchronize(self):
        """Waits until all that was asked of the GPU is done; faults of kernels show here."""
        self.driver.synchronize()

    # -- bytes -----------------------------------------------------------------------------------

    def upload(self, data, buffer):
        self.transfer.upload(data, buffer.address)

    def download(self, buffer, first, count):
        return self.transfer.download(buffer.address + first, count)

    def copy_bytes(self, source, target, count):
        self.driver.between(target, source, count)
