"""Plans matrix products as calls of gemm, whichever library has it: what it can read in place."""

import functools

import numpy as np


def _matrix(shape, strides):
    """Return (leading dimension, transposed) of the last two axes for BLAS, or None."""
    (m, n), (s, t) = shape[-2:], strides[-2:]
    if (t == 1 or n == 1) and (m == 1 or s >= max(n, 1)):
        return (s if m > 1 else max(n, 1)), 0
    if (s == 1 or m == 1) and (n == 1 or t >= max(m, 1)):
        return (t if n > 1 else max(m, 1)), 1
    return None


def readable(shape, strides):
    """Return whether BLAS can read the last two axes in place, transposed or not."""
    return _matrix(shape, strides) is not None


@functools.lru_cache(maxsize=4096)
def gemm_calls(a_shape, a_strides, b_shape, b_strides, c_shape, c_strides):
    """Plan the calls of gemm for these layouts.

    Return (m, n, k, lda, ldb, ldc, ta, tb), the size and steps of the batch loop within a call, and
    element offsets for the remaining batch indices. Return None if an operand must be copied.
    """
    a, b, c = (
        _matrix(*x) for x in ((a_shape, a_strides), (b_shape, b_strides), (c_shape, c_strides))
    )
    if a is None or b is None or c is None or c[1]:
        return None
    m, k, n = a_shape[-2], a_shape[-1], b_shape[-1]
    batch = c_shape[:-2]
    steps = [_steps(x, y, batch) for x, y in ((a_shape, a_strides), (b_shape, b_strides))]
    steps.append(c_strides[:-2])
    numbers = (m, n, k, a[0], b[0], c[0], a[1], b[1])
    if not batch:
        return numbers, (1, 0, 0, 0), ((0, 0, 0),)
    inner = (batch[-1], *(s[-1] for s in steps))
    offsets = tuple(
        tuple(sum(i * s for i, s in zip(index, step, strict=False)) for step in steps)
        for index in np.ndindex(*batch[:-1])
    )
    return numbers, inner, offsets


def _steps(shape, strides, batch):
    pad = len(batch) - (len(shape) - 2)
    return (0,) * pad + tuple(
        0 if n == 1 else s for n, s in zip(shape[:-2], strides[:-2], strict=True)
    )
