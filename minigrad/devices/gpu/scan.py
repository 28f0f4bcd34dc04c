"""Along one axis on a GPU: running sums, places of extremes, places of what is not 0."""

from minigrad.array.dtypes import int64
from minigrad.array.layout import size_of
from minigrad.devices.gpu.entries import CODE, blocks_of, entry
from minigrad.devices.gpu.table import GpuTable

THREADS, PIECE = 256, 2048  # of source/gpu_scan.py: BLOCK, and BLOCK * EACH
MANY = 4096  # sequences from which one thread per sequence fills a GPU
SHORT = 64  # elements up to which a thread takes a sequence


def split(shape, axis):
    """(outer, n, inner): the elements before, along and after an axis."""
    return size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])


def by_columns(outer, n, inner):
    """Whether a thread takes a whole sequence: it is short, or many lie side by side."""
    return n <= SHORT or (outer * inner >= MANY and inner >= 32)


class Scan(GpuTable):
    """cumsum, arg_reduce and nonzero of the device table (see `table.Device`)."""

    def cumsum(self, x, out, axis):
        if not x.size:
            return
        x = self.contiguous(x if x.dtype is out.dtype else self.convert(x, out.dtype))
        self._cumsum(x, out, *split(x.shape, axis))

    def _cumsum(self, x, out, outer, n, inner):
        code, sequences = CODE[out.dtype.name], outer * inner
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
        x = self.contiguous(x if x.dtype.is_float else self.convert(x, int64))
        outer, n, inner = split(x.shape, axis)
        code, sequences = CODE[x.dtype.name], outer * inner
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

    def nonzero(self, x):
        n = x.size
        if not n:
            return self.empty((0,), int64)
        x, code, pieces = self.contiguous(x), CODE[x.dtype.name], -(-n // PIECE)
        counts, before = self.empty((pieces,), int64), self.empty((pieces,), int64)
        kernel = entry("gpu_scan", "count_nonzero", code, "T* i8* i8")
        self.launch(kernel, pieces, THREADS, (x, counts, n))
        self._cumsum(counts, before, 1, pieces, 1)
        out = self.empty((self.item(before.view((), (), pieces - 1)),), int64)
        if out.size:
            kernel = entry("gpu_scan", "write_nonzero", code, "T* i8* i8* i8")
            self.launch(kernel, pieces, THREADS, (x, before, out, n))
        return out
