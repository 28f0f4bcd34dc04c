"""Calls the CPU's hand-written kernels: indices, scans, random numbers, windows, convolutions."""

import itertools
from array import array
from typing import Any

import numpy as np

from minigrad.array.array import ndarray
from minigrad.array.dtypes import float32, int64
from minigrad.array.layout import size_of
from minigrad.devices.cpu import blas, kernel_calls
from minigrad.devices.cpu.direct import border, pays, turned, up
from minigrad.devices.cpu.kernel_calls import OwnPart
from minigrad.devices.loader import source_kernel
from minigrad.devices.table import Device
from minigrad.devices.threads import threads
from minigrad.formulas.expression import IDENTITY

SPLIT = 1 << 16  # elements from which a kernel is split into one range per thread


def parts_of(count, work):
    """Return 1, or the number of threads if the work (in elements) is worth splitting."""
    return 1 if work < SPLIT else max(1, min(threads.count, count))


def ranges(count, work):
    """Return [(0, count)], or one range per thread if the work is worth it."""
    parts = parts_of(count, work)
    return list(itertools.pairwise(count * p // parts for p in range(parts + 1)))


def joining(code, sizes, outer):
    """Return a function of addresses, of parts and at last of the output, that joins the parts.

    sizes: the elements that each part has for each of `outer` ranges.
    """
    function, row = source_kernel("gather", "join", code), sum(sizes)

    def join(*addresses):
        places = array("q", addresses)
        tables = places.buffer_info()[0], sizes.buffer_info()[0]
        function(*tables, len(sizes), addresses[-1], outer, row)

    return join


def in_parts(function, steps, cuts):
    """Return a function of addresses and numbers that runs a kernel over ranges side by side.

    steps: the bytes between the operands of one range and of the next.
    """

    def run(*given):
        calls, numbers = [], given[len(steps) :]
        for k, cut in enumerate(cuts):
            places = [x + k * step for x, step in zip(given, steps, strict=False)]
            calls.append((*places, *numbers, *cut))
        threads.run(function, calls)

    return run


class StructuralKernels(Device):
    """The device table functions that are not formula programs (see `table.Device`)."""

    def run_kernel(self, call) -> Any:
        """Make a KernelCall that is no check; return the scratch memory (threads, ...), or None."""
        function, operands = source_kernel(call.file, call.name, call.code), call.operands
        parts, scratch = parts_of(call.extent, call.work), None
        if call.scratch:
            own = scratch = self.empty((parts, call.scratch), float32)
            operands = [own.view((), (), x.begin) if type(x) is OwnPart else x for x in operands]
        if parts == 1:
            self.run_small(function, operands, (*call.numbers, 0, call.extent))
        else:
            steps = [4 * call.scratch * (type(x) is OwnPart) for x in call.operands]
            cuts = ranges(call.extent, call.work)
            self.run_small(in_parts(function, steps, cuts), operands, call.numbers)
        return scratch

    def run_small(self, function, arrays, numbers):
        """Run a kernel in one part, or a function that runs one."""
        function(*[x.address for x in arrays], *numbers)

    def gather(self, x, index, out):
        self.run_kernel(kernel_calls.gather(x, index, out))

    def scatter_add(self, source, index, out):
        parts = parts_of(out.shape[1], source.size)
        self.run_kernel(kernel_calls.scatter_add(source, index, out, parts))

    def join(self, parts, out, axis):
        dtype = out.dtype
        if out.size > SPLIT or any(x.dtype is not dtype or not x.is_contiguous for x in parts):
            super().join(parts, out, axis)
            return
        outer, each = size_of(out.shape[:axis]), size_of(out.shape[axis + 1 :])
        sizes = array("q", [x.shape[axis] * each for x in parts])
        self.run_small(joining(dtype.moved, sizes, outer), (*parts, out), ())

    def put(self, source, index, out):
        self.run_kernel(kernel_calls.put(source, index, out))

    def wrap_index(self, index, n, out):
        function = source_kernel("gather", "wrap", index.dtype.code)  # a KernelCall takes longer
        return self.run_check(function, (index, out), (index.size, n))

    def all_within(self, x, low, high, wanted=None):
        """Return whether every element of an integer Array is in [low, high].

        wanted: what a compiled step's error says if one is not.
        """
        if x.dtype is not int64 or not x.is_contiguous:
            x = self.convert(x, int64)
        function = source_kernel("checks", "first_outside_i8")
        return self.run_check(function, (x,), (x.size, low, high)) < 0

    def nonzero(self, x):
        return self.from_numpy(np.flatnonzero(ndarray(x)), int64)

    def cumsum(self, x, out, axis):
        x = self.contiguous(x if x.dtype is out.dtype else self.convert(x, out.dtype))
        self.run_kernel(kernel_calls.cumsum(x, out, axis))

    def arg_reduce(self, x, out, axis, is_max):
        is_computed = x.dtype.is_float or x.dtype is int64
        x = self.contiguous(x if is_computed else self.convert(x, int64))
        self.run_kernel(kernel_calls.arg_reduce(x, out, axis, is_max))

    def run_check(self, function, arrays, numbers):
        """Run a kernel that returns the first bad place of its first Array, or -1.

        It may write a second Array.
        """
        return function(*[x.address for x in arrays], *numbers)

    def argsort(self, x, out, descending=False):
        self.run_kernel(kernel_calls.argsort(x, out, self.empty(out.shape, int64), descending))

    def solve(self, a, b, out, factors, rest):
        self.run_kernel(kernel_calls.solve(a, b, out, factors, rest))

    def cholesky(self, a, out):
        self.run_kernel(kernel_calls.cholesky(a, out))

    def random(self, array, kind, seed, counter, low=0, high=0):
        self.run_kernel(kernel_calls.random(array, kind, seed, counter, low, high))

    def side_by_side(self, function, count, work):
        calls = [(k, a, b) for k, (a, b) in enumerate(ranges(count, work))]
        if len(calls) == 1:
            function(*calls[0])
            return
        with blas.single_threaded:
            threads.run(function, calls)

    def parts(self, count, work):
        return parts_of(count, work)

    def unfold(self, x, out, window):
        self.run_kernel(kernel_calls.unfold(x, out, window))

    def fold(self, columns, out, window):
        self.run_kernel(kernel_calls.fold(columns, out, window))

    def largest(self, x, out, window):
        self.run_kernel(kernel_calls.largest(x, out, window))

    # -- convolutions of stride 1, one group, float32: see `direct.py` -----------------------------

    def convolves(self, what, dtype, shape, kernels, window):
        return pays(what, dtype, shape, kernels, window)

    def convolve_back(self, g, w, out, window):
        self.convolve(g, w.view(*turned(*w.layout())), None, out, border(window))

    def convolve(self, x, w, bias, out, window):
        packed = self.empty((up(w.shape[0], 4) // 4, 4 * (1 + size_of(w.shape[1:]))), x.dtype)
        self.run_kernel(kernel_calls.pack(w, packed, 0 if bias is None else bias.address))
        self.run_kernel(kernel_calls.convolve(x, packed, out, window))

    def correlate(self, g, x, out, window):
        parts = self.parts(x.shape[0], kernel_calls.correlate(g, x, out, window).work)
        sums = self.run_kernel(kernel_calls.correlate(g, x, out, window, parts))
        if parts > 1:
            shape, strides = (parts, *out.shape), (sums.strides[0], *out.strides)
            self.reduce(IDENTITY, "sum", (sums.view(shape, strides),), out, shape, (0,))
