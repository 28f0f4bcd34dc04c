"""Addresses of ndarrays, and ndarrays over memory at an address."""

import numpy as np
from numpy.lib.array_utils import byte_bounds


class _Bytes:
    """Memory at an address, with NumPy's array interface."""

    def __init__(self, address, nbytes):
        self.__array_interface__ = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, False),
        }  # fmt: skip


def bytes_at(address, nbytes):
    """Return an ndarray of uint8 over memory that the caller keeps alive; it has no base ndarray.

    (A ctypes array has a class for each size, and a class is a reference cycle.)
    """
    return np.asarray(_Bytes(address, nbytes)) if nbytes else np.empty(0, np.uint8)


def spans(arrays):
    """Return [first address, one past the last] of ndarrays' bytes; overlapping ones share one."""
    merged = []
    for low, high in sorted(map(byte_bounds, arrays)):
        if merged and low < merged[-1][1]:
            merged[-1][1] = max(high, merged[-1][1])
        else:
            merged.append([low, high])
    return merged
