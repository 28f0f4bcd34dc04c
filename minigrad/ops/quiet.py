"""Parts of functions that have routes, but that observers do not see: users call the functions."""

from typing import Any, ClassVar

import numpy as np

from minigrad.array.dtypes import as_dtype
from minigrad.devices.backend import device_of
from minigrad.ops.base import Operation
from minigrad.ops.fast import fast_path
from minigrad.ops.operands import made
from minigrad.tape.variable import Variable


class Quiet(Operation, abstract=True):
    """An Operation without gradients that is in no registry, and that tells nobody of its runs."""

    has_gradients = False
    calls: ClassVar[dict] = {}

    def __init_subclass__(cls, **more):
        super().__init_subclass__(abstract=True, **more)
        cls.calls = {}
        cls.apply = staticmethod(fast_path(cls, cls.otherwise))

    @classmethod
    def slow_path(cls, x, *attributes):
        """Runs forward."""
        return Variable(cls.forward(x.array, *attributes))


def _offsets(axis, shape, strides):
    """Returns what each element of a gather adds to its index for the axes but one."""
    found = np.zeros((1,) * len(shape), np.int64)
    for d, n in enumerate(shape):
        if d != axis:
            found = found + np.arange(n).reshape(-1, *(1,) * (len(shape) - d - 1)) * strides[d]
    return found


MAKERS: dict[str, Any] = {
    "one_hot": np.arange,
    "gather": _offsets,
    "tril": lambda rows, columns, diagonal: np.tri(rows, columns, diagonal, bool),
    "triu": lambda rows, columns, diagonal: ~np.tri(rows, columns, diagonal - 1, bool),
}


class Fixed(Quiet):
    """Values that depend on sizes alone, on x's device.  (...), how, sizes -> (...)."""

    inputs, attributes = ("x",), ("how", "sizes")

    def forward(x, how, sizes):
        data = made(how, lambda: MAKERS[how](*sizes))
        return device_of(x).fixed(data, as_dtype(data.dtype))
