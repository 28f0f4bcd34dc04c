"""Parts of functions that have routes, but that observers do not see: users call the functions."""

from typing import Any, ClassVar

import numpy as np

from minigrad.array.dtypes import as_dtype, int64
from minigrad.array.layout import contiguous_strides
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import Program, symbol
from minigrad.ops.base import Operation
from minigrad.ops.fast import fast_path
from minigrad.ops.operands import made
from minigrad.tape.variable import Variable

PLACES = Program(["index", "step", "others"], [symbol("index") * symbol("step") + symbol("others")])


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
    offsets = np.zeros((1,) * len(shape), np.int64)
    for d, n in enumerate(shape):
        if d != axis:
            offsets = offsets + np.arange(n).reshape(-1, *(1,) * (len(shape) - d - 1)) * strides[d]
    return offsets


MAKERS: dict[str, Any] = {
    "one_hot": np.arange,
    "tril": lambda rows, columns, diagonal: np.tri(rows, columns, diagonal, bool),
    "triu": lambda rows, columns, diagonal: ~np.tri(rows, columns, diagonal - 1, bool),
}


class Fixed(Quiet):
    """Values that depend on sizes alone, on x's device.  (...), how, sizes -> (...)."""

    inputs, attributes = ("x",), ("how", "sizes")

    def forward(x, how, sizes):
        data = made(how, lambda: MAKERS[how](*sizes))
        return device_of(x).fixed(data, as_dtype(data.dtype))


class FlatIndex(Quiet):
    """The places in flattened x of what an index along an axis selects.

    (...) int64 from 0 to n - 1, axis, shape of x -> (...).
    """

    inputs, attributes = ("index",), ("axis", "shape")

    def forward(index, axis, shape):
        device, strides = device_of(index), contiguous_strides(shape)
        others = device.fixed(made("index", lambda: _offsets(axis, index.shape, strides)), int64)
        out = device.empty(index.shape, int64)
        device.elementwise(PLACES, (index, strides[axis], others), (out,))
        return out
