"""The beginning of every GPU kernel file for the simulator: names that it knows, no compiler."""

import math  # noqa: F401 - for the kernels that follow this text

import numpy as np

from minigrad.simt.language.language import (  # noqa: F401 - as above
    atomic_add,
    atomic_max,
    atomic_min,
    cp_async,
    cp_async_commit,
    cp_async_wait,
    cuda,
    ldmatrix,
    ldmatrix_trans,
    load4,
    mma_bf16,
    mma_f16,
    store4,
)

F2, F4, F8 = np.float16, np.float32, np.float64
B2 = np.uint16  # the bits of a bfloat16: see rounding.py
I2, I4, I8, U1, U4, U8 = np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64


def exact_jit(function):
    """Mark a device function, which kernels may call."""
    return function


device = exact_jit
