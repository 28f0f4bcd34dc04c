"""bfloat16 as bits: the upper half of a float32, which NumPy sees as uint16."""

import ctypes
import functools

import numpy as np

from minigrad.errors import DTypeError

NAN = 0x7FC0
UINT, BFLOAT = 1, 4  # DLPack's codes of types (dlpack.h, DLDataTypeCode)
TENSORS = {b"dltensor": 0, b"dltensor_versioned": 16 + 2 * ctypes.sizeof(ctypes.c_void_p)}
TYPE_AT = 12 + ctypes.sizeof(ctypes.c_void_p)  # in a DLTensor, behind pointer, device and rank


@functools.cache
def outside(name="x"):
    """Return the dtype that ml_dtypes adds to NumPy. Raise DTypeError if it is not installed.

    name: what the user may convert instead, in the message.
    """
    try:
        import ml_dtypes
    except ImportError:
        raise DTypeError(
            "bfloat16: wanted the package ml_dtypes, since NumPy has no such numbers",
            "it is not installed",
            f"{name}.to('float32'), which has all of them, or pip install 'minigrad[bfloat16]'",
        ) from None
    return np.dtype(ml_dtypes.bfloat16)


def widened(cells):
    """Return the float32 numbers of bits."""
    words = np.empty(cells.shape, np.uint32)
    np.left_shift(cells, np.uint32(16), out=words)
    return words.view(np.float32)


def rounded(numbers):
    """Return the bits of the nearest numbers, to even between two. Ints become float32 first."""
    if numbers.dtype.name == "bfloat16":
        return numbers.view(np.uint16)
    with np.errstate(all="ignore"):
        near = np.asarray(numbers.astype(np.float32))
        words, is_nan = near.view(np.uint32), np.isnan(near)
        if numbers.dtype.kind == "f" and numbers.dtype.itemsize > near.itemsize:
            # What is not exact gets an odd last bit, as if more followed: so it rounds only once.
            away, inexact = np.abs(near) > np.abs(numbers), (near != numbers) & ~is_nan
            words = np.where(inexact, (words - away) | np.uint32(1), words)
        bits = (words >> np.uint32(16)) & np.uint32(1)
        bits += np.uint32(0x7FFF)
        bits += words
        bits >>= np.uint32(16)
        cells = np.asarray(bits).astype(np.uint16)
        if is_nan.any():
            cells[is_nan] = (words[is_nan] >> np.uint32(16)) & np.uint32(0x8000) | np.uint32(NAN)
        return cells


class Bfloats:
    """Another library's array of bfloat16, as NumPy can read it by DLPack: as uint16."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return _relabelled(self.array.__dlpack__(**options), BFLOAT, UINT)

    def __dlpack_device__(self):
        return 1, 0  # kDLCPU


def as_bfloats(capsule):
    """Return a DLPack capsule of uint16, its elements now bfloat16."""
    return _relabelled(capsule, UINT, BFLOAT)


def _relabelled(capsule, old, new):
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [
        ctypes.py_object, ctypes.c_char_p
    ]  # fmt: skip
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    for name, at in TENSORS.items():
        if api.PyCapsule_IsValid(capsule, name):
            address = api.PyCapsule_GetPointer(capsule, name) + at + TYPE_AT
            kind = (ctypes.c_uint8 * 2).from_address(address)  # code and bits
            if tuple(kind) == (old, 16):
                kind[0] = new
                return capsule
    raise BufferError("wanted a DLPack capsule of bfloat16")
