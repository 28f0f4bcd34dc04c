"""A device that writes its launches down: what its functions would run, and with which memory."""

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
        """Asks for it."""
        device.launch(*self)

    def prepare(self, device):
        """Compiles and loads the kernel, which is no thing to do while a graph is written."""
        device.load(self.kernel)


class LibraryProduct(NamedTuple):
    """One product by cuBLAS: the arguments of `Cublas.multiply`."""

    arguments: tuple
    kernel = None
    uses_library = True

    def run(self, device):
        """Asks for it."""
        library = getattr(device.driver.here, "library", None) or device.cublas
        library.multiply(*self.arguments)

    def prepare(self, device):
        """Nothing."""


class LaunchRecorder:
    """Mixed into the class of a device, whose functions then launch nothing.

    launches: what they would have launched, in order. Memory that they ask for is scratch: it
    belongs to the program, and calls one after the other (`next_call`) use the same.
    """

    launches: list
    _kept: list
    _free: list
    _real: Any

    def launch(self, kernel, blocks, threads, operands, shared=0):
        """Writes a launch down."""
        self.launches.append(RecordedLaunch(kernel, blocks, threads, tuple(operands), shared))

    def empty(self, shape, dtype):
        """Scratch memory: a contiguous Array."""
        need = size_of(shape) * dtype.itemsize
        fitting = [buffer for buffer in self._free if buffer.nbytes >= need]
        if fitting:
            buffer = min(fitting, key=lambda b: b.nbytes)
            self._free.remove(buffer)
            buffer.owners += 1
            buffer.requested = max(buffer.requested, need)  # the simulator looks at it
            out = Array(buffer, shape, dtype)
            out.is_flat = False
            return out
        out = self._real.empty(shape, dtype)
        self._kept.append(out)
        return out

    @property
    def cublas(self):
        """What writes products of the library down."""
        return self

    def multiply(self, *arguments):
        """As `Cublas.multiply`."""
        self.launches.append(LibraryProduct(arguments))

    def next_call(self):
        """All scratch is free again: what follows is launched after what was."""
        self._free = [out.buffer for out in self._kept]

    @property
    def scratch_bytes(self):
        """Bytes of scratch memory."""
        return sum(out.buffer.nbytes for out in self._kept)

    def _refuse(self, *arguments):
        raise AssertionError("a function of the device table asks for elements while recorded")

    upload = download = copy_bytes = _refuse


@functools.cache  # a class is a reference cycle
def _recording(kind):
    return type(f"Recorded{kind.__name__}", (LaunchRecorder, kind), {})


def recorder_of(device) -> Any:
    """A device like another one that writes its launches down."""
    out = object.__new__(_recording(type(device)))
    out.__dict__.update(device.__dict__)
    out.launches, out._kept, out._free, out._real = [], [], [], device
    return out
