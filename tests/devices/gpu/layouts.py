"""Arrays of any layout on a device, and arrays to be given such layouts."""

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from minigrad.array import dtypes
from minigrad.array.dtypes import as_dtype
from minigrad.devices.gpu.simt import Simt

watched = Simt()
watched.watch = True  # every test of kernels is one of races and uninitialised reads too


def on(device, x):
    """An Array with the layout of an ndarray: over a copy of all the memory that it views."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    step = x.dtype.itemsize
    start = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    whole = device.from_numpy(np.ravel(base, "K"), as_dtype(x.dtype))
    return whole.view(x.shape, tuple(s // step for s in x.strides), start // step)


def off(device, x):
    """The elements of an Array; those of bfloat16 as `plain` gives them."""
    return x.dtype.numbers(device.to_numpy(x))


def plain(x):
    """An ndarray, as float32 if it is of bfloat16, for which NumPy has few functions."""
    return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x


def numbers(rng, shape, dtype):
    """Random elements: floats around 0, small ints, bools."""
    dtype = np.dtype(dtype)
    if "float" in dtype.name:
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype)


def arranged(rng, shape, dtype, how):
    """A new ndarray of a shape: 'plain', 'shifted' by one element, 'turned' axes, 'stepped'
    (every second element), 'reversed', or 'broadcast' along the first axis and the last.
    """
    if how == "shifted":
        return numbers(rng, int(np.prod(shape)) + 1, dtype)[1:].reshape(shape)
    if how == "turned":
        return numbers(rng, shape[::-1], dtype).T
    if how == "stepped":
        return numbers(rng, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    if how == "reversed":
        return np.flip(numbers(rng, shape, dtype), (0, -1) if len(shape) > 1 else 0)
    if how == "broadcast":
        small = [1 if axis in (0, len(shape) - 1) else n for axis, n in enumerate(shape)]
        return np.broadcast_to(numbers(rng, small, dtype), shape)
    return numbers(rng, shape, dtype)


LAYOUTS = st.sampled_from(["plain", "shifted", "turned", "stepped", "reversed", "broadcast"])
OUT_LAYOUTS = st.sampled_from(["plain", "shifted", "turned", "stepped", "reversed"])
DTYPES = st.sampled_from([d.name for d in dtypes.DTYPES])
SIZES = st.sampled_from([1, 2, 3, 4, 5, 8, 12, 31, 32, 33, 64])
