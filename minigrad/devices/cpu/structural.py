"""Calls the CPU's hand-written kernels: indices, scans, random numbers, windows."""

import itertools

import numpy as np

from minigrad.array.array import ndarray
from minigrad.array.dtypes import float32, int64
from minigrad.array.layout import size_of
from minigrad.devices.cpu import blas
from minigrad.devices.loader import source_kernel
from minigrad.devices.table import Device
from minigrad.devices.threads import threads
from minigrad.formulas.sums import scratch_to_add

SPLIT = 1 << 16  # elements from which a kernel is split into one range per thread


def ranges(count, work):
    """Return [(0, count)], or one range per thread if the work (in elements) is worth it."""
    parts = 1 if work < SPLIT else max(1, min(threads.count, count))
    return list(itertools.pairwise(count * p // parts for p in range(parts + 1)))


class StructuralKernels(Device):
    """The device table functions that are not formula programs (see `table.Device`)."""

    def gather(self, x, index, out):
        (outer, n, r), m, size = x.shape, out.shape[1], out.dtype.itemsize
        function = source_kernel("gather", "gather", out.dtype.moved)
        if out.size < SPLIT:
            self.run_small(function, (x, index, out), (outer, n, m, r, 0, m))
            return
        if outer > m:  # few indices: split the outer axis
            calls = [
                (
                    x.address + a * n * r * size,
                    index.address,
                    out.address + a * m * r * size,
                    *(b - a, n, m, r, 0, m),
                )
                for a, b in ranges(outer, out.size)
            ]
        else:
            places = (x.address, index.address, out.address, outer, n, m, r)
            calls = [(*places, a, b) for a, b in ranges(m, out.size)]
        threads.run(function, calls)

    def scatter_add(self, source, index, out):
        if out.dtype is not float32:
            function = source_kernel("gather", "add", out.dtype.code)
            self._to_targets(function, source, index, out)
            return
        (outer, n, r), m = out.shape, source.shape[1]
        cuts = ranges(n, source.size)
        size, rows = scratch_to_add(-(-n // len(cuts)), m, r)
        scratch = self.empty((size * len(cuts),), float32) if size else None
        places = (source.address, index.address, out.address, outer, n, m, r)
        own = [scratch.address + 4 * size * k if scratch else 0 for k in range(len(cuts))]
        calls = [(*places, at, rows, a, b) for at, (a, b) in zip(own, cuts, strict=True)]
        threads.run(source_kernel("add_f4", "add_f4"), calls)

    def join(self, parts, out, axis):
        dtype = out.dtype
        if out.size > SPLIT or any(x.dtype is not dtype or not x.is_contiguous for x in parts):
            super().join(parts, out, axis)
            return
        outer, each = size_of(out.shape[:axis]), size_of(out.shape[axis + 1 :])
        table = np.array([(x.address, x.shape[axis] * each) for x in parts])
        function = source_kernel("gather", "join", dtype.moved)
        row = out.shape[axis] * each
        function(table.ctypes.data, len(parts), out.address, outer, row)

    def put(self, source, index, out):
        function = source_kernel("gather", "put", out.dtype.moved)
        self._to_targets(function, source, index, out)

    def _to_targets(self, function, source, index, out):
        (outer, n, r), m = out.shape, source.shape[1]
        places = (source.address, index.address, out.address, outer, n, m, r)
        threads.run(function, [(*places, a, b) for a, b in ranges(n, source.size)])

    def wrap_index(self, index, n, out):
        function = source_kernel("gather", "wrap", index.dtype.code)
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
        self._along("cumsum", x, out, axis)

    def arg_reduce(self, x, out, axis, is_max):
        x = self.contiguous(x if x.dtype.is_float else self.convert(x, int64))
        self._along("arg", x, out, axis, int(is_max))

    def _along(self, name, x, out, axis, *more):
        if not x.size:
            return
        shape, size = x.shape, x.dtype.itemsize
        outer, n, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])
        function = source_kernel("scan", name, x.dtype.code)
        if x.size < SPLIT:
            self.run_small(function, (x, out), (outer, n, inner, 0, inner, *more))
            return
        out_row = out.size // max(1, outer) * out.dtype.itemsize
        if outer > 1:
            calls = [
                (
                    x.address + a * n * inner * size,
                    out.address + a * out_row,
                    *(b - a, n, inner, 0, inner, *more),
                )
                for a, b in ranges(outer, x.size)
            ]
        else:
            places = (x.address, out.address, outer, n, inner)
            calls = [(*places, a, b, *more) for a, b in ranges(inner, x.size)]
        threads.run(function, calls)

    def run_small(self, function, arrays, numbers):
        """Run a kernel that is too small to split."""
        function(*[x.address for x in arrays], *numbers)

    def run_check(self, function, arrays, numbers):
        """Run a kernel that returns the first bad place of its first Array, or -1.

        It may write a second Array.
        """
        return function(*[x.address for x in arrays], *numbers)

    def argsort(self, x, out):
        ndarray(out)[...] = np.argsort(ndarray(x), axis=-1, kind="stable")

    def solve(self, a, b, out, factors, rest):
        (count, m, n), k = a.shape, b.shape[2]
        places = [x.address for x in (a, b, out, factors, rest)]
        calls = [(*places, m, n, k, p, q) for p, q in ranges(count, factors.size * min(m, n))]
        threads.run(source_kernel("linalg", "solve"), calls)

    def cholesky(self, a, out):
        count, n, _ = a.shape
        calls = [(a.address, out.address, n, p, q) for p, q in ranges(count, a.size * n)]
        threads.run(source_kernel("linalg", "cholesky"), calls)

    def random(self, array, kind, seed, counter, low=0, high=0):
        function = source_kernel("random", f"random_{kind}", array.dtype.code)
        more = (low, high) if kind == "integers" else ()
        calls = [
            (array.address, a, b, *more, seed, counter) for a, b in ranges(array.size, array.size)
        ]
        threads.run(function, calls)

    def side_by_side(self, function, count, work):
        calls = [(k, a, b) for k, (a, b) in enumerate(ranges(count, work))]
        if len(calls) == 1:
            function(*calls[0])
            return
        with blas.single_threaded:
            threads.run(function, calls)

    def parts(self, count, work):
        return len(ranges(count, work))

    def unfold(self, x, out, window):
        more = (x.shape[1], *window.sizes(x.shape), out.strides[1], out.strides[0])
        self._planes("unfold", x, (x, out), more, out.size)

    def fold(self, columns, out, window):
        more = (out.shape[1], *window.sizes(out.shape), columns.strides[1], columns.strides[0])
        self._planes("fold", out, (columns, out), more, columns.size)

    def largest(self, x, out, window):
        self._planes("largest", x, (x, out), window.sizes(x.shape), x.size)

    def _planes(self, name, images, operands, more, work):
        function = source_kernel("windows", name, images.dtype.code)
        places, count = [x.address for x in operands], images.shape[0] * images.shape[1]
        threads.run(function, [(*places, a, b, *more) for a, b in ranges(count, work)])
