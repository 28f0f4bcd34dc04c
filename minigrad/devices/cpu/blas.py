"""Multiplies matrices on the CPU: by NumPy's own BLAS, called by symbol, or else np.matmul."""

import ctypes
import functools
import glob
import os
import threading
from contextlib import nullcontext
from typing import Any

import numpy as np

from minigrad.array.array import ndarray
from minigrad.devices import loader
from minigrad.devices.cpu.own_matmul import own_matmul
from minigrad.devices.cpu.own_matmul import state as own_state
from minigrad.devices.cpu.own_matmul import use_own as use_own
from minigrad.devices.gemm_plan import gemm_calls, readable
from minigrad.devices.threads import chosen, find_yield, threads
from minigrad.memory.interrupts import uninterrupted

ALONE = 1 << 18  # multiplications up to which OpenBLAS uses one thread anyway
SHARED = 1 << 19  # multiplications from which our threads share a product
COUNT = "scipy_openblas_{}_num_threads64_"  # OpenBLAS functions that get or set its thread count


@functools.cache
def find_blas():
    """Return NumPy's OpenBLAS, or None if not found, and register its gemm with LLVM.

    NumPy has already loaded this library, so it needs no SciPy and no second thread pool.
    """
    if os.environ.get("MINIGRAD_BLAS") == "numpy":
        return None
    loader.hold_over_forks()
    with loader.lock:  # around imports, as explained there
        import llvmlite.binding as llvm  # with the first product: importing minigrad stays quick

    root = os.path.dirname(os.path.dirname(np.__file__))
    for folder in (os.path.join(root, "numpy.libs"), os.path.join(root, "numpy", ".dylibs")):
        for path in sorted(glob.glob(os.path.join(folder, "*openblas*"))):
            library = ctypes.CDLL(path)
            gemms = [getattr(library, f"scipy_cblas_{t}gemm64_", None) for t in "sd"]
            if all(gemms):
                for name, function in zip("sd", gemms, strict=True):
                    assert function is not None
                    address = ctypes.cast(function, ctypes.c_void_p).value
                    llvm.add_symbol(f"minigrad_{name}gemm", address)
                if (count := chosen()) is not None:  # one setting for both thread pools
                    getattr(library, COUNT.format("set"), lambda count: None)(count)
                return library
    return None


class SingleThreaded:
    """Makes BLAS products single-threaded in the whole process while the block lasts.

    For work that our own threads already share: on a busy machine, two pools that wait for each
    other are many times slower than one.
    """

    def __init__(self):
        self._lock, self._before = threading.RLock(), 1
        self._inside = set()  # threads; one that Ctrl-C interrupted leaves after its next block

    @uninterrupted
    def __enter__(self):
        with self._lock:
            is_first = not self._inside
            self._inside.add(threading.get_ident())
            if is_first:
                self._before = _counts("get")()
                if self._before != 1:
                    _counts("set")(1)
        return self

    @uninterrupted
    def __exit__(self, *error):
        with self._lock:
            if len(self._inside) == 1 and self._before != 1:
                _counts("set")(self._before)
            self._inside.discard(threading.get_ident())

    def unless_inside(self):
        """Return this block, or one that does nothing: blocks of one thread do not nest."""
        return nullcontext() if threading.get_ident() in self._inside else self

    def renew(self):
        """Reset in a forked child: no other thread is inside or will release the lock."""
        self._lock = threading.RLock()
        if self._inside and self._before != 1:
            _counts("set")(self._before)
        self._inside.clear()


@functools.cache
def _counts(what):
    """Return the OpenBLAS function that gets or sets its thread count."""
    return getattr(find_blas(), COUNT.format(what), lambda *count: 1)


single_threaded = SingleThreaded()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=single_threaded.renew)


@functools.cache
def gemm(dtype):
    """Return the compiled gemm of a dtype, or None without BLAS symbols."""
    return find_blas() and loader.source_kernel("blas", "gemm", dtype.code)


