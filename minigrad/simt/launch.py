"""Run a kernel: arguments become memory, blocks are grouped into waves that run in lock-step."""

import numpy as np
from numpy.lib.array_utils import byte_bounds

from minigrad.errors import ArgumentError, ArgumentTypeError, SimulationError
from minigrad.simt.language.compiler import check_kernel, program
from minigrad.simt.language.names import constant
from minigrad.simt.machine.addresses import bytes_at, spans
from minigrad.simt.machine.arrays import ArrayView, PointerView
from minigrad.simt.machine.frame import Wave
from minigrad.simt.machine.lanes import Lanes
from minigrad.simt.machine.masks import describe
from minigrad.simt.watch.memory import Memory

WAVE = 32768  # lanes: enough to amortize a NumPy call, few enough for the cache
THREAD_LIMITS, BLOCK_LIMITS = (1024, 1024, 64), (2**31 - 1, 65535, 65535)
THREADS = 1024


class Pointer:
    """An argument without a shape: elements of one buffer, which a kernel indexes as p[i].

    Args:
        data: the buffer, a NumPy array, used in place; p may access all of its bytes.
        dtype: the dtype of the elements.
        start: the byte of the buffer where p[0] begins.
    """

    __slots__ = ("data", "dtype", "start")

    def __init__(self, data, dtype, start=0):
        self.data, self.dtype, self.start = data, np.dtype(dtype), start


def extents(value, what, limits):
    """Return a number of blocks or threads as (x, y, z); raise outside the limits of CUDA."""
    parts = value if isinstance(value, tuple | list) else (value,)
    if any(isinstance(n, float | np.floating) for n in parts):
        raise ArgumentTypeError(
            f"{what}: wanted whole numbers",
            f"{value!r}",
            "n / 256 is a float, and n // 256 leaves some out: (n + 255) // 256 is enough blocks",
        )
    numbers = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in parts)
    if not numbers or not 1 <= len(parts) <= 3:
        raise ArgumentTypeError(f"{what} are an int or a tuple of one to three", got=f"{value!r}")
    if 0 in parts:
        raise ArgumentError(
            f"{what}: wanted at least 1",
            f"{value!r}",
            "n // 256 is 0 for n below 256: (n + 255) // 256 is enough blocks; "
            "with no work to do, launch nothing"
            if what == "blocks"
            else "128 to 512 threads are usual, in any case a multiple of 32",
        )
    whole = tuple(int(n) for n in parts) + (1,) * (3 - len(parts))
    if not all(1 <= n <= limit for n, limit in zip(whole, limits, strict=True)):
        raise ArgumentError(f"{what} must be from 1 to {limits} along x, y, z", got=f"{value!r}")
    return whole


def _parts(values):
    """Yield the arrays among the arguments, including those in Pointers and tuples."""
    for value in values:
        if isinstance(value, tuple):
            yield from _parts(value)
        elif isinstance(value, Pointer):
            yield value.data
        elif isinstance(value, np.ndarray):
            yield value


