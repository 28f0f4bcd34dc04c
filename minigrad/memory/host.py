"""Allocates host memory for the pools of devices that compute on the host."""

import numpy as np

from minigrad.memory.buffer import ALIGNMENT


def of_the_host(nbytes):
    """Allocates memory: the `allocate` of a Pool.

    Returns:
        (ndarray of uint8, its address), the address a multiple of ALIGNMENT.

    Raises:
        MemoryError: there is not enough memory.
    """
    try:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    except (ValueError, OverflowError) as error:  # larger than the address space
        raise MemoryError from error
    start = -memory.ctypes.data % ALIGNMENT
    memory = memory[start : start + nbytes]
    return memory, memory.ctypes.data
