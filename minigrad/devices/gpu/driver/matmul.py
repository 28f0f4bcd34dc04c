"""Matrix products on the GPU by NVIDIA's library cuBLAS, where it is installed and chosen.

The bindings are nvmath-python's, which take addresses and a stream; CuPy's need its own arrays. The
accuracy is that of float32: no tensor cores, no TF32.
"""

import ctypes
import functools
import importlib
import importlib.util
import os
from typing import Any

from minigrad.arguments import short
from minigrad.array.dtypes import DTYPES, float32
from minigrad.devices.gemm_plan import gemm_calls
from minigrad.devices.gpu.product.matmul import Matmul
from minigrad.devices.narrow import WRAPPERS
from minigrad.errors import ArgumentError, MissingLibraryError

CHOICES = ("own", "library")
INSTALL = 'pip install "minigrad[cuda-matmul]"'
_state: dict[str, str | None] = {"choice": None}


def is_installed():
    """Return whether the library's bindings are installed."""
    return importlib.util.find_spec("nvmath") is not None


def choice():
    """Return 'own' or 'library': MINIGRAD_CUDA_MATMUL, else the library if it is installed."""
    if _state["choice"] is None:
        asked = os.environ.get("MINIGRAD_CUDA_MATMUL")
        choose(asked or ("library" if is_installed() else "own"))
    return _state["choice"]


def choose(which):
    """Set how cuda multiplies, 'own' or 'library'; return the previous choice, or None."""
    if which not in CHOICES:
        raise ArgumentError(
            f"matrix products on cuda: wanted one of {', '.join(CHOICES)}", short(which)
        )
    if which == "library" and not is_installed():
        raise MissingLibraryError("cuBLAS is not installed", "no package nvmath", INSTALL)
    before, _state["choice"] = _state["choice"], which
    return before


class Cublas:
    """A cuBLAS handle on a stream, with the numbers 0 and 1 in memory for it."""

    def __init__(self, library, stream):
        self.library = library
        self.handle = library.create()
        library.set_stream(self.handle, stream)
        numbers = {d: getattr(ctypes, d.c) for d in DTYPES if d.is_float and d is d.arithmetic}
        self.kept = {d: (kind(0.0), kind(1.0)) for d, kind in numbers.items()}
        self.zero_one = {d: tuple(map(ctypes.addressof, pair)) for d, pair in self.kept.items()}

    def multiply(self, dtype, numbers, inner, addresses, accumulate):
        """Compute the products of one batch loop.

        cuBLAS stores matrices by columns and sees ours as transposed, so it computes
        out^T = b^T a^T. numbers, inner: see `gemm_calls`; addresses: those of a, b and out.
        """
        m, n, k, lda, ldb, ldc, ta, tb = numbers
        count, step_a, step_b, step_c = inner
        function = (
            self.library.sgemm_strided_batched
            if dtype is float32
            else self.library.dgemm_strided_batched
        )
        zero, one = self.zero_one[dtype]
        a, b, c = addresses
        left, right = (b, ldb, step_b), (a, lda, step_a)
        result = (c, ldc, step_c, count)
        beta = one if accumulate else zero
        function(self.handle, tb, ta, n, m, k, one, *left, *right, beta, *result)


class LibraryMatmul(Matmul):
    """The part of a device table with `matmul`, which calls the library where possible."""

    driver: Any  # the CUDA driver of the device

    @WRAPPERS["matmul"]  # the device's own stands behind this one: see `Cuda`
    def matmul(self, a, b, out, bias=None, accumulate=False):
        is_plain = out.dtype.is_float and out.size and a.shape[-1]
        if not is_plain or choice() == "own":
            super().matmul(a, b, out, bias, accumulate)
            return
        how = gemm_calls(a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
        if how is None:
            super().matmul(a, b, out, bias, accumulate)
            return
        self.driver.ready()
        if bias is not None:
            self.copy(bias, out)
        numbers, inner, offsets = how
        size, starts = out.dtype.itemsize, (a.address, b.address, out.address)
        has_sum = accumulate or bias is not None
        for steps in offsets:
            at = [start + size * step for start, step in zip(starts, steps, strict=True)]
            if inner[3] == 0 and inner[0] > 1:  # a batch adds to one matrix, so one after the other
                for i in range(inner[0]):
                    moved = [x + size * i * s for x, s in zip(at, inner[1:], strict=True)]
                    self.cublas.multiply(out.dtype, numbers, (1, 0, 0, 0), moved, has_sum)
            else:
                self.cublas.multiply(out.dtype, numbers, inner, at, has_sum)

    @functools.cached_property
    def cublas(self):
        """Start the library at the first product; return its handle."""
        library = importlib.import_module("nvmath.bindings.cublas")
        return Cublas(library, int(self.driver.stream.handle))
