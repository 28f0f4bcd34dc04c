"""jit: makes a Python function a CUDA kernel, and launches it.

`kernel[blocks, threads]` sets the number of threads, `(...)` runs it, as in Numba.
"""

import functools
import inspect
import math
import sys
from typing import Any

import numpy as np

from minigrad import simt
from minigrad.arguments import flag, short
from minigrad.array.array import ndarray
from minigrad.cuda import arguments, compiled
from minigrad.devices import backend
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    SimulationError,
    describe_line,
)
from minigrad.hints import refuse_unknown_arguments, teaching
from minigrad.seams import seams
from minigrad.simt.launch import BLOCK_LIMITS, THREAD_LIMITS, THREADS, extents

MOST_SHARED = 232_448  # bytes of shared memory: the most for a block on today's GPUs


class Kernel:
    """A CUDA kernel, or with `is_device` a function that kernels call; made by `jit`.

    Attributes:
        py_func: the Python function.
        not_a_step: a description for the error of `mg.compile`, which refuses kernels.
        watch: whether the simulator looks for data races and uninitialised reads.
    """

    __name__: str
    not_a_step = "a CUDA kernel"

    def __init__(self, function, is_device=False, watch=True):
        functools.update_wrapper(self, function)
        self.py_func, self.is_device, self.watch = function, is_device, watch

    def __getitem__(self, configuration):
        if self.is_device:
            raise ArgumentTypeError(
                f"{self.__name__} is a device function: kernels call it, and it cannot be launched",
                fix="leave out device=True to make it a kernel",
            )
        return Launch(self, configuration)

    def __call__(self, *values):
        if self.is_device:
            raise SimulationError(
                f"{self.__name__} is a device function, which only kernels can call",
                fix=f"{self.__name__}.py_func(...) calls the Python function, for a test",
            )
        names = ", ".join(inspect.signature(self.py_func).parameters)
        raise SimulationError(
            f"the kernel {self.__name__} was called, not launched",
            fix=f"say for how many threads: {self.__name__}[blocks, threads]({names})",
        )

    def __repr__(self):
        code = self.py_func.__code__
        kind = "device function" if self.is_device else "kernel"
        place = describe_line(code.co_filename, code.co_firstlineno).split("  ")[0]
        return f"<CUDA {kind} {self.__name__}, {place}>"


class Launch:
    """A kernel with the number of its blocks and threads: `kernel[blocks, threads]`.

    Attributes:
        blocks, threads: (x, y, z).
        shared: bytes of dynamic shared memory per block.
    """

    not_a_step = Kernel.not_a_step

    def __init__(self, kernel, configuration):
        parts: Any = configuration if isinstance(configuration, tuple) else (configuration,)
        if not 2 <= len(parts) <= 4:
            raise ArgumentTypeError(
                f"{kernel.__name__}[...]: wanted blocks and threads",
                short(configuration),
                f"{kernel.__name__}[blocks, threads](...), or with bytes of dynamic shared "
                "memory [blocks, threads, 0, bytes]",
            )
        self.kernel = kernel
        self.blocks = extents(parts[0], "blocks", BLOCK_LIMITS)
        count = _product(parts[1])
        if count > THREADS:
            raise ArgumentError(
                f"a block has at most {THREADS:,} threads",
                f"{count:,}" if count == parts[1] else f"{parts[1]!r}, which are {count:,}",
                "use more blocks, of 128 to 512 threads each",
            )
        self.threads = extents(parts[1], "threads of a block", THREAD_LIMITS)
        if len(parts) > 2 and parts[2] not in (None, 0):
            raise ArgumentError(
                "the third entry of kernel[...] is Numba's stream: minigrad has one, 0",
                f"{parts[2]!r}",
                "kernel[blocks, threads, 0, bytes] for dynamic shared memory",
            )
        self.shared = parts[3] if len(parts) > 3 else 0
        is_whole = isinstance(self.shared, int | np.integer) and not isinstance(self.shared, bool)
        if not is_whole or not 0 <= self.shared <= MOST_SHARED:
            raise ArgumentError(
                f"dynamic shared memory: wanted bytes, from 0 to {MOST_SHARED:,}",
                short(self.shared),
                "threads * itemsize for one element a thread",
            )

    def __call__(self, *values, **named):
        """Runs the kernel, on the GPU if the arguments are on "cuda", else in the simulator."""
        if named:
            name, wanted = self.kernel.__name__, inspect.signature(self.kernel.py_func).parameters
            raise ArgumentTypeError(
                f"{name}: a launch takes no arguments by name, as in Numba",
                ", ".join(f"{key}=" for key in named),
                f"give them in their order: {name}[blocks, threads]({', '.join(wanted)})",
            )
        seams.effects.refuse(  # later calls of a compiled step would not launch it
            f"a kernel of your own, {self.kernel.__name__}, cannot be part of a compiled step",
            "launch it before or after the step, or leave out mg.compile",
        )
        arguments.check(self.kernel, values)
        arguments.refuse_gradients(self.kernel, values)
        if arguments.device(self.kernel, values) == "cuda":
            compiled.launch(self, arguments.prepared(self.kernel, values, lambda array: array))
        else:
            self.simulate(arguments.prepared(self.kernel, values, ndarray))

    def simulate(self, values, counts=None):
        """Runs the kernel in the simulator, on NumPy arrays and numbers."""
        configuration = self.blocks, self.threads, values, self.shared, self.kernel.watch, counts
        try:
            simt.launch(self.kernel.py_func, *configuration)
        except SimulationError as error:
            raise error.with_traceback(None)  # noqa: B904 - it names the kernel's line

    def __repr__(self):
        return f"<{self.kernel.__name__}[{self.blocks}, {self.threads}]>"


def _product(value):
    """Returns the number of threads of a block, or 0 for values that `extents` refuses."""
    parts = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(n, int | np.integer) for n in parts):
        return 0
    return math.prod(int(n) for n in parts)


@teaching
def jit(function=None, *, device=False, watch=True, **options):
    """Makes a Python function a CUDA kernel: `@mg.cuda.jit`, or `@mg.cuda.jit(device=True)`.

    Args:
        function: its arguments are arrays and numbers, whose types the launch determines. It
            returns nothing and writes results to arrays.
        device: make a function for kernels to call: it may return values and cannot be launched.
        watch: let the simulator look for data races and reads of uninitialised memory. False is
            faster; the simulator finds accesses out of bounds in any case.

    Returns:
        A `Kernel`: `kernel[blocks, threads](x, out)` runs it.

    A kernel records nothing: the docstring of `mg.cuda` shows a `mg.Function` that launches one
    kernel in forward, on `x.detach()`, and another one in backward.
    """
    refuse_unknown_arguments("jit", ("device", "watch"), options, "kernel")
    device = flag("jit", "device", device, "a launch runs where its arrays are")
    watch = flag("jit", "watch", watch)
    if function is None:
        return functools.partial(jit, device=device, watch=watch)
    if isinstance(function, Kernel):
        raise ArgumentTypeError("jit: this is a kernel already", repr(function))
    if not inspect.isfunction(function):
        is_signature = not callable(function)
        raise ArgumentTypeError(
            "jit: wanted a Python function",
            short(function),
            "leave the types out: @mg.cuda.jit, they are found at the launch"
            if is_signature
            else "write it with def",
        )
    return Kernel(function, device, watch)


def synchronize():
    """Waits until the GPU has finished all work. The simulator always has.

    Raises the faults of kernels on the GPU.
    """
    if "minigrad.devices.gpu.cuda" in sys.modules:  # otherwise no GPU was used
        backend.device_named("cuda").synchronize()
