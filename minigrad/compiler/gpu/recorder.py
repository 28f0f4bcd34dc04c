"""Records launches on a stand-in device instead of running them."""

import functools
from typing import Any, NamedTuple

from minigrad.array.array import Array
from minigrad.array.layout import size_of


class RecordedLaunch(NamedTuple):
    """One launch: the arguments of `Gpu.launch`."""

    kernel: Any
    blocks: Any
    threads: Any
    operands: tuple
    shared: int
    uses_library = False

    def run(self, device):
        device.launch(*self)

    def prepare(self, device):
        """Compile and load the kernel, which must not happen while a graph is recorded."""
        device.load(self.kernel)


class LibraryProduct(NamedTuple):
    """One product by cuBLAS: the arguments of `Cublas.multiply`."""

    arguments: tuple
    name, kernel = "cuBLAS", None
    uses_library = True

    def run(self, device):
        library = getattr(device.driver.here, "library", None) or device.cublas
        library.multiply(*self.arguments)

    def prepare(self, device):
        """Do nothing."""


class RecordedCall(NamedTuple):
    """One call of the device table, of a device without kernels."""

    name: str
    operands: tuple
    kernel = None

    def run(self, device):
        getattr(device, self.name)(*self.operands)


class CallRecorder:
    """The table of a device without kernels, which records calls. launches: in order."""

    has_kernels, scratch_bytes = False, 0

    def __init__(self):
        self.launches = []

    def next_call(self):
        """Do nothing, as calls of the table need no scratch memory."""

    def __getattr__(self, name):
        return lambda *operands: self.launches.append(RecordedCall(name, operands))


class LaunchRecorder:
    """A mixin for a device class that records launches.

    launches: in order. Memory that the device's functions allocate is scratch: it belongs to the
    program, and successive calls (`next_call`) share it.
    """

    launches: list
    _kept: list
    _free: list
    _real: Any

    def launch(self, kernel, blocks, threads, operands, shared=0):
        self.launches.append(RecordedLaunch(kernel, blocks, threads, tuple(operands), shared))

    def empty(self, shape, dtype):
        """Allocate scratch memory: a contiguous Array."""
        need = size_of(shape) * dtype.itemsize
        fitting = [buffer for buffer in self._free if buffer.nbytes >= need]
        if fitting:
            buffer = min(fitting, key=lambda b: b.nbytes)
            self._free.remove(buffer)
            buffer.owners += 1
            buffer.requested = max(buffer.requested, need)  # the simulator checks it
            out = Array(buffer, shape, dtype)
            out.is_flat = False
            return out
        out = self._real.empty(shape, dtype)
        self._kept.append(out)
        return out

    @property
    def cublas(self):
        """Return the recorder itself, which also records library products."""
        return self

    def multiply(self, *arguments):
        """Record a call of `Cublas.multiply`."""
        self.launches.append(LibraryProduct(arguments))

    def next_call(self):
        """Free all scratch for the next call: later launches run after earlier ones."""
        self._free = [out.buffer for out in self._kept]

    @property
    def scratch_bytes(self):
        return sum(out.buffer.nbytes for out in self._kept)

    def _refuse(self, *arguments):
        raise AssertionError("a function of the device table asks for elements while recorded")

    upload = download = copy_bytes = _refuse


@functools.cache  # a class is a reference cycle
def _recording(kind):
    return type(f"Recorded{kind.__name__}", (LaunchRecorder, kind), {})


def recorder_of(device) -> Any:
    """Return a copy of a device that records its launches, or its calls if it launches nothing."""
    if not device.has_kernels:
        return CallRecorder()
    out = object.__new__(_recording(type(device)))
    out.__dict__.update(device.__dict__)
    out.launches, out._kept, out._free, out._real = [], [], [], device
    return out
