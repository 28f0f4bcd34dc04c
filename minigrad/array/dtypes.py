"""The table of element types, and the rules for choosing one."""

import math
from typing import Any

import numpy as np

from minigrad.arguments import short
from minigrad.errors import DTypeError


class DType:
    """An element type: a row of TABLE, with all that the engine knows of it.

    Attributes:
        index: its place in TABLE.
        numpy, itemsize: NumPy's dtype and its bytes. Safetensors and DLPack get arrays of it.
        kind: 'f' floating point, 'i' integer (signed or not), 'b' truth value.
        code: of the type that stores an element in kernels, as in the signature `f4* f4`.
        text, pointer: what kernels call that type, `F4`, and a pointer to it, `f4_at`.
        storage: NumPy's type of that name, which is also Numba's.
        moved: the code of the ints as which copies move elements.
        c: the type in C: `c_float` of ctypes.
        arithmetic: the DType in which kernels compute with elements.
        limits: the least and the largest finite value.
        overflow: the float from which on a number rounds to infinity; of ints None.
    """

    __slots__ = (
        "arithmetic", "c", "code", "index", "is_float", "itemsize", "kind", "limits", "moved",
        "name", "numpy", "overflow", "pointer", "storage", "text",
    )  # fmt: skip

    def __init__(self, index, name, code, arithmetic, c, precision=None):
        self.name: str = name
        self.index, self.numpy = index, np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.kind = "i" if self.numpy.kind == "u" else self.numpy.kind
        self.is_float = self.kind == "f"
        self.code, self.text, self.pointer = code, code.upper(), f"{code}_at"
        self.storage, self.c = np.dtype(code).type, f"c_{c}"
        self.moved = "u1" if self.itemsize == 1 else f"i{self.itemsize}"
        self.arithmetic: Any = arithmetic
        self.limits, self.overflow = _limits(self.numpy, precision)

    @property
    def dtype(self):
        """The NumPy dtype; under this name NumPy looks for it: np.zeros(3, x.dtype)."""
        return self.numpy

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        """Whether other is this dtype or another spelling of it: see `as_dtype`."""
        return self is (other if isinstance(other, DType) else find_dtype(other))

    __hash__ = object.__hash__  # each dtype is one object, the key of its kernels

    def __reduce__(self):
        return (by_name, (self.name,))  # unpickling returns the one object of this name


def _limits(dtype, precision):
    """((least, largest), overflow) of a NumPy dtype; see DType."""
    if precision is not None:
        digits, exponent = precision
        largest = math.ldexp(1.0 - 2.0**-digits, exponent)
        return (-largest, largest), largest + math.ldexp(0.5, exponent - digits)
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize - (dtype.kind == "i")
    return (-(1 << bits) if dtype.kind == "i" else 0, (1 << bits) - 1), None


TABLE = (  # name, code, arithmetic, c; of floats (digits of the significand, exponent of 2)
    ("float32", "f4", "float32", "float", (24, 128)),
    ("float64", "f8", "float64", "double", (53, 1024)),
    ("int32", "i4", "int64", "int32"),
    ("int64", "i8", "int64", "int64"),
    ("uint8", "u1", "int64", "uint8"),
    ("bool", "u1", "bool", "bool"),
)
DTYPES = [DType(index, *row) for index, row in enumerate(TABLE)]
float32, float64, int32, int64, uint8, bool_ = DTYPES
_BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES}
BY_NUMPY: dict[Any, DType] = {d.numpy: d for d in DTYPES}
for _dtype in DTYPES:
    _dtype.arithmetic = _BY_NAME[_dtype.arithmetic]
# What a word of a kernel's signature stands for: the elements of dtypes, and 32 bits.
WORDS = {d.code: d.storage for d in DTYPES} | {"u4": np.uint32}


def by_name(name):
    """The DType with a name."""
    return _BY_NAME[name]


OF_KIND = {"b": bool_, "i": int64, "f": float32}  # of Python's bools, ints and floats
# The dtypes of Python's numbers, and PyTorch's names where NumPy's codes differ or do not exist.
SPELLINGS: dict[Any, DType] = {
    float: float32, "float": float32, int: int64, "int": int64, bool: bool_, "long": int64,
}  # fmt: skip


def find_dtype(spelling):
    """The DType of any spelling that `as_dtype` takes, or None."""
    if isinstance(spelling, DType):
        return spelling
    if spelling is None or isinstance(spelling, (int, float)):
        return None
    if str(spelling).startswith("torch."):  # a dtype of PyTorch or its name
        spelling = str(spelling).removeprefix("torch.")
    if isinstance(spelling, (str, type)) and spelling in SPELLINGS:
        return SPELLINGS[spelling]
    try:
        return BY_NUMPY.get(np.dtype(spelling))
    except (TypeError, ValueError, SyntaxError):  # ValueError: of a Variable
        return None


def as_dtype(dtype):
    """The DType of a spelling: a DType, a name, a Python type, or a dtype of NumPy or PyTorch.

    Python's types stand for the dtypes of Python's numbers: `float` and 'float' are float32, `int`
    and 'int' are int64. All other names and codes are NumPy's: 'double' and 'f8' are float64.

    >>> as_dtype("float64"), as_dtype(float), as_dtype("float"), as_dtype("double"), as_dtype(bool)
    (float64, float32, float32, float64, bool)
    """
    found = dtype if isinstance(dtype, DType) else find_dtype(dtype)
    if found is None:
        raise DTypeError(
            f"wanted one of {', '.join(_BY_NAME)}",
            short(dtype),
            "convert the data first: x.astype('float32')"
            if isinstance(dtype, (np.dtype, type))
            else None,
        )
    return found


def real_of(dtypes):
    """Return the dtype in which a kernel over arrays of these computes floats: the widest."""
    reals = [d.arithmetic for d in dtypes if d.is_float]
    return max(reals, key=lambda d: d.itemsize) if reals else float32


def promote(a, b):
    """The dtype of an elementwise result of arrays of dtypes a and b.

    For two dtypes of one kind it is the larger; a float with an int or bool stays the same.
    """
    if a is b:
        return a
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    for kind in "fi":
        if a.kind == kind:
            return a
        if b.kind == kind:
            return b
    return a
