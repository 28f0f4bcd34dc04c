"""Memory of the host, for the pools of the devices that compute there."""

import numpy as np

from minigrad.memory.buffer import ALIGNMENT


def of_the_host(nbytes):
    """(ndarray of uint8, its address) at a multiple of ALIGNMENT: what a Pool allocates.

    Raises:
        MemoryError: if there is not so much.
    """
    try:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    except (ValueError, OverflowError) as error:  # more than an address can count
        raise MemoryError from error
    start = -memory.ctypes.data % ALIGNMENT
    memory = memory[start : start + nbytes]
    return memory, memory.ctypes.data
