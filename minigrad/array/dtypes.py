"""The table of element types, and the rules that pick one."""

from typing import Any

import numpy as np

from minigrad.errors import DTypeError


class DType:
    """An element type: its name, NumPy dtype, size in bytes, kind and place in tables.

    kind: 'f' floating point, 'i' integer (signed or not), 'b' truth value. Half types can be added
    as further rows: kernels look up how a row is loaded and stored, nothing else knows the list.
    """

    __slots__ = ("index", "is_float", "itemsize", "kind", "name", "numpy")

    def __init__(self, name, index):
        self.name, self.index, self.numpy = name, index, np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.kind = "i" if self.numpy.kind == "u" else self.numpy.kind
        self.is_float = self.kind == "f"

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        """Whether other is this dtype, its name, or NumPy's of the same name."""
        if isinstance(other, DType):
            return self is other
        try:
            return bool(self.numpy == np.dtype(other))
        except TypeError:
            return False

    __hash__ = object.__hash__  # there is one object a dtype, and kernels are found by it

    def __reduce__(self):
        return (by_name, (self.name,))  # a pickled dtype stays the one object of its name


DTYPES = [
    DType(name, index)
    for index, name in enumerate(("float32", "float64", "int32", "int64", "uint8", "bool"))
]
float32, float64, int32, int64, uint8, bool_ = DTYPES
_BY_NAME = {d.name: d for d in DTYPES}
BY_NUMPY: dict[Any, DType] = {d.numpy: d for d in DTYPES}


def by_name(name):
    """The DType of a name."""
    return _BY_NAME[name]


def as_dtype(dtype):
    """A DType from a DType, a name, a NumPy dtype or a Python type.

    >>> as_dtype("float64"), as_dtype(float), as_dtype(bool)
    (float64, float32, bool)
    """
    if isinstance(dtype, DType):
        return dtype
    if dtype is float:
        return float32  # Python floats make float32, as Python ints make int64
    try:
        found = None if dtype is None else BY_NUMPY.get(np.dtype(dtype))
    except (TypeError, ValueError):  # ValueError: of what has a .dtype, as a Variable
        found = None
    if found is None:
        raise DTypeError(
            f"wanted one of {', '.join(_BY_NAME)}",
            f"{dtype!r}",
            "convert the data first: x.astype('float32')",
        )
    return found


def promote(a, b):
    """The dtype of an elementwise result of arrays of dtypes a and b.

    Two dtypes of one kind give the larger; a float with an int or bool stays as it is.
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
