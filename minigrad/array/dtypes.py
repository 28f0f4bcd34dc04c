"""The table of element types, and the rules for choosing one."""

import difflib
import math
from typing import Any

import numpy as np

from minigrad.arguments import short
from minigrad.array.bits import outside, rounded, widened
from minigrad.errors import ArgumentTypeError, DTypeError


class DType:
    """An element type: a row of TABLE, with all that the engine knows about it.

    Attributes:
        index: the position in TABLE.
        numpy: NumPy's dtype, for what leaves the engine; that of bfloat16 is from ml_dtypes.
        memory, itemsize: the dtype by which NumPy sees the engine's memory, and its size in bytes.
        is_coded: whether that are bits, as NumPy has no such numbers: see `numbers` and `cells`.
        kind: 'f' floating point, 'i' integer (signed or not), 'b' truth value.
        code: the code of the storage type in kernel signatures, such as `f4* f4`.
        text, pointer: the names of the storage type, `F4`, and of a pointer to it, `f4_at`.
        storage: NumPy's scalar type for storage; Numba has a type of the same name.
        moved: the code of the integer type of the same size, which copies use to move elements.
        c: the type in ctypes, such as `c_float`.
        arithmetic: the DType in which kernels compute with elements.
        is_narrow: whether that is a wider float: each result is rounded when it is stored.
        limits: the smallest and the largest finite value.
        overflow: the smallest float that rounds to infinity; None for ints.
    """

    __slots__ = (
        "arithmetic", "c", "code", "index", "is_coded", "is_float", "is_narrow", "itemsize", "kind",
        "limits", "memory", "moved", "name", "overflow", "pointer", "storage", "text",
    )  # fmt: skip

    def __init__(self, index, name, code, arithmetic, c, precision=None, bits=None):
        self.name: str = name
        self.index, self.is_coded, self.memory = index, bits is not None, np.dtype(bits or name)
        self.itemsize = self.memory.itemsize
        kind = "f" if precision else self.memory.kind
        self.kind = "i" if kind == "u" else kind
        self.is_float = self.kind == "f"
        self.code, self.text, self.pointer = code, code.upper(), f"{code}_at"
        self.storage, self.c = np.dtype(bits or code).type, f"c_{c}"
        self.moved = "u1" if self.itemsize == 1 else f"i{self.itemsize}"
        self.arithmetic: Any = arithmetic
        self.is_narrow = self.is_float and arithmetic != name
        self.limits, self.overflow = _limits(self.memory, precision)

    @property
    def numpy(self):
        """NumPy's dtype. Raises DTypeError if it is ml_dtypes's, and that is not installed."""
        return outside() if self.is_coded else self.memory

    @property
    def dtype(self):
        """The NumPy dtype. NumPy looks for this name, as in np.zeros(3, x.dtype)."""
        return self.numpy

    def numbers(self, cells):
        """Return an ndarray of the numbers that an ndarray of memory holds; see `is_coded`."""
        return widened(cells) if self.is_coded else cells

    def cells(self, numbers):
        """Return an ndarray of numbers as memory holds them, rounded to this dtype."""
        if self.is_coded:
            return rounded(numbers)
        if not self.is_narrow:
            return numbers.astype(self.memory, copy=False)
        with np.errstate(over="ignore"):  # inf, as by `to`
            return numbers.astype(self.memory, copy=False)

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        """Returns whether `other` is this dtype or a spelling of it (see `as_dtype`).

        As with NumPy's dtypes, a spelling has a hash of its own: sets and dicts find DTypes alone.
        """
        return self is (other if isinstance(other, DType) else find_dtype(other))

    __hash__ = object.__hash__  # each dtype is one object; kernels are cached by it

    def __call__(self, data, *_):
        raise ArgumentTypeError(
            f"{self}: a dtype makes no number",
            short(data),
            f"mg.variable({short(data)}, dtype=mg.{_PUBLIC.get(self.name, self.name)})",
        )

    def __reduce__(self):
        return (by_name, (self.name,))  # unpickling returns the existing object


def _limits(dtype, precision):
    """Returns ((smallest, largest), overflow) of a NumPy dtype; see DType."""
    if precision is not None:
        digits, exponent = precision
        largest = math.ldexp(1.0 - 2.0**-digits, exponent)
        return (-largest, largest), largest + math.ldexp(0.5, exponent - digits)
    bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize - (dtype.kind == "i")
    return (-(1 << bits) if dtype.kind == "i" else 0, (1 << bits) - 1), None


