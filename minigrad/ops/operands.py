"""Checks and converts operands: Variables, numbers and data, before an operation runs."""

import itertools
import math

import numpy as np

from minigrad.arguments import Count, RunTimeNumber, is_run_number, real, short
from minigrad.array.array import View
from minigrad.array.dtypes import (
    DTYPES,
    OF_KIND,
    as_dtype,
    bool_,
    float32,
    int64,
    of_numpy,
    promote,
)
from minigrad.devices.backend import default_device, device_of
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    InPlaceError,
    MinigradError,
    OutOfMemoryError,
)
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable


class InferenceVariable(Variable):
    """The result of an op under `mg.inference()`. A recorded op must not use it."""

    __slots__ = ()


def constant(value, name="data", near=None):
    """Makes a Variable without gradients from numbers, nested lists or an array.

    near: a Variable that gives the device, and the dtype for Python's floats if it has floats. None
    means the default device and float32.
    """
    if is_run_number(value):
        return of_run(value, near)
    data, dtype, is_plain = from_data(name, value)
    device = default_device()
    if near is not None:
        device = device_of(near.array)
        if is_plain and dtype is float32 and near.dtype.is_float:
            dtype = near.dtype
    if is_plain:
        check_storable(name, data, dtype)
    return Variable(device.from_numpy(data, dtype))


def made(name, make):
    """Returns the ndarray of make(). Raises OutOfMemoryError if it does not fit into memory."""
    try:
        return make()
    except (ValueError, OverflowError, MemoryError) as error:
        raise OutOfMemoryError(f"{name}: wanted fewer elements", f"{error}") from None


INTS = int, Count
OF_RANKS = tuple(OF_KIND.values())
RANK_OF_KIND = {"b": 0, "i": 1, "u": 1, "f": 2}


def from_data(name, data):
    """Returns (ndarray, dtype, whether only Python numbers decided the dtype) of a user's data.

    Arrays, NumPy scalars and Variables keep their dtype, also inside lists; several dtypes are
    promoted. Python numbers beside them never change a dtype within its kind. Alone they become
    float32, int64 or bool.
    """
    kind = type(data)
    if kind is float:
        return np.asarray(data), float32, True
    if kind is np.ndarray or isinstance(data, np.generic):
        return (array := np.asarray(data)), _dtype_of(name, array), False
    refuse_masked(name, data)
    strong, rank = [], -1
    if kind in (list, tuple):
        strong, rank = _decisive(name, data)
    try:
        wanted = np.float64 if any(d.is_coded for d in strong) else None  # NumPy may lack them
        array = np.asarray(data, wanted)
    except MinigradError:
        raise
    except MemoryError:
        raise OutOfMemoryError(f"{name}: wanted fewer elements", short(data)) from None
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise ArgumentTypeError(
            f"{name}: wanted numbers, nested lists of equal lengths, or an array", f"{error}"
        ) from None
    own = of_numpy(array.dtype)
    is_too_large = rank == 1 and array.dtype.kind == "f" and not any(d.is_float for d in strong)
    if (array.dtype.kind not in "fiub" and own is None) or is_too_large:
        raise ArgumentTypeError(
            f"{name}: wanted a Variable or numbers, ints among them that int64 holds",
            f"{kind.__name__} {short(data)}",
        )
    if kind not in (list, tuple):
        if _is_array(data):
            return array, _dtype_of(name, array), False
        return array, OF_RANKS[RANK_OF_KIND[array.dtype.kind]], True
    dtype = None
    for other in strong:
        dtype = other if dtype is None else promote(dtype, other)
    if dtype is None:
        return array, OF_RANKS[rank], True
    if rank == 2 and not dtype.is_float:
        dtype = float32
    elif rank == 1 and dtype is bool_:
        dtype = int64
    return array, dtype, False


def refuse_masked(name, data):
    """Raises for an np.ma array with masked elements, because a Variable has no mask."""
    if np.ma.is_masked(data):
        raise ArgumentTypeError(
            f"{name}: wanted an array without masked elements, as a Variable has no mask",
            short(data),
            "x.filled(0.0) gives them a value, x.compressed() leaves them out",
        )


