"""Runs our own blocked matrix product, to read and to compare with BLAS.

with use_own():
    y = a @ b          # on this thread, without BLAS
"""

import itertools
import threading

import numpy as np

from minigrad.devices import loader
from minigrad.devices.threads import threads
from minigrad.memory.interrupts import block

SPLIT = 1 << 20  # multiplications from which the rows are split into one range per thread


class _State(threading.local):
    is_used = False


state = _State()


@block
def use_own():
    """Run this thread's matrix products of floats on our own kernel within the block."""
    before, state.is_used = state.is_used, True
    try:
        yield
    finally:
        state.is_used = before


def own_matmul(a, b, out, contiguous, start):
    """Compute out = start + a @ b over Arrays of one float dtype, batch axes broadcast.

    a may have any strides; rows of b and out must be contiguous. If those of b are not, it is
    copied one matrix at a time.

    Args:
        contiguous: a function that copies an Array to C order.
        start: what each element begins with: 'zero', 'out' (its value so far) or an Array (n,).
    """
    batch = out.shape[:-2]
    for index in np.ndindex(*batch):
        left, right, target = (_matrix(x, index, len(batch)) for x in (a, b, out))
        if right.strides[1] != 1 and right.shape[1] > 1:
            right = contiguous(right)
        _product(left, right, target, start)


def _matrix(x, index, rank):
    """Return one matrix of a batch; axes that are missing or of size 1 are broadcast."""
    mine = index[rank - (len(x.shape) - 2) :]
    offset = x.offset
    for i, n, s in zip(mine, x.shape, x.strides, strict=False):
        offset += 0 if n == 1 else i * s
    return x.view(x.shape[-2:], x.strides[-2:], offset)


def _product(a, b, c, start):
    (m, k), n, size = a.shape, b.shape[1], c.dtype.itemsize
    row = {"zero": 0, "out": -1}.get(start, 0) if isinstance(start, str) else start.address
    numbers = (n, k, a.strides[0], a.strides[1], b.strides[0], c.strides[0], row)
    parts = min(threads.count, max(1, m // 4)) if m * n * k >= SPLIT else 1
    cuts = [m * p // parts // 4 * 4 for p in range(parts)] + [m]
    calls = [
        (
            a.address + first * a.strides[0] * size,
            b.address,
            c.address + first * c.strides[0] * size,
            last - first,
            *numbers,
        )
        for first, last in itertools.pairwise(cuts)
    ]
    threads.run(loader.source_kernel("matmul", "blocked", c.dtype.code), calls)