# name, code, arithmetic, c; for floats also (significand bits, e): all are < 2^e; and the type of
# their bits if NumPy has no such numbers
TABLE = (
    ("float32", "f4", "float32", "float", (24, 128)),
    ("float64", "f8", "float64", "double", (53, 1024)),
    ("int32", "i4", "int64", "int32"),
    ("int64", "i8", "int64", "int64"),
    ("uint8", "u1", "int64", "uint8"),
    ("bool", "u1", "bool", "bool"),
    ("float16", "f2", "float32", "uint16", (11, 16)),
    ("bfloat16", "b2", "float32", "uint16", (8, 128), "uint16"),
)
DTYPES = [DType(index, *row) for index, row in enumerate(TABLE)]
float32, float64, int32, int64, uint8, bool_, float16, bfloat16 = DTYPES
_BY_NAME: dict[str, DType] = {d.name: d for d in DTYPES}
_BY_MEMORY: dict[Any, DType] = {d.memory: d for d in DTYPES if not d.is_coded}
for _dtype in DTYPES:
    _dtype.arithmetic = _BY_NAME[_dtype.arithmetic]
# {code in a kernel's signature: NumPy's type}: the storage of dtypes, what copies move, 32 bits.
WORDS = {d.code: d.storage for d in DTYPES} | {
    **{d.moved: np.dtype(d.moved).type for d in DTYPES}, "u4": np.uint32,
}  # fmt: skip


_PUBLIC = {"bool": "bool_"}  # the names in mg that are not the dtype's own
_SHORT = {  # of other libraries: {lower case: a name here}
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
}  # fmt: skip


def near_dtype(spelling):
    """Returns what to write instead of an unknown spelling of a dtype, or None."""
    if isinstance(spelling, (np.dtype, type)):
        return "convert the data first: x.astype('float32')"
    name = spelling.lower() if isinstance(spelling, str) else ""
    if "float8" in name or "fp8" in name:
        return "'float16' or 'bfloat16', the smallest floats that there are"
    close = difflib.get_close_matches(name, _BY_NAME, 1, 0.8)
    near = _SHORT.get(name) or (close[0] if close else None)
    return near and f"{near!r}"


def by_name(name):
    """Returns the DType with this name."""
    return _BY_NAME[name]


OF_KIND = {"b": bool_, "i": int64, "f": float32}  # for Python's bools, ints and floats
# Python's spellings, and those of PyTorch that NumPy lacks or reads differently.
SPELLINGS: dict[Any, DType] = {
    float: float32, "float": float32, int: int64, "int": int64, bool: bool_, "long": int64,
    **{d.name: d for d in DTYPES if d.is_coded},
}  # fmt: skip


def of_numpy(dtype):
    """Returns the DType of a NumPy dtype, or None."""
    own = _BY_MEMORY.get(dtype)
    if own is None and dtype.kind == "V":  # one that another package adds
        own = SPELLINGS.get(dtype.name)
    return own


def find_dtype(spelling):
    """Returns the DType of a spelling that `as_dtype` accepts, or None."""
    if isinstance(spelling, DType):
        return spelling
    if spelling is None or isinstance(spelling, (int, float)):
        return None
    if str(spelling).startswith("torch."):  # PyTorch's dtype or its name
        spelling = str(spelling).removeprefix("torch.")
    if isinstance(spelling, (str, type)) and spelling in SPELLINGS:
        return SPELLINGS[spelling]
    try:
        return of_numpy(np.dtype(spelling))
    except (TypeError, ValueError, SyntaxError):  # ValueError: of a Variable
        return None


def as_dtype(dtype, name="dtype"):
    """Returns the DType of a DType, a name, a Python type, or a dtype of NumPy or PyTorch.

    Python's types mean the dtypes that Python's numbers get: `float` and 'float' are float32, `int`
    and 'int' are int64. All other names and codes are NumPy's: 'double' and 'f8' are float64.

    name: the function of the user's call, for the message.

    >>> as_dtype("float64"), as_dtype(float), as_dtype("float"), as_dtype("double"), as_dtype(bool)
    (float64, float32, float32, float64, bool)
    """
    own = dtype if isinstance(dtype, DType) else find_dtype(dtype)
    if own is None:
        raise DTypeError(
            f"{name}: wanted one of {', '.join(_BY_NAME)}",
            short(dtype),
            near_dtype(dtype),
        )
    return own


def real_of(dtypes):
    """Returns the dtype in which a kernel over arrays of `dtypes` computes floats: the widest."""
    reals = [d.arithmetic for d in dtypes if d.is_float]
    return max(reals, key=lambda d: d.itemsize) if reals else float32


def promote(a, b):
    """Returns the dtype of an elementwise result of arrays with dtypes a and b.

    It is the larger of two dtypes of one kind, and of two equally large ones that which both are
    computed in. A float dtype stays the same beside ints and bools.
    """
    if a is b:
        return a
    if a.kind == b.kind:
        if a.itemsize == b.itemsize:
            return a.arithmetic
        return a if a.itemsize > b.itemsize else b
    for kind in "fi":
        if a.kind == kind:
            return a
        if b.kind == kind:
            return b
    return a