def _is_array(data):
    """Returns whether NumPy reads the data as an array with a dtype rather than as a sequence."""
    if hasattr(data, "__array__"):
        return True
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def _dtype_of(name, array):
    """Returns the DType of an ndarray; raises if minigrad lacks it."""
    dtype = of_numpy(array.dtype)
    if dtype is not None:
        return dtype
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(
            f"{name}: wanted a Variable or numbers", f"dtype {array.dtype}: {array!r:.60}"
        )
    raise DTypeError(
        f"{name}: wanted one of {', '.join(map(str, DTYPES))}",
        f"{array.dtype}",
        "convert the data first: x.astype('float32')",
    )


def _decisive(name, data):
    """Returns (dtypes of typed items, highest rank of Python numbers) in nested lists.

    It collects types level by level. For a list of a million floats this is one pass in C.
    """
    strong, rank, level = set(), -1, data
    while level:
        below = []
        for kind in set(map(type, level)):
            if kind is float:
                rank = 2
                continue
            if issubclass(kind, np.generic):
                rank = max(rank, _rank_of_scalar(kind))
                strong.update(filter(None, [of_numpy(np.dtype(kind))]))
                continue
            if issubclass(kind, (bool, int, float)):
                rank = max(rank, 0 if kind is bool else 1 if issubclass(kind, int) else 2)
                continue
            items = [x for x in level if type(x) is kind]
            if issubclass(kind, RunTimeNumber):
                below += [x.__class__() for x in items]  # it counts as a number of its class
            elif issubclass(kind, (list, tuple, range)):
                below += itertools.chain.from_iterable(items)
            elif issubclass(kind, Variable):
                for x in items:
                    _refuse_graph(name, x)
                    strong.add(x.dtype)
            elif hasattr(kind, "__array__"):
                for x in items:
                    refuse_masked(name, x)
                strong.update(_dtype_of(name, np.asarray(x)) for x in items)
        level = below
    return strong, 2 if rank < 0 and not strong else rank


def _rank_of_scalar(kind):
    """Returns the rank of a NumPy scalar of a foreign dtype, which counts as a Python number.

    It is -1 for a scalar of another kind.
    """
    dtype = np.dtype(kind)
    if of_numpy(dtype) or dtype.kind not in "iuf":
        return -1
    if dtype.itemsize > 8:
        raise DTypeError("wanted numbers of at most 64 bits", f"{dtype}")
    return RANK_OF_KIND[dtype.kind]


def _refuse_graph(name, x):
    """Raises if a Variable in a list requires gradients, because the list would lose them."""
    if x._requires_grad:
        raise GradientError(
            f"{name}: a list of Variables becomes a constant, and this one requires gradients",
            x.describe(),
            "mg.stack([...]) or mg.concatenate([...]) joins Variables and keeps the graph; "
            "x.detach() where a constant is meant",
        )


def check_storable(name, data, dtype):
    """Raises if a dtype cannot hold a number of an ndarray that came from a list."""
    if (
        dtype.is_float
        and data.dtype == np.float64
        and np.vdot(data, data) < 0.5 * dtype.overflow * dtype.limits[1]
    ):
        return  # most data pass this quick test
    if data.size and data.dtype != dtype.memory and dtype.kind in "fi":
        with np.errstate(all="ignore"):
            ends = data.min().item(), data.max().item()
        if dtype.is_float and not all(map(math.isfinite, ends)):
            finite = data[np.isfinite(data)]
            ends = (finite.min().item(), finite.max().item()) if finite.size else ()
        for number in ends:
            storable(name, number, dtype)


def of_run(number, near=None, dtype=None):
    """Makes a Variable () of a RunTimeNumber. By default it and `near` decide the dtype."""
    default = OF_KIND["f" if isinstance(number, float) else "i"]
    if isinstance(number, np.generic):
        default = of_numpy(number.dtype)
    elif near is not None and default is float32 and near.dtype.is_float:
        default = near.dtype
    device = default_device() if near is None else device_of(near.array)
    array = device.empty((), default if dtype is None else as_dtype(dtype))
    storable("variable", number, array.dtype)
    device.fill(array, number)
    return Variable(array)


def variables(name, *values):
    """Returns the values as Variables. Other data goes to the first Variable's device."""
    near = first_variable(values)
    return [v if isinstance(v, Variable) else constant(v, name, near) for v in values]


def as_variable(x, name="data"):
    """Returns x as a Variable. Other data becomes a constant."""
    return x if isinstance(x, Variable) else constant(x, name)


