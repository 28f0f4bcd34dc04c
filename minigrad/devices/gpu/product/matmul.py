"""Our own matrix products on a GPU: any strides, broadcast batches, sums over batches.

Results do not depend on the order in which blocks run.
"""

from minigrad.array.dtypes import int64
from minigrad.array.layout import expand_strides
from minigrad.devices.gpu.entries import blocks_of, entry
from minigrad.devices.gpu.product.matmul_plan import calls
from minigrad.devices.gpu.product.matmul_text import BIAS
from minigrad.devices.gpu.product.tensor_plan import tensor_calls
from minigrad.devices.gpu.table import GpuTable


def add_splits(device, parts, added, out, splits, numbers=None):
    """Run the second pass: see `source/gpu_matmul.py`. numbers: its arguments after count.

    Without numbers out is one contiguous matrix, and nothing is added.
    """
    count = parts.size // splits
    kernel = entry("gpu_matmul", "add_splits", out.dtype.code, "T* T* T*" + " i8" * 9)
    numbers = numbers or (1, count, 1, 0, 0, 0, 0)
    operands = (parts, added, out, splits, count, *numbers)
    device.launch(kernel, blocks_of(count, 256), 256, operands)


class Matmul(GpuTable):
    """Matrix products of the device table (see `table.Device`)."""

    has_tensor_cores = False  # which multiply halves as they are

    def matmul_narrow(self, a, b, out, bias=None, accumulate=False):
        if not self.has_tensor_cores or accumulate or not out.size:
            return False
        layouts = (a.shape, a.strides), (b.shape, b.strides), (out.shape, out.strides)
        remainders = a.address % 16, b.address % 16
        launches = tensor_calls(*layouts, out.dtype, remainders, bias is not None)
        if launches is None:
            return False
        added = out if bias is None else self.contiguous(bias)
        for call in launches:
            left, right, target = (
                x.view((), (), x.offset + at) if at else x
                for x, at in ((a, call.a_at), (b, call.b_at), (out, call.out_at))
            )
            operands = (left, right, added, target, *call.numbers)
            self.launch(call.kernel, call.grid, call.threads, operands)
        return True

    def matmul(self, a, b, out, bias=None, accumulate=False):
        if not out.size:
            return
        if not out.dtype.is_float:
            self._of_integers(a, b, out, bias)
        elif not a.shape[-1]:
            self._empty_sum(out, bias, accumulate)
        elif out.strides[-1] != 1 and out.shape[-1] > 1:
            self._scattered(a, b, out, bias, accumulate)
        else:
            self._product(a, b, out, bias, accumulate)

    def _of_integers(self, a, b, out, bias):
        """Multiply in int64 and convert to the dtype of out, as on the CPU."""
        a, b = (x if x.dtype is int64 else self.convert(x, int64) for x in (a, b))
        result = out
        if out.dtype is not int64 or (out.strides[-1] != 1 and out.shape[-1] > 1):
            result = self.empty(out.shape, int64)
        if not a.shape[-1]:
            self._empty_sum(result, bias, False)
        else:
            self._product(a, b, result, bias and self.convert(bias, int64), False)
        if result is not out:
            self.copy(result, out)

    def _empty_sum(self, out, bias, accumulate):
        if not accumulate:
            self.fill(out, 0) if bias is None else self.copy(bias, out)

    def _scattered(self, a, b, out, bias, accumulate):
        """Multiply into an Array with contiguous rows, since those of out are not; then copy."""
        sizes = tuple(1 if s == 0 else n for n, s in zip(out.shape, out.strides, strict=True))
        once = out.view((*sizes[:-2], *out.shape[-2:]), out.strides)
        dense = self.convert(once, out.dtype) if accumulate else self.empty(once.shape, out.dtype)
        strides = expand_strides(once.shape, dense.strides, out.shape)
        self._product(a, b, dense.view(out.shape, strides), bias, accumulate)
        self.copy(dense, once)

    def _product(self, a, b, out, bias, accumulate):
        remainders = a.address % 16, b.address % 16, out.address % 16
        if bias is not None:
            bias = self.contiguous(bias)
        layouts = (a.shape, a.strides), (b.shape, b.strides), (out.shape, out.strides)
        of_bias = None if bias is None else bias.address % 16
        for call in calls(*layouts, out.dtype, remainders, of_bias, accumulate):
            left, right, target = (
                x.view((), (), x.offset + at) if at else x
                for x, at in ((a, call.a_at), (b, call.b_at), (out, call.out_at))
            )
            added = bias if call.mode == BIAS else target
            if call.splits == 1:
                operands = (left, right, added, target, *call.numbers)
                self.launch(call.kernel, call.grid, call.threads, operands)
                continue
            parts = self.empty((call.splits, call.piece), out.dtype)
            operands = (left, right, parts, parts, *call.numbers)
            self.launch(call.kernel, call.grid, call.threads, operands)
            add_splits(self, parts, added, target, call.splits, call.second)
