"""Running sums, and the indices of extremes."""

from minigrad.array.dtypes import int64
from minigrad.array.layout import normalize_axis
from minigrad.devices.backend import device_of
from minigrad.formulas.expression import call
from minigrad.ops.base import Structural
from minigrad.ops.reduction import not_empty


class Cumsum(Structural):
    """Running sum along an axis; int64 for ints and bools.  (...), axis -> (...)."""

    samples = [((3, 4),), ((5,),), ((0, 3),)]

    def forward(x, axis=0):
        device = device_of(x)
        out = device.empty(x.shape, x.dtype if x.dtype.is_float else int64)
        device.cumsum(x, out, normalize_axis("cumsum", axis, len(x.shape)))
        return out

    gradients = (lambda dy, axis: call("flip", call("cumsum", call("flip", dy, axis), axis), axis),)


class Argmax(Structural):
    """Index of the first largest value along an axis, or of all.  (...) -> (...) of int64.

    The first NaN counts as the largest, as in NumPy.
    """

    samples = [((3, 4),), ((5,),)]
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return _arg("argmax", x, axis, keepdims)


class Argmin(Structural):
    """Index of the first smallest value along an axis, or of all.  (...) -> (...) of int64.

    The first NaN counts as the smallest, as in NumPy.
    """

    samples = [((3, 4),), ((5,),)]
    gradients = None

    def forward(x, axis=None, keepdims=False):
        return _arg("argmin", x, axis, keepdims)


def _arg(name, x, axis, keepdims):
    if axis is not None:
        normalize_axis(name, axis, len(x.shape))
    not_empty(name, x.shape, axis)
    device = device_of(x)
    source = device.contiguous(x)
    if axis is None:
        source, axis = source.view((x.size,), (1,)), 0
    axis = normalize_axis(name, axis, len(source.shape))
    shape = source.shape
    out = device.empty((*shape[:axis], *shape[axis + 1 :]), int64)
    device.arg_reduce(source, out, axis, name == "argmax")
    if keepdims:
        kept = (1,) * len(x.shape) if out.shape == () else (*shape[:axis], 1, *shape[axis + 1 :])
        return (
            out.view(kept, (*out.strides[:axis], 0, *out.strides[axis:]))
            if out.shape
            else (out.view(kept, (0,) * len(kept)))
        )
    return out
