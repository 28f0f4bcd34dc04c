"""Launches a GPU's hand-written kernels: indices, scans, random numbers, windows."""

from minigrad.array.array import Array
from minigrad.array.dtypes import float32, int32, int64
from minigrad.array.layout import size_of
from minigrad.devices import loader
from minigrad.devices.gpu.entries import blocks_of, entry
from minigrad.devices.gpu.table import GpuTable
from minigrad.formulas.sums import MET

THREADS, PIECE = 256, 2048  # BLOCK, and BLOCK * EACH, of source/gpu_scan.py
FEW = 1024  # indices that are cheaper to compare in pairs than to write to memory
MANY = 4096  # sequences needed for one thread per sequence to fill a GPU
SHORT = 64  # longest sequence that a single thread processes
ROWS = " i8*" + " T*" + " i8" * 4
SIZES = " i8" * 16


def rows_of(count, length):
    """Return (blocks, threads) for a kernel over `count` rows, both along and across rows.

    Along a row there are as many threads as elements, and several blocks if there are few rows.
    """
    along = 1
    while along < min(length, THREADS):
        along *= 2
    blocks = blocks_of(count, THREADS // along)
    return (blocks, blocks_of(length, along, max(1, 1024 // blocks))), (along, THREADS // along)


def split(shape, axis):
    """Return (outer, n, inner): the element counts before, along and after an axis."""
    return size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


def by_columns(outer, n, inner):
    """Return whether a thread takes a whole sequence: if it is short, or many lie side by side."""
    return n <= SHORT or (outer * inner >= MANY and inner >= 32)


class StructuralKernels(GpuTable):
    """Functions of the device table that are not compiled from formulas (see `table.Device`)."""

    columns = 1 << 24  # most elements of unfolded windows that a convolution makes at once

    def gather(self, x, index, out):
        (outer, n, r), m = x.shape, out.shape[1]
        if not out.size:
            return
        code = out.dtype.moved
        is_wide = r % 4 == 0 and all(a.address % 16 == 0 for a in (x, out))
        name = "gather_wide" if is_wide else "gather"
        blocks, threads = rows_of(outer * m, r // 4 if is_wide else r)
        kernel = entry("gpu_indexing", name, code, "T*" + ROWS)
        self.launch(kernel, blocks, threads, (x, index, out, outer, n, m, r))

    def scatter_add(self, source, index, out):
        (outer, n, r), m = out.shape, source.shape[1]
        if not source.size:
            return
        if out.dtype.itemsize == 1:  # no atomic operations on bytes: modulo 2^32, then modulo 2^8
            wide = self.convert(out, int32)
            self.scatter_add(self.convert(source, int32), index, wide)
            self.copy(wide, out)
            return
        blocks, threads = rows_of(outer * m, r)
        if out.dtype is float32 and m > MET:
            self._add_shared(source, index, out, blocks, threads)
            return
        kernel = entry("gpu_indexing", "scatter_add", out.dtype.code, "T*" + ROWS)
        self.launch(kernel, blocks, threads, (source, index, out, outer, n, m, r))

    def _add_shared(self, source, index, out, blocks, threads):
        """Run scatter_add when a target may get more rows than one float32 sum takes (sums.py).

        Every MET of these get a row of their own. Such rows are then added in the same way.
        """
        (outer, n, r), m = out.shape, source.shape[1]
        rows = m // MET
        counts, used, bases = (self.empty((size,), int32) for size in (n, 1, n))
        ranks, owners = self.empty((m,), int32), self.empty((rows,), int64)
        further = self.empty((outer, rows, r), float32)
        for x in (counts, used, owners, further):  # unused rows add zeros to target 0
            self.fill(x, 0)
        kernel = entry("gpu_indexing", "rank", "i8", "i8* i4* i4* i8")
        self.launch(kernel, blocks_of(m, THREADS), THREADS, (index, counts, ranks, m))
        kernel = entry("gpu_indexing", "share_out", "i8", "i4* i4* i4* i8* i8 i8")
        operands = (counts, used, bases, owners, n, MET)
        self.launch(kernel, blocks_of(n, THREADS), THREADS, operands)
        words = "T* i8* i4* i4* T* T*" + " i8" * 6
        kernel = entry("gpu_indexing", "scatter_add_shared", "f4", words)
        operands = (source, index, ranks, bases, out, further, outer, n, m, r, rows, MET)
        self.launch(kernel, blocks, threads, operands)
        self.scatter_add(further, owners, out)

    def put(self, source, index, out):
        (outer, n, r), m = out.shape, source.shape[1]
        if not source.size:
            return
        blocks, threads = rows_of(outer * m, r)
        kernel = entry("gpu_indexing", "put", out.dtype.moved, "T* i8* i4* T*" + " i8" * 4)
        wins = self._last_of_equals(index, m, n)
        self.launch(kernel, blocks, threads, (source, index, wins, out, outer, n, m, r))

    def _last_of_equals(self, index, m, n):
        """Return an (m,) int32 Array: 1 where no later place has the same index, else 0."""
        wins = self.empty((m,), int32)
        if m <= FEW:
            kernel = entry("gpu_indexing", "last_of_few", "i8", "i8* i4* i8")
            self.launch(kernel, blocks_of(m, 64), 64, (index, wins, m))
            return wins
        place = self.empty((n,), int32)
        self.fill(place, -1)
        blocks = blocks_of(m, THREADS)
        kernel = entry("gpu_indexing", "latest", "i8", "i8* i4* i8")
        self.launch(kernel, blocks, THREADS, (index, place, m))
        kernel = entry("gpu_indexing", "is_latest", "i8", "i8* i4* i4* i8")
        self.launch(kernel, blocks, THREADS, (index, place, wins, m))
        return wins

    def wrap_index(self, index, n, out):
        count = index.size
        if not count:
            return -1
        outside = self.empty((1,), int64)
        self.fill(outside, count)
        kernel = entry("gpu_indexing", "wrap", index.dtype.code, "T* i8* i8* i8 i8")
        operands = (self.contiguous(index), out, outside, count, n)
        self.launch(kernel, blocks_of(count, THREADS), THREADS, operands)
        first = self.item(outside)
        return -1 if first == count else first

    def cumsum(self, x, out, axis):
        if not x.size:
            return
        x = self.contiguous(x if x.dtype is out.dtype else self.convert(x, out.dtype))
        self._cumsum(x, out, *split(x.shape, axis))

    def _cumsum(self, x, out, outer, n, inner):
        code, sequences = out.dtype.code, outer * inner
        if by_columns(outer, n, inner):
            kernel = entry("gpu_scan", "cumsum_columns", code, "T* T* i8 i8 i8")
            self.launch(kernel, blocks_of(sequences, 64), 64, (x, out, outer, n, inner))
            return
        pieces, before = -(-n // PIECE), x
        if pieces > 1:
            totals = self.empty((sequences, pieces), out.dtype)
            kernel = entry("gpu_scan", "sums_of_pieces", code, "T* T* i8 i8 i8")
            self.launch(kernel, sequences * pieces, THREADS, (x, totals, n, inner, pieces))
            before = self.empty((sequences, pieces), out.dtype)
            self._cumsum(totals, before, sequences, pieces, 1)
        kernel = entry("gpu_scan", "cumsum_pieces", code, "T* T* T* i8 i8 i8")
        self.launch(kernel, sequences * pieces, THREADS, (x, before, out, n, inner, pieces))

    def arg_reduce(self, x, out, axis, is_max):
        if not x.size:
            return
        is_computed = x.dtype.is_float or x.dtype is int64
        x = self.contiguous(x if is_computed else self.convert(x, int64))
        outer, n, inner = split(x.shape, axis)
        code, sequences = x.dtype.code, outer * inner
        if by_columns(outer, n, inner):
            kernel = entry("gpu_scan", "arg_columns", code, "T* i8* i8 i8 i8 i8")
            operands = (x, out, outer, n, inner, int(is_max))
            self.launch(kernel, blocks_of(sequences, 64), 64, operands)
            return
        pieces = max(1, min(-(-n // PIECE), 2 * THREADS // sequences))
        length = -(-n // pieces)
        values = self.empty((sequences, pieces), x.dtype)
        places = self.empty((sequences, pieces), int64) if pieces > 1 else out
        kernel = entry("gpu_scan", "arg_pieces", code, "T* T* i8*" + " i8" * 5)
        operands = (x, values, places, n, inner, pieces, length, int(is_max))
        self.launch(kernel, sequences * pieces, THREADS, operands)
        if pieces > 1:
            kernel = entry("gpu_scan", "arg_of_pieces", code, "T* i8* i8* i8 i8")
            operands = (values, places, out, pieces, int(is_max))
            self.launch(kernel, sequences, THREADS, operands)

    def argsort(self, x, out, descending=False):
        rows, n = x.shape
        width = 1 << (n - 1).bit_length()
        order = self.empty((rows, width), int64)
        kernel = entry("gpu_sort", "begin", x.dtype.code, "i8* i8 i8")
        self.launch(kernel, blocks_of(order.size, THREADS), THREADS, (order, order.size, width))
        kernel = entry("gpu_sort", "sort_step", x.dtype.code, "T* i8*" + " i8" * 6)
        blocks, run = blocks_of(rows * width // 2, THREADS), 1
        while run < width:
            run, distance = run * 2, run
            while distance:
                operands = (x, order, rows, n, width, run, distance, int(descending))
                self.launch(kernel, blocks, THREADS, operands)
                distance //= 2
        self.copy(order.view(out.shape, (width, 1)), out)

    def solve(self, a, b, out, factors, rest):
        (count, m, n), k = a.shape, b.shape[2]
        kernel = entry("gpu_linalg", "solve", "f8", "T* T* T* T* T*" + " i8" * 4)
        operands = (a, b, out, factors, rest, count, m, n, k)
        self.launch(kernel, blocks_of(count, 32), 32, operands)

    def cholesky(self, a, out):
        count, n, _ = a.shape
        kernel = entry("gpu_linalg", "cholesky", "f8", "T* T* i8 i8")
        self.launch(kernel, blocks_of(count, 32), 32, (a, out, count, n))

    def nonzero(self, x):
        n = x.size
        if not n:
            return self.empty((0,), int64)
        x, code, pieces = self.contiguous(x), x.dtype.code, -(-n // PIECE)
        counts, before = self.empty((pieces,), int64), self.empty((pieces,), int64)
        kernel = entry("gpu_scan", "count_nonzero", code, "T* i8* i8")
        self.launch(kernel, pieces, THREADS, (x, counts, n))
        self._cumsum(counts, before, 1, pieces, 1)
        out = self.empty((self.item(before.view((), (), pieces - 1)),), int64)
        if out.size:
            kernel = entry("gpu_scan", "write_nonzero", code, "T* i8* i8* i8")
            self.launch(kernel, pieces, THREADS, (x, before, out, n))
        return out

    def random(self, array, kind, seed, counter, low=0, high=0):
        """Fill array; seed may be an Array (seed, number to add to counter): see gpu_random.py."""
        if not array.size:
            return
        code, is_recorded = array.dtype.code, isinstance(seed, Array)
        more = (low, high) if kind == "integers" else (int(array.address % 16 == 0),)
        form = " ".join(["T*", *["i8"] * (1 + len(more)), "i8*" if is_recorded else "i8", "i8"])
        name = f"{kind}_later" if is_recorded else kind
        kernel = entry("gpu_random", name, code, form, loader.RANDOM)
        blocks = blocks_of(array.size, THREADS * (16 // array.dtype.itemsize))
        self.launch(kernel, blocks, THREADS, (array, array.size, *more, seed, counter))

    def unfold(self, x, out, window):
        sizes = (*x.shape[:2], *window.sizes(x.shape))
        taps = x.shape[1] * window.kernel[0] * window.kernel[1]
        kernel = entry("gpu_windows", "unfold", x.dtype.moved, "T* T*" + SIZES)
        blocks, threads = rows_of(x.shape[0] * taps, sizes[4] * sizes[5])
        operands = (x, out, *sizes, out.strides[1], out.strides[0])
        self._over_windows(kernel, blocks, threads, operands, out)

    def fold(self, columns, out, window):
        (n, c, h, w), sizes = out.shape, (*out.shape[:2], *window.sizes(out.shape))
        kernel = entry("gpu_windows", "fold", out.dtype.code, "T* T*" + SIZES)
        blocks, threads = rows_of(n * c, h * w)
        operands = (columns, out, *sizes, columns.strides[1], columns.strides[0])
        self._over_windows(kernel, blocks, threads, operands, out)

    def largest(self, x, out, window):
        (n, c), sizes = x.shape[:2], (*x.shape[:2], *window.sizes(x.shape))
        kernel = entry("gpu_windows", "largest", x.dtype.code, "T* i8*" + " i8" * 14)
        blocks, threads = rows_of(n * c, sizes[4] * sizes[5])
        self._over_windows(kernel, blocks, threads, (x, out, *sizes), out)

    def _over_windows(self, kernel, blocks, threads, operands, out):
        if out.size:
            self.launch(kernel, blocks, threads, operands)
