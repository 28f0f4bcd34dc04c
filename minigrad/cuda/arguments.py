"""Checks and converts the arguments of custom kernels, and finds the device to run on."""

import ctypes
import inspect

import numpy as np
from numpy.lib.array_utils import byte_bounds

from minigrad.array.dtypes import bfloat16
from minigrad.cuda.writes import written
from minigrad.devices import backend
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError, GradientError
from minigrad.simt.machine.addresses import spans
from minigrad.tape.interop import leave_graph
from minigrad.tape.modes import state
from minigrad.tape.node import user_place
from minigrad.tape.variable import Variable

NUMBERS = (bool, int, float, np.generic)


def check(kernel, values):
    """Raises if the number of arguments is wrong, or a kernel cannot take the type of one."""
    names = _names(kernel)
    if len(values) != len(names):
        raise ArgumentTypeError(
            f"{kernel.__name__} takes {_count(len(names))}: {', '.join(names) or 'none'}",
            f"{len(values)}",
            f"{kernel.__name__}[blocks, threads]({', '.join(names)})",
        )
    for name, value in _parts(kernel, values):
        _check_one(f"{kernel.__name__}, argument {name}", name, value)


def _names(kernel):
    return list(inspect.signature(kernel.py_func).parameters)


def _parts(kernel, values):
    """Yields (name, value) of the arguments; for a tuple, of its parts, under the tuple's name."""
    for name, value in zip(_names(kernel), values, strict=True):
        for part in _flat(value):
            yield name, part


def _flat(value):
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _each(value, made):
    """Applies `made` to a value, or to each part of a tuple, and returns a tuple for a tuple."""
    if isinstance(value, tuple):
        return tuple(_each(part, made) for part in value)
    return made(value)


def _count(n):
    return f"{n} argument" if n == 1 else f"{n} arguments"


def _check_one(where, name, value):
    if isinstance(value, list):
        raise ArgumentTypeError(
            f"{where}: wanted an array or a number",
            "a list",
            f"np.array({name}, np.float32), or mg.variable({name}, device='simt')",
        )
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        raise ArgumentTypeError(
            f"{where}: wanted the byte order of this computer, as a GPU's",
            f"{value.dtype}",
            f"{name}.astype({name}.dtype.newbyteorder('='))",
        )
    if isinstance(value, (np.ndarray, Variable)) and bfloat16 == value.dtype:
        raise DTypeError(
            f"{where}: wanted elements that kernels of your own know",
            f"{value.dtype}",
            f"{name}.to('float32')" if isinstance(value, Variable) else f"{name}.astype('f4')",
        )
    if not isinstance(value, (np.ndarray, Variable, *NUMBERS)):
        raise ArgumentTypeError(
            f"{where}: wanted a NumPy array, a Variable, a number, or a tuple of them",
            "None" if value is None else f"{type(value).__name__}",
            f"np.asarray({name}), or mg.variable({name}, device='simt')"
            if hasattr(value, "__array__")  # PyTorch's tensors, for example
            else "a kernel knows no strings, dicts or objects: pass arrays and numbers",
        )


def refuse_gradients(kernel, values):
    """Raises if a Variable requires gradients, because launches are not recorded."""
    for name, value in _parts(kernel, values):
        if not isinstance(value, Variable) or not value.requires_grad:
            continue
        what = "records nothing"
        fix = (
            f"{name}.detach() for its values; for a gradient of your own, launch the kernel in the "
            "forward of a mg.Function"
        )
        if not state.recording:  # for example in the forward of a mg.Function
            what = "takes values"
            fix = (
                f"{name}.detach() has its values: give the kernel that, in forward of a "
                "mg.Function and under mg.no_grad(), too"
            )
        raise GradientError(
            f"{kernel.__name__}, argument {name}: a kernel {what}, and this Variable requires "
            "gradients",
            value.describe(),
            fix,
        )


def device(kernel, values):
    """Returns the device of the arguments: "simt" (also for NumPy arrays) or "cuda".

    Raises:
        DeviceError: an argument is on the CPU, or arguments are on different devices.
    """
    by_place = {}
    for name, value in _parts(kernel, values):
        if isinstance(value, Variable):
            by_place.setdefault(value.device, name)
        elif isinstance(value, np.ndarray):
            by_place.setdefault("NumPy", name)
    for place, where in (("cpu", "the CPU"), ("numpy", "the device numpy")):
        if place in by_place:
            name = by_place[place]
            raise DeviceError(
                f"{kernel.__name__}: the Variable {name} is on {where}, where no CUDA kernel runs",
                fix=f"{name}.to('simt') for the simulator, {name}.to('cuda') for a GPU",
            )
    if "cuda" in by_place and len(by_place) > 1:
        shown = ", ".join(f"{name} on {place}" for place, name in by_place.items())
        raise DeviceError(
            f"{kernel.__name__}: wanted all arrays on one device",
            shown.replace("on NumPy", "a NumPy array"),
            "move them: mg.variable(array, device='cuda'), x.to('cuda')",
        )
    return "cuda" if "cuda" in by_place else "simt"


def prepared(kernel, values, made):
    """Prepares a launch; returns the arguments with `made(array)` instead of each Variable.

    It increments the versions of written Variables and unshares their memory, and it raises in a
    traced step. If the kernel writes through a tuple, all parts of the tuple count as written.
    """
    writes = written(kernel.py_func)
    changes = []
    for name, value in _parts(kernel, values):
        if isinstance(value, Variable):
            leave_graph(value)
            if name in writes:
                value.write_check(f"{kernel.__name__}, argument {name}")
                changes.append(value.array)
    for array in changes:
        backend.device_named(array.device).prepare_write(array, user_place())
    return _each(tuple(values), lambda v: made(v.array) if isinstance(v, Variable) else v)


def copies(values):
    """Copies the arguments to NumPy. Copies overlap where the arrays overlap."""
    plain = _each(
        tuple(values), lambda v: backend.values(v.array) if isinstance(v, Variable) else v
    )
    copied = [  # (first address, one past the last, copy of the bytes)
        (low, high, np.frombuffer(bytearray(ctypes.string_at(low, high - low)), np.uint8))
        for low, high in spans(v for v in _flat(plain) if isinstance(v, np.ndarray))
    ]
    return _each(plain, lambda v: _moved(v, copied) if isinstance(v, np.ndarray) else v)


def _moved(array, copied):
    """Returns a view of the copied bytes with an array's elements."""
    if not array.size:
        return array.copy()
    low, high = byte_bounds(array)
    start, _, data = next(s for s in copied if s[0] <= low and high <= s[1])
    first = array.__array_interface__["data"][0] - start
    return np.ndarray(array.shape, array.dtype, data, first, array.strides)
