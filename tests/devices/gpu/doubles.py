"""A driver without a GPU: memory of the host, kernels by the simulator, a stream that is checked.

What is asked of it happens when somebody waits, so that memory which is written or given back too
early holds wrong bytes, as on a GPU.
"""

import contextlib
import ctypes
import threading
from types import SimpleNamespace

import numpy as np

import minigrad as mg
from minigrad import simt
from minigrad.array.dtypes import WORDS
from minigrad.devices import backend
from minigrad.devices.gpu.driver import cubins as cuda_cubins
from minigrad.devices.gpu.driver import device as cuda_device
from minigrad.memory import monitor


class Event:
    def __init__(self, driver):
        self.driver, self.upto = driver, len(driver.queue)

    def sync(self):
        self.driver.run(self.upto)


class DoubleDriver:
    """What `cuda_driver.Driver` offers, over memory of the host."""

    number, capability = 0, (9, 0)

    def __init__(self, limit=1 << 30):
        self.blocks = {}  # address -> bytes
        self.limit, self.used = limit, 0
        self.queue, self.done = [], 0
        self.others, self.others_done = [], 0  # what another library asked its default stream
        self.launches = []
        self.entered = set()  # threads whose GPU it is
        self.stream = SimpleNamespace(handle=77)

    # -- the stream: functions, run in order when somebody waits

    def ask(self, function):
        self.queue.append(function)

    def run(self, upto):
        while self.done < upto:
            self.queue[self.done]()
            self.done += 1

    def record(self, is_timed=False):
        return Event(self)

    def wait(self, event):
        event.sync()

    def synchronize(self):
        self.run(len(self.queue))

    def ready(self):
        self.entered.add(threading.get_ident())

    # -- the default stream, another library's

    def run_others(self, upto=None):
        upto = len(self.others) if upto is None else upto
        while self.others_done < upto:
            self.others_done += 1
            self.others[self.others_done - 1]()

    def let_wait(self, other):
        assert other == 1
        upto = len(self.queue)
        self.others.append(lambda: self.run(upto))

    def wait_for(self, other):
        assert other == 1
        upto = len(self.others)
        self.ask(lambda: self.run_others(upto))

    # -- memory

    def allocate(self, nbytes):
        if self.used + nbytes > self.limit:
            raise MemoryError
        data = np.full(nbytes, 0xA5, np.uint8)
        address = data.ctypes.data
        self.blocks[address] = data
        self.used += nbytes
        return Owner(self, address, nbytes), address

    def pinned(self, nbytes):
        data = np.zeros(nbytes, np.uint8)
        return data, data.ctypes.data, data

    def find(self, address):
        """(the block, the place in it) of an address of the GPU."""
        for start, data in self.blocks.items():
            if start <= address < start + max(data.size, 1):
                return data, address - start
        raise AssertionError(f"{address:#x} is no memory of the GPU")

    def _inside(self, address, nbytes):
        data, start = self.find(address)
        assert start + nbytes <= data.size

    def to_device(self, target, source, nbytes):
        self._inside(target, nbytes)
        self.ask(lambda: ctypes.memmove(target, source, nbytes))

    def to_host(self, target, source, nbytes):
        self._inside(source, nbytes)
        self.ask(lambda: ctypes.memmove(target, source, nbytes))

    def between(self, target, source, nbytes):
        self._inside(target, nbytes)
        self._inside(source, nbytes)
        self.ask(lambda: ctypes.memmove(target, source, nbytes))

    def fill(self, address, byte, nbytes):
        self._inside(address, nbytes)
        self.ask(lambda: ctypes.memset(address, byte, nbytes))

    # -- kernels

    def load(self, kernel):
        return kernel

    def launch(self, kernel, blocks, threads, shared, arguments):
        self.launches.append(kernel)
        self.ask(lambda: self._launch(kernel, blocks, threads, shared, arguments))

    def _launch(self, kernel, blocks, threads, shared, arguments):
        converted = []
        for word, x in zip(kernel.signature.split(), arguments, strict=True):
            if word.endswith("*"):
                assert type(x) is int
                converted.append(simt.Pointer(*self._typed(x, WORDS[word[:-1]])))
            else:
                expected = {"f4": np.float32, "f8": float}.get(word, int)
                assert type(x) is expected, (word, type(x))
                converted.append(WORDS[word](x))
        simt.launch(kernel.simulated(), blocks, threads, converted, shared, False)

    def _typed(self, address, kind):
        data, start = self.find(address)
        return data, kind, start


class Owner:
    """Gives memory back when it is dropped, in the order of the stream."""

    def __init__(self, driver, address, nbytes):
        self.driver, self.address, self.nbytes = driver, address, nbytes

    def __del__(self):
        driver, address = self.driver, self.address
        driver.used -= self.nbytes
        driver.ask(lambda: driver.blocks.pop(address))


class FakeCublas:
    """Column-major products over addresses, as cuBLAS defines them."""

    def __init__(self, device):
        self.device, self.calls = device, 0

    def create(self):
        return 1

    def set_stream(self, handle, stream):
        assert stream == self.device.driver.stream.handle

    def _product(
        self, kind, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count
    ):
        size = np.dtype(kind).itemsize
        number = {4: ctypes.c_float, 8: ctypes.c_double}[size]
        alpha, beta = (number.from_address(at).value for at in (alpha, beta))

        def matrix(at, rows, columns, ld):
            data, start = self.device.driver.find(at)
            strides = (size, ld * size)
            return np.ndarray((rows, columns), kind, data, start, strides)

        def work():
            for i in range(count):
                left = matrix(a + i * sa * size, *((k, m) if ta else (m, k)), lda)
                right = matrix(b + i * sb * size, *((n, k) if tb else (k, n)), ldb)
                target = matrix(c + i * sc * size, m, n, ldc)
                product = (left.T if ta else left) @ (right.T if tb else right)
                target[...] = alpha * product + (beta * target if beta else 0)

        assert threading.get_ident() in self.device.driver.entered
        self.calls += 1
        self.device.driver.ask(work)

    def sgemm_strided_batched(self, handle, *arguments):
        self._product(np.float32, *arguments)

    def dgemm_strided_batched(self, handle, *arguments):
        self._product(np.float64, *arguments)


@contextlib.contextmanager
def doubled(**options):
    """The device `cuda` over a DoubleDriver, while the block lasts."""
    driver = DoubleDriver(**options)
    cubin_before, cuda_cubins.cubin = cuda_cubins.cubin, lambda kernel, capability: kernel
    pool = monitor.pools.get("cuda")
    before = backend._devices.get("cuda")
    try:
        device = cuda_device.Cuda(driver)
        backend.register(device)
        yield device
    finally:
        cuda_cubins.cubin = cubin_before
        backend._devices.pop("cuda", None)
        if before is not None:
            backend.register(before)
        monitor.pools.pop("cuda", None)
        if pool is not None:
            monitor.pools["cuda"] = pool


def there(values, **options):
    """A Variable on the double: arguments as of mg.variable."""
    return mg.variable(values, **options).to("cuda")
