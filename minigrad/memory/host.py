"""Memory of the host, for the pools of the devices that compute there."""

import numpy as np

from minigrad.memory.buffer import ALIGNMENT


class _Bytes:
    """Memory at an address, as NumPy takes it over."""

    def __init__(self, address, nbytes):
        self.__array_interface__ = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, False),
        }  # fmt: skip


def bytes_at(address, nbytes):
    """An ndarray of uint8 over memory that somebody else keeps; a view of no other ndarray.

    (A ctypes array has a class for each size, and a class is a reference cycle.)
    """
    return np.asarray(_Bytes(address, nbytes)) if nbytes else np.empty(0, np.uint8)


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
