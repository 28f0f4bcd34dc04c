"""Convolutions on a GPU as matrix products that read windows from the images."""

import functools

import numpy as np

from minigrad.array.dtypes import int32
from minigrad.devices.cpu.direct import border, turned
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.devices.gpu.product.convolution_text import ROWS, signature, text
from minigrad.devices.gpu.product.matmul import add_splits
from minigrad.devices.gpu.product.matmul_plan import SMALL, pieces_of
from minigrad.devices.gpu.product.matmul_text import WIDE
from minigrad.devices.gpu.table import GpuTable

TILE, MOST_IMAGES = SMALL, 65535  # of a launch: blocks along the third axis of a grid


@functools.cache
def kernel(what):
    """Return the GpuKernel for 'output' or 'kernels', float32."""
    return gpu_kernel(text(TILE, "f4", what), signature("f4"))


class Convolution(GpuTable):
    """The device table's functions for convolutions (see `table.Device`): float32."""

    def convolves(self, what, dtype, shape, kernels, window):
        """Return whether there is a kernel: for one group, and for image gradients of stride 1."""
        n, c, h, w = shape
        fits = dtype.name == "float32" and c == kernels[1] and c * h * w < 1 << 31
        return fits and min(n, *kernels) > 0 and (what != "input" or window.stride == (1, 1))

    def convolve(self, x, w, bias, out, window):
        (n, o, oh, ow), w = out.shape, self.contiguous(w)
        rows, pixels = w.size // o, oh * ow
        x_image, out_image = x.size // n, o * pixels
        taps = self._taps(x.shape, window)
        is_wide = pixels % 4 == 0 and out.address % 16 == 0
        mode = (ROWS if bias is not None else 0) | (WIDE if is_wide else 0)
        tiles = -(-o // TILE.rows), -(-pixels // TILE.columns)
        for first in range(0, n, MOST_IMAGES):
            count = min(n - first, MOST_IMAGES)
            left = x.view((), (), x.offset + first * x_image)
            target = out.view((), (), out.offset + first * out_image)
            operands = (
                w, left, target if bias is None else bias, target, taps,
                o, pixels, rows, rows, 1, 0, 0, 1, 0, 0,
                count, 0, 0, 0, 0, x_image, out_image,
                pixels, 0, *tiles, -(-rows // TILE.depth), mode, *_geometry(x, window),
            )  # fmt: skip
            grid = (tiles[0] * tiles[1], 1, count)
            self.launch(kernel("output"), grid, TILE.threads, operands)

    def convolve_back(self, g, w, out, window):
        w = w.view(*turned(w.shape, w.strides, w.offset))
        self.convolve(g, w, None, out, border(window))

    def correlate(self, g, x, out, window):
        (n, o), pixels = g.shape[:2], g.shape[2] * g.shape[3]
        rows = out.size // o
        taps = self._taps(x.shape, window)
        tiles = -(-o // TILE.rows), -(-rows // TILE.columns)
        splits, per_split = pieces_of(n * -(-pixels // TILE.depth), TILE.depth, tiles[0] * tiles[1])
        target = out if splits == 1 else self.empty((splits, out.size), out.dtype)
        is_wide = rows % 4 == 0 and target.address % 16 == 0
        operands = (
            g, x, target, target, taps,
            o, rows, pixels, pixels, 1, 0, 0, n, o * pixels, x.size // n,
            1, 0, 0, 0, 0, 0, 0,
            rows, out.size, *tiles, per_split, WIDE if is_wide else 0, *_geometry(x, window),
        )  # fmt: skip
        grid = (tiles[0] * tiles[1], splits, 1)
        self.launch(kernel("kernels"), grid, TILE.threads, operands)
        if splits > 1:
            add_splits(self, target, out, out, splits)

    def _taps(self, shape, window):
        """Return (taps, 3) int32: per (channel, ki, kj) its offset, rows down, columns right.

        Cached, since a training loop needs the same few again and again.
        """
        key = shape[1:], window.kernel, window.dilation
        kept = vars(self).setdefault("_kept_taps", {})
        if key not in kept:
            if len(kept) >= 256:
                kept.clear()
            (c, h, w), (kh, kw), (dh, dw) = key
            channel, i, j = np.indices((c, kh, kw)).reshape(3, -1)
            table = np.stack([channel * h * w + i * dh * w + j * dw, i * dh, j * dw], 1)
            kept[key] = self.from_numpy(table, int32)
        return kept[key]


def _geometry(x, window):
    """Return h, w, ow, sh, sw, ph, pw."""
    return (*x.shape[2:], window.counts(x.shape[2:])[1], *window.stride, *window.padding)
