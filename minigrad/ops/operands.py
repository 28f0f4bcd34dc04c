"""What goes into an operation: Variables, numbers and data, checked before anything runs."""

import math

import numpy as np

from minigrad.array.array import View
from minigrad.array.dtypes import BY_NUMPY, int64
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError, InPlaceError
from minigrad.graph.modes import state
from minigrad.graph.variable import Variable
from minigrad.kernels.backend import default_device, device_of


class InferenceVariable(Variable):
    """The result of an op under `mg.inference()`: a recorded op must not use it."""

    __slots__ = ()


def constant(value, name="data", near=None):
    """A Variable from numbers, nested lists or an ndarray; never requires gradients.

    near: a Variable on whose device it is made; None: the default device.
    """
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
    device = default_device() if near is None else device_of(near.array)
    return Variable(device.from_numpy(data, from_dtype))


def variables(name, *values):
    """What was given as a list of Variables; data that is none goes where the first one lies."""
    near = first_variable(values)
    return [v if isinstance(v, Variable) else constant(v, name, near) for v in values]


def first_variable(values):
    """The first Variable among values, or None."""
    for v in values:
        if isinstance(v, Variable):
            return v
    return None


def operand(value, name, others=()):
    """A Variable, or a plain Python number; whatever else can be one becomes it.

    others: operands it goes together with, for the device.
    """
    if isinstance(value, (Variable, float, int)):
        return value
    if (
        isinstance(value, (np.generic, np.ndarray))
        and not value.ndim
        and value.dtype.kind in "fiub"
    ):
        return value.item()
    return constant(value, name, first_variable(others))


def fitting_numbers(name, operands, dtype):
    """The operands of a result of `dtype`, with the plain numbers as it holds them.

    A result of truth values compares in a dtype that holds both sides: any int64 will do.
    """
    if dtype.is_float:
        return [as_float(name, x) if type(x) is int else x for x in operands]
    low, high = limits(dtype if dtype.kind == "i" else int64)
    for x in operands:
        if type(x) is int and not low <= x <= high:
            raise DTypeError(
                f"{name}: wanted ints from {low} to {high}, which {dtype} holds"
                if dtype.kind == "i"
                else f"{name}: wanted ints that int64 holds",
                f"{x}" if abs(x) < 2**70 else f"an int of {x.bit_length()} bits",
                "convert to a larger dtype first, such as x.to('float32')",
            )
    return operands


def as_float(name, number):
    """An int as a float."""
    try:
        return float(number)
    except OverflowError:
        raise DTypeError(
            f"{name}: wanted a number that a float holds", f"an int of {number.bit_length()} bits"
        ) from None


def limits(dtype):
    """The smallest and the largest value of an integer dtype."""
    found = np.iinfo(dtype.numpy)
    return int(found.min), int(found.max)


def storable(name, number, dtype):
    """Raises if an integer dtype cannot hold a number: it would become another one, unsaid."""
    if dtype.kind != "i":
        if dtype.is_float and isinstance(number, int):
            as_float(name, number)
        return
    low, high = limits(dtype)
    if not (math.isfinite(number) and low <= int(number) <= high):
        shown = number if abs(number) < 2**70 or number != number else "one far larger"
        raise DTypeError(
            f"{name}: wanted a number from {low} to {high}, which {dtype} holds", f"{shown}"
        )


def _meeting_place(one, other):
    """What to do about two devices: what is on the CPU goes to the one that was chosen."""
    if "cpu" not in (one, other):
        return f"move one: x.to({one!r})"
    place = other if one == "cpu" else one
    return (
        f"move what is on the cpu: x.to({place!r}), for a model model.to({place!r}), which moves "
        "parameters and what register_buffer was told"
    )


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
                _meeting_place(first, array.device),
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
        if (
            type(x) is InferenceVariable
            and state.recording
            and any(v._requires_grad for v in variables)
        ):
            raise GradientError(
                f"{name}: a result of mg.inference() cannot be part of a graph",
                x.describe(),
                "compute it under mg.no_grad() instead, or use x.clone()",
            )
