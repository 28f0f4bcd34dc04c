"""Windows on a GPU: as columns, their sums, their largest elements."""

from minigrad.devices.gpu.entries import CODE, entry
from minigrad.devices.gpu.indexing import rows_of
from minigrad.devices.gpu.table import GpuTable
from minigrad.devices.loader import MOVED

SIZES = " i8" * 16


class Windows(GpuTable):
    """Functions of the device table for convolution and pooling (see `table.Device`)."""

    columns = 1 << 24  # elements of unfolded windows at once, where convolutions need them

    def unfold(self, x, out, window):
        sizes = (*x.shape[:2], *window.sizes(x.shape))
        taps = x.shape[1] * window.kernel[0] * window.kernel[1]
        kernel = entry("gpu_windows", "unfold", MOVED[x.dtype.itemsize], "T* T*" + SIZES)
        blocks, threads = rows_of(x.shape[0] * taps, sizes[4] * sizes[5])
        operands = (x, out, *sizes, out.strides[1], out.strides[0])
        self._over_windows(kernel, blocks, threads, operands, out)

    def fold(self, columns, out, window):
        (n, c, h, w), sizes = out.shape, (*out.shape[:2], *window.sizes(out.shape))
        kernel = entry("gpu_windows", "fold", CODE[out.dtype.name], "T* T*" + SIZES)
        blocks, threads = rows_of(n * c, h * w)
        operands = (columns, out, *sizes, columns.strides[1], columns.strides[0])
        self._over_windows(kernel, blocks, threads, operands, out)

    def largest(self, x, out, window):
        (n, c), sizes = x.shape[:2], (*x.shape[:2], *window.sizes(x.shape))
        kernel = entry("gpu_windows", "largest", CODE[x.dtype.name], "T* i8*" + " i8" * 14)
        blocks, threads = rows_of(n * c, sizes[4] * sizes[5])
        self._over_windows(kernel, blocks, threads, (x, out, *sizes), out)

    def _over_windows(self, kernel, blocks, threads, operands, out):
        if out.size:
            self.launch(kernel, blocks, threads, operands)
