"""Indexing on a GPU: rows that are picked, added to and overwritten by index."""

from minigrad.array.dtypes import float32, int32, int64
from minigrad.devices.gpu.entries import CODE, blocks_of, entry
from minigrad.devices.gpu.table import GpuTable
from minigrad.devices.loader import MOVED
from minigrad.formulas.sums import MET

THREADS = 256
FEW = 1024  # indices that are cheaper to compare in pairs than to write to memory
ROWS = " i8*" + " T*" + " i8" * 4


def rows_of(count, length, threads=THREADS):
    """(blocks, threads) for a kernel over `count` rows of a length, both along and across rows.

    Along a row there are as many threads as elements, and several blocks if there are few rows.
    """
    along = 1
    while along < min(length, threads):
        along *= 2
    blocks = blocks_of(count, threads // along)
    return (blocks, blocks_of(length, along, max(1, 1024 // blocks))), (along, threads // along)


class Indexing(GpuTable):
    """Indexing functions of the device table (see `table.Device`)."""

    def gather(self, x, index, out):
        (outer, n, r), m = x.shape, out.shape[1]
        if not out.size:
            return
        code = MOVED[out.dtype.itemsize]
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
        kernel = entry("gpu_indexing", "scatter_add", CODE[out.dtype.name], "T*" + ROWS)
        self.launch(kernel, blocks, threads, (source, index, out, outer, n, m, r))

    def _add_shared(self, source, index, out, blocks, threads):
        """scatter_add where a target may get more rows than one float32 sum takes (sums.py).

        Every MET of them get a row of their own. Then these rows are added in the same way.
        """
        (outer, n, r), m = out.shape, source.shape[1]
        rows = m // MET
        counts, used, bases = (self.empty((size,), int32) for size in (n, 1, n))
        ranks, owners = self.empty((m,), int32), self.empty((rows,), int64)
        further = self.empty((outer, rows, r), float32)
        for x in (counts, used, owners, further):  # rows that are not used are zeros for target 0
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
        kernel = entry(
            "gpu_indexing", "put", MOVED[out.dtype.itemsize], "T* i8* i4* T*" + " i8" * 4
        )
        wins = self._last_of_equals(index, m, n)
        self.launch(kernel, blocks, threads, (source, index, wins, out, outer, n, m, r))

    def _last_of_equals(self, index, m, n):
        """(m,) int32: 1 where no later place has the same index, else 0."""
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
        kernel = entry("gpu_indexing", "wrap", CODE[index.dtype.name], "T* i8* i8* i8 i8")
        operands = (self.contiguous(index), out, outside, count, n)
        self.launch(kernel, blocks_of(count, THREADS), THREADS, operands)
        first = self.item(outside)
        return -1 if first == count else first