def matmul(a, b, out, bias=None, contiguous=None, accumulate=False):
    """Compute out = a @ b (+ bias) for Arrays of one float dtype, at least two axes each.

    Args:
        bias: an Array (n,), contiguous, or None.
        contiguous: copies an Array to C order; used for an operand whose strides BLAS cannot take.
        accumulate: add to the values of `out`, and sum over its batch axes of stride 0.
    """
    if own_state.is_used:
        start = "out" if accumulate else "zero" if bias is None else bias
        own_matmul(a, b, out, contiguous, start)
        return
    dtype = out.dtype
    function = gemm(dtype)
    if function is None or not out.size or not a.shape[-1]:
        _with_numpy(a, b, out, bias, accumulate)  # an empty sum as well: zeros or no change
        return
    how = gemm_calls(a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
    if how is None:
        _piecewise(a, b, out, bias, contiguous, accumulate)
        return
    numbers, inner, offsets = how
    size = dtype.itemsize
    row = -1 if accumulate else 0 if bias is None else bias.address
    a_at, b_at, c_at = (x.buffer.address + size * x.offset for x in (a, b, out))
    for i, j, k in offsets:
        places = a_at + size * i, b_at + size * j, c_at + size * k
        _multiply(dtype, places, numbers, row, inner)


def _multiply(dtype, places, numbers, row, inner):
    """Call gemm on the addresses of a, b and c. Our threads share a large product, BLAS' never do.

    Those spin while they wait for one another: where other processes want the processors, too, a
    product of microseconds takes milliseconds.
    """
    function: Any = gemm(dtype)
    m, n, k = numbers[:3]
    work = m * n * k * inner[0]
    if work <= ALONE:
        function(*places, *numbers, row, *inner)
        return
    parts = threads.count if work >= SHARED else 1
    with single_threaded.unless_inside():
        if parts == 1:
            function(*places, *numbers, row, *inner)
            return
        find_yield()
        product = loader.source_kernel("product", "product", dtype.code)
        rest = (parts, *places, *numbers, row, *inner)
        threads.run(product, [(t, *rest) for t in range(parts)])


def bound_product(a, b, out, has_bias):
    """Return (code, integer arguments after the addresses of a, b, bias if any, and out).

    Return None where `matmul` would not call gemm exactly once.
    """
    dtype = out.dtype
    function = gemm(dtype) if dtype.is_float else None
    if function is None or not out.size or not a.shape[-1]:
        return None
    how = gemm_calls(a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
    if how is None or len(how[2]) != 1:
        return None
    numbers, inner, _ = how
    if has_bias:
        return (lambda a, b, row, c: _multiply(dtype, (a, b, c), numbers, row, inner)), ()
    if numbers[0] * numbers[1] * numbers[2] * inner[0] > ALONE:
        return (lambda a, b, c: _multiply(dtype, (a, b, c), numbers, 0, inner)), ()
    return function, (*numbers, 0, *inner)


def _with_numpy(a, b, out, bias, accumulate):
    target = ndarray(out)
    if accumulate:
        for index, product in zip(
            np.ndindex(*out.shape[:-2]),
            np.matmul(ndarray(a), ndarray(b)).reshape(-1, *out.shape[-2:]),
            strict=True,
        ):
            target[index] += product
        return
    np.matmul(ndarray(a), ndarray(b), out=target)
    if bias is not None:
        target += ndarray(bias)


def _piecewise(a, b, out, bias, contiguous, accumulate):
    """Multiply one matrix at a time, copying only those that BLAS cannot read."""
    if len(out.shape) == 2:
        fix = [x if readable(x.shape, x.strides) else contiguous(x) for x in (a, b)]
        matmul(fix[0], fix[1], out, bias, None, accumulate)
        return
    for i in range(out.shape[0]):
        left, right, target = (_part(x, i, len(out.shape)) for x in (a, b, out))
        matmul(left, right, target, bias, contiguous, accumulate)


def _part(x, i, rank):
    if len(x.shape) < rank:
        return x
    step = 0 if x.shape[0] == 1 else x.strides[0]
    return x.view(x.shape[1:], x.strides[1:], x.offset + i * step)