class _Buffers:
    """The global memory of a launch: arguments that share bytes share one region.

    A region is no larger than its arguments, so their neighbours in a pool are out of bounds.
    """

    def __init__(self, memory, arguments):
        self.memory = memory
        self.regions = {}
        self.constants = {}
        self.spans = spans(_parts(arguments))

    def region(self, array, name):
        """Return (the region that an array lies in, the address of the region's first byte)."""
        first, past = byte_bounds(array)
        low, high = next(s for s in self.spans if s[0] <= first and past <= s[1])
        if (low, high) not in self.regions:
            bytes_ = bytes_at(low, high - low)
            whole = array.flags.c_contiguous and high - low == array.nbytes
            shape = array.shape if whole else None
            region = self.memory.buffer(bytes_, name, array.flags.writeable, shape=shape)
            # keep the array alive while its bytes are used
            self.regions[low, high] = region, array, [name]
        region, _, names = self.regions[low, high]
        region.writable |= array.flags.writeable
        if name not in names:
            names.append(name)
            region.name = f"the memory that {', '.join(names[:-1])} and {name} share"
        return region, low

    def array(self, array, name):
        """Return a NumPy array as a kernel sees it."""
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ArgumentTypeError(
                f"the argument {name} has elements that the simulator has no type for",
                got=f"{array.dtype}",
                fix="use bools, integers or floats of at most 8 bytes",
            )
        size = array.dtype.itemsize
        region, low = self.region(array, name)
        start = array.__array_interface__["data"][0] - low
        if not array.dtype.isnative:
            raise ArgumentTypeError(
                f"the argument {name} has the byte order of another computer",
                got=f"{array.dtype}",
                fix=f"{name}.astype({name}.dtype.newbyteorder('='))",
            )
        if start % size or any(s % size for s in array.strides):
            raise ArgumentTypeError(
                f"the elements of {name} do not lie on multiples of their size",
                fix=f"pass a copy: {name}.copy()",
            )
        strides = [s // size for s in array.strides]
        return ArrayView(region, array.dtype, array.shape, strides, np.int64(start // size))

    def pointer(self, pointer, name):
        """Return a `Pointer` as a kernel sees it."""
        region, low = self.region(pointer.data, name)
        start = pointer.data.__array_interface__["data"][0] - low + pointer.start
        if start % pointer.dtype.itemsize:
            raise ArgumentError(f"the pointer {name} is not at a multiple of its element's size")
        return PointerView(region, pointer.dtype, np.int64(start // pointer.dtype.itemsize))

    def constant(self, array, name):
        """Return a read-only view of a global array of the kernel's module."""
        if id(array) not in self.constants:
            copy = np.ascontiguousarray(array)
            data = copy.reshape(-1).view(np.uint8)
            region = self.memory.buffer(data, name, writable=False, space="constant")
            strides = [s // copy.itemsize for s in copy.strides]
            view = ArrayView(region, copy.dtype, array.shape, strides, np.int64(0))
            self.constants[id(array)] = view, array
        return self.constants[id(array)][0]

    def argument(self, value, name):
        """Return one argument of a launch as a kernel sees it."""
        if isinstance(value, np.ndarray):
            return self.array(value, name)
        if isinstance(value, Pointer):
            return self.pointer(value, name)
        if isinstance(value, tuple):
            return tuple(self.argument(part, name) for part in value)
        scalar = constant(value)
        if scalar is None or isinstance(scalar, str):
            raise ArgumentTypeError(
                f"the argument {name} is nothing that a kernel can take",
                got=type(value).__name__,
                fix="pass NumPy arrays, numbers, or tuples of them",
            )
        return scalar


def launch(function, blocks, threads, arguments, shared=0, watch=True, counts=None):
    """Run a kernel for all threads of a grid; return when all have ended.

    Args:
        function: the kernel, a Python function (or a Numba dispatcher: its `py_func`).
        blocks: the number of blocks: an int, or a tuple (x, y, z) of one to three.
        threads: the number of threads per block, likewise.
        arguments: numbers, `Pointer`s, and NumPy arrays, which the kernel writes in place.
        shared: bytes of dynamic shared memory per block.
        watch: whether to find data races and reads of shared memory that no thread has written.
        counts: an object to tell of accesses, branches and barriers, or None.

    After an error the arrays hold what the kernel had written by then.
    """
    function = getattr(function, "py_func", function)
    check_kernel(function)
    compiled = program(function)
    grid = extents(blocks, "blocks", BLOCK_LIMITS)
    block = extents(threads, "threads of a block", THREAD_LIMITS)
    per_block = block[0] * block[1] * block[2]
    if per_block > THREADS:
        raise ArgumentError(f"a block has at most {THREADS} threads", got=f"{per_block}")
    if len(arguments) != len(compiled.parameters):
        raise ArgumentTypeError(
            f"{compiled.name} takes {len(compiled.parameters)} arguments",
            got=f"{len(arguments)}",
        )
    memory = Memory(compiled.name, watch, counts, compiled.exact)
    buffers = _Buffers(memory, arguments)
    values = [
        buffers.argument(value, name)
        for value, name in zip(arguments, compiled.parameters, strict=True)
    ]
    total = grid[0] * grid[1] * grid[2]
    size = 1 if compiled.spins else max(1, WAVE // per_block)
    try:
        with np.errstate(all="ignore"):
            for first in range(0, total, size):
                lanes = Lanes(grid, block, first, min(size, total - first))
                memory.begin(lanes)
                wave = Wave(lanes, memory, int(shared), buffers.constant, counts)
                result = compiled(wave, values, None, top=True)
                if result is not None:
                    raise SimulationError(
                        "a kernel must not return a value",
                        got=describe(result),
                        where=compiled.site.where,
                        fix="write results into an array that is an argument",
                    )
    except SimulationError as error:
        error.kernel = compiled.name  # not the device function that contains the line
        raise
