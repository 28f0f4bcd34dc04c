"""The device table on an NVIDIA GPU.

The device table, its kernels and their launches are those of `simt`. Only the differences are here:
a Pool holds GPU memory, copies go through pinned memory, kernels are compiled to cubins. Work is
queued on one stream and done later, in order; reading a value waits for it.
"""

import numpy as np

from minigrad.array.dtypes import WORDS
from minigrad.devices.gpu.device import Gpu
from minigrad.devices.gpu.driver import cubins as cuda_cubins
from minigrad.devices.gpu.driver.exchange import Exchange
from minigrad.devices.gpu.driver.matmul import LibraryMatmul
from minigrad.devices.gpu.driver.transfer import Transfer
from minigrad.memory.monitor import register_pool
from minigrad.memory.pool import Pool

# Converters of a launch's numbers; others are ints.
CONVERT = {w: t for w, t in WORDS.items() if issubclass(t, np.floating)} | {"f8": float}


class Cuda(Exchange, LibraryMatmul, Gpu):
    """The device table on a GPU.

    driver: a `driver.Driver`, or an object with its methods.
    """

    name = "cuda"

    def __init__(self, driver):
        self.driver, self.capability = driver, driver.capability
        self.has_tensor_cores = self.capability >= (8, 0)
        self.transfer = Transfer(driver)
        self.pool = Pool(self.name, driver.allocate, memset=driver.fill)
        self._loaded = {}  # GpuKernel -> (the driver's kernel, converters)
        register_pool(self.pool)

    # -- kernels ---------------------------------------------------------------------------------

    def launch(self, kernel, blocks, threads, operands, shared=0):
        function, converters = self._loaded.get(kernel) or self.load(kernel)
        arguments = [c(x) for c, x in zip(converters, operands, strict=True)]
        self.driver.launch(function, blocks, threads, shared, arguments)

    def load(self, kernel):
        """Compile and load a GpuKernel, before its first launch."""
        if kernel in self._loaded:
            return self._loaded[kernel]
        cubin = cuda_cubins.cubin(kernel, self.capability)
        words = kernel.signature.split()
        converters = [self._pointer if w.endswith("*") else CONVERT.get(w, int) for w in words]
        self._loaded[kernel] = loaded = self.driver.load(cubin), converters
        return loaded

    def _pointer(self, x):
        """Return the address of an Array's first element; an int is an address already, 0: none."""
        if type(x) is int:
            return x
        if x.buffer.pool is not self.pool:
            self.check_here(x)
        return x.address

    def synchronize(self):
        """Wait until all work of the GPU is done; raise the errors of kernels."""
        self.driver.synchronize()

    # -- bytes -----------------------------------------------------------------------------------

    def upload(self, data, buffer):
        self.transfer.upload(data, buffer.address)

    def download(self, buffer, first, count):
        return self.transfer.download(buffer.address + first, count)

    def copy_bytes(self, source, target, count):
        self.driver.between(target, source, count)
