"""What goes into an operation: Variables, numbers and data, checked before anything runs."""

import numpy as np

from minigrad.array.array import View
from minigrad.array.dtypes import BY_NUMPY
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, InPlaceError
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import default_device


class InferenceVariable(Variable):
    """The result of an op under `mg.inference()`: a recorded op must not use it."""

    __slots__ = ()


def constant(value, name="data"):
    """A Variable from numbers, nested lists or an ndarray; never requires gradients."""
    data = np.asarray(value)
    if data.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        data = data.astype(np.float32)
    if data.dtype.kind not in "fiub":
        raise ArgumentTypeError(
            f"{name}: wanted a Variable or numbers", f"{type(value).__name__} {value!r:.60}"
        )
    from_dtype = BY_NUMPY.get(data.dtype)
    if from_dtype is None:
        raise DTypeError(
            f"{name}: wanted one of {', '.join(map(str, BY_NUMPY.values()))}", f"{data.dtype}"
        )
    return Variable(default_device().from_numpy(data, from_dtype))


def operand(value, name):
    """A Variable, or a plain Python number; whatever else can be one becomes it."""
    if isinstance(value, (Variable, float, int)):
        return value
    if (
        isinstance(value, (np.generic, np.ndarray))
        and not value.ndim
        and value.dtype.kind in "fiub"
    ):
        return value.item()
    return constant(value, name)


def check_operands(name, variables):
    """Devices must agree; recorded views must be fresh; inference results stay out of the graph."""
    first = None
    for x in variables:
        array = x.array
        if first is None:
            first = array.device
        elif array.device != first:
            raise DeviceError(
                f"{name}: wanted operands on one device",
                f"{first} and {array.device}",
                "move one: x.to(device)",
            )
        if (
            type(array) is View
            and x.node is not None
            and array.made_at not in (None, array.version)
        ):
            raise InPlaceError(
                f"{name}: this view was recorded before its base was written to",
                f"version {array.made_at}, now {array.version}",
                "take the view again after the write",
                details=[("view made at", x.node.line)],
            )
        if type(x) is InferenceVariable and any(v._requires_grad for v in variables):
            raise GradientError(
                f"{name}: a result of mg.inference() cannot be part of a graph",
                x.describe(),
                "compute it under mg.no_grad() instead, or use x.clone()",
            )
