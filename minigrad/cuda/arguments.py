"""The arguments of custom kernels: checks, the device they imply, conversions."""

import ctypes
import inspect

import numpy as np
from numpy.lib.array_utils import byte_bounds

from minigrad.cuda.writes import written
from minigrad.devices import backend
from minigrad.errors import ArgumentTypeError, DeviceError, GradientError
from minigrad.simt.machine.addresses import spans
from minigrad.tape.interop import leave_graph
from minigrad.tape.modes import state
from minigrad.tape.node import user_place
from minigrad.tape.variable import Variable

NUMBERS = (bool, int, float, np.generic)


def check(kernel, values):
    """Raises if arguments have a wrong number, or a type that the kernel cannot take."""
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
    """(name, value) of the arguments; a tuple yields its parts under its own name."""
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
    """`made(value)`; for a tuple, the tuple of `made` of its parts."""
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
    if not isinstance(value, (np.ndarray, Variable, *NUMBERS)):
        raise ArgumentTypeError(
            f"{where}: wanted a NumPy array, a Variable, a number, or a tuple of them",
            "None" if value is None else f"{type(value).__name__}",
            f"np.asarray({name}), or mg.variable({name}, device='simt')"
            if hasattr(value, "__array__")  # PyTorch's tensors, for example
            else "a kernel knows no strings, dicts or objects: pass arrays and numbers",
        )


def refuse_gradients(kernel, values):
    """Raises if a Variable requires gradients, as launches are not recorded."""
    for name, value in _parts(kernel, values):
        if not isinstance(value, Variable) or not value.requires_grad:
            continue
        what = "records nothing"
        fix = (
            f"{name}.detach() for its values; for a gradient of your own, launch the kernel in the "
            "forward of a mg.Function"
        )
        if not state.recording:  # in the forward of a mg.Function, say
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
    """The device of the arguments: "simt" (also for NumPy arrays) or "cuda"."""
    found = {}
    for name, value in _parts(kernel, values):
        if isinstance(value, Variable):
            found.setdefault(value.device, name)
        elif isinstance(value, np.ndarray):
            found.setdefault("NumPy", name)
    if "cpu" in found:
        name = found["cpu"]
        raise DeviceError(
            f"{kernel.__name__}: the Variable {name} is on the CPU, where no CUDA kernel runs",
            fix=f"{name}.to('simt') for the simulator, {name}.to('cuda') for a GPU",
        )
    if "cuda" in found and len(found) > 1:
        shown = ", ".join(f"{name} on {place}" for place, name in found.items())
        raise DeviceError(
            f"{kernel.__name__}: wanted all arrays on one device",
            shown.replace("on NumPy", "a NumPy array"),
            "move them: mg.variable(array, device='cuda'), x.to('cuda')",
        )
    return "cuda" if "cuda" in found else "simt"


def prepared(kernel, values, made):
    """The arguments of a launch, with `made` of the Array instead of each Variable.

    Before the launch, it counts versions, un-shares memory, and raises in a traced step. If the
    kernel writes through a tuple, all its parts count as written.
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
    """NumPy copies of the arguments; copies of overlapping arrays overlap, too."""
    plain = _each(
        tuple(values), lambda v: backend.values(v.array) if isinstance(v, Variable) else v
    )
    copied = [  # (first address, one past the last, copy of the bytes)
        (low, high, np.frombuffer(bytearray(ctypes.string_at(low, high - low)), np.uint8))
        for low, high in spans(v for v in _flat(plain) if isinstance(v, np.ndarray))
    ]
    return _each(plain, lambda v: _moved(v, copied) if isinstance(v, np.ndarray) else v)


def _moved(array, copied):
    """The same elements, in the copy of their bytes."""
    if not array.size:
        return array.copy()
    low, high = byte_bounds(array)
    start, _, data = next(s for s in copied if s[0] <= low and high <= s[1])
    first = array.__array_interface__["data"][0] - start
    return np.ndarray(array.shape, array.dtype, data, first, array.strides)
