"""Kernels from text, run by the machine and, thread after thread, by plain Python."""

import itertools
import linecache
import math

import numpy as np

from minigrad import simt
from minigrad.simt.language.language import cuda

_numbers = itertools.count()


def define(text, **names):
    """The functions that a text defines; the text is found again as their source."""
    file = f"<kernel {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"cuda": cuda, "np": np, "math": math, **names}
    exec(compile(text, file, "exec"), space)
    for value in list(space.values()):
        if getattr(value, "__code__", None) is not None and value.__code__.co_filename == file:
            value.is_device = True  # so that kernels of the text may call its functions
    return space


class _Triple:
    def __init__(self, values):
        self.x, self.y, self.z = (np.int32(v) for v in values)


class _Local:
    array = staticmethod(np.zeros)


class OneThread:
    """`cuda` for one thread of a kernel without barriers."""

    local = _Local

    def __init__(self, block, thread, grid, extents):
        self.blockIdx, self.threadIdx = _Triple(block), _Triple(thread)
        self.gridDim, self.blockDim = _Triple(grid), _Triple(extents)

    def _places(self, axis):
        names = ("x", "y", "z")
        b, t = getattr(self.blockIdx, names[axis]), getattr(self.threadIdx, names[axis])
        return np.int64(b) * getattr(self.blockDim, names[axis]) + t

    def grid(self, axes):
        places = tuple(self._places(axis) for axis in range(axes))
        return places[0] if axes == 1 else places

    def gridsize(self, axes):
        assert axes == 1
        return np.int64(self.gridDim.x) * self.blockDim.x


def run_threads(text, blocks, threads, arguments, **names):
    """The kernel of a text, one thread at a time, in the order of the grid."""
    space = {"np": np, "math": math, **names}
    exec(compile(text, "<one thread>", "exec"), space)
    grid, extents = (v if isinstance(v, tuple) else (v,) for v in (blocks, threads))
    grid, extents = (v + (1,) * (3 - len(v)) for v in (grid, extents))
    with np.errstate(all="ignore"):
        for block in itertools.product(*(range(n) for n in reversed(grid))):
            for thread in itertools.product(*(range(n) for n in reversed(extents))):
                space["cuda"] = OneThread(block[::-1], thread[::-1], grid, extents)
                space["kernel"](*arguments)


class _Shared:
    """`cuda.shared` of one block whose kernel has one shared array."""

    def __init__(self):
        self.made = None

    def array(self, shape, dtype):
        if self.made is None:
            self.made = np.zeros(shape, dtype)
        return self.made


def run_blocks(text, blocks, threads, arguments):
    """A kernel with barriers: every thread a generator that stops at each of them."""
    text = text.replace("cuda.syncthreads()", "yield")
    for block in range(blocks):
        running, shared = [], _Shared()
        for thread in range(threads):
            one = OneThread((block, 0, 0), (thread, 0, 0), (blocks, 1, 1), (threads, 1, 1))
            one.shared = shared
            space = {"np": np, "math": math, "cuda": one}
            exec(compile(text, "<one thread>", "exec"), space)
            running.append(space["kernel"](*arguments))
        with np.errstate(all="ignore"):
            while running:
                running = [thread for thread in running if next(thread, "end") != "end"]


def both(text, blocks, threads, arguments, **names):
    """Runs a kernel both ways on copies of the arguments, and asserts that they agree."""
    once = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    run_threads(text, blocks, threads, once, **names)
    simt.launch(define(text, **names)["kernel"], blocks, threads, arguments)
    for mine, wanted in zip(arguments, once, strict=True):
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, wanted, err_msg=text)