def check_floats(name, x):
    """Raises unless a Variable holds floats."""
    if not x.dtype.is_float:
        raise DTypeError(f"{name}: wanted floats", x.describe(), "convert: x.to('float32')")


def first_variable(values):
    """Returns the first Variable among the values, or None."""
    for v in values:
        if isinstance(v, Variable):
            return v
    return None


def operand(value, name, others=()):
    """Returns a value as an operand: a Variable or a plain Python number. Converts other data.

    others: the other operands; converted data goes to their device.
    """
    if isinstance(value, (Variable, float, int)):
        return value
    if (
        isinstance(value, (np.generic, np.ndarray))
        and not value.ndim
        and value.dtype.kind in "fiub"
        and not np.ma.is_masked(value)
    ):
        number = value.item()
        return number if isinstance(number, (int, float)) else float(number)  # a longdouble
    return constant(value, name, first_variable(others))


def fitting_numbers(name, operands, dtype):
    """Converts plain numbers to floats for a float result; checks that other dtypes hold them.

    A comparison has a bool result, but compares in a dtype that holds both operands, so every int64
    is allowed.
    """
    if dtype.is_float:
        return [as_float(name, x) if type(x) in INTS else x for x in operands]
    low, high = (dtype if dtype.kind == "i" else int64).limits
    may_wrap = -low < 2**63  # int64 holds every int that a compiled step receives
    for x in operands:
        is_int = type(x) in INTS or (may_wrap and is_run_number(x) and isinstance(x, int))
        if is_int and not low <= x <= high:
            raise DTypeError(
                f"{name}: wanted ints from {low} to {high}, which {dtype} holds"
                if dtype.kind == "i"
                else f"{name}: wanted ints that int64 holds",
                f"{x}" if abs(x) < 2**70 else f"an int of {x.bit_length()} bits",
                "convert to a larger dtype first, such as x.to('float32')",
            )
    return operands


def as_float(name, number):
    """Converts an int to float."""
    try:
        return real(number)
    except OverflowError:
        raise DTypeError(
            f"{name}: wanted a number that a float holds", f"an int of {number.bit_length()} bits"
        ) from None


def demand(flags, wanted, got=None, fix=None):
    """Raises ArgumentError unless an Array of bools is all True. A compiled step checks as well."""
    device = device_of(flags)
    if flags.size and not device.all_within(device.convert(flags, int64), 1, 1, wanted):
        raise ArgumentError(wanted, got, fix)


def storable(name, number, dtype):
    """Raises if a dtype cannot hold a number, because conversion would change it silently."""
    if dtype.is_float:
        size = abs(as_float(name, number))
        if dtype.overflow <= size < math.inf:
            raise DTypeError(
                f"{name}: wanted numbers that {dtype} holds, to {dtype.limits[1]:.5g}",
                f"{number}",
                "a float of more bytes holds it; for a mask, float('-inf') is in every dtype",
            )
    elif dtype.kind == "i":
        low, high = dtype.limits
        is_run_time = is_run_number(number) and isinstance(number, int)
        if is_run_time and low <= number <= high:  # checked again at each run
            return
        is_whole = isinstance(number, int) or math.isfinite(number)  # isfinite cannot take 10**400
        if not (is_whole and low <= int(number) <= high):
            shown = number if abs(number) < 2**70 or number != number else "one far larger"
            raise DTypeError(
                f"{name}: wanted a number from {low} to {high}, which {dtype} holds", f"{shown}"
            )


def stored_number(name, number, dtype):
    """Checks a number with `storable`, and converts it to an int or bool for such a dtype.

    Formulas would read a float as a float32. A RunTimeNumber stays one, except for bool.
    """
    storable(name, number, dtype)
    if dtype.kind == "i" and not isinstance(number, int):
        return math.trunc(number.item() if isinstance(number, np.generic) else number)
    return bool(number) if dtype.kind == "b" else number


def _meeting_place(one, other):
    """Returns the hint for operands on two devices: move those on the CPU to the other."""
    if "cpu" not in (one, other):
        return f"move one: x.to({one!r})"
    place = other if one == "cpu" else one
    return (
        f"move what is on the cpu: x.to({place!r}); for a model model.to({place!r}), which moves "
        "parameters and values given to register_buffer"
    )


def check_operands(name, variables):
    """Raises for different devices, stale recorded views, or inference results in a graph."""
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
