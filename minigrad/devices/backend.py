"""Selects the device that an operation runs on."""

import importlib
import threading
from typing import Any

from minigrad.arguments import short
from minigrad.array.array import Array, ndarray
from minigrad.errors import DeviceError
from minigrad.memory.interrupts import block, uninterrupted
from minigrad.seams import seams

_modules = {
    "cpu": "minigrad.devices.cpu.device",
    "numpy": "minigrad.devices.numpy_device",
    "simt": "minigrad.devices.gpu.simt",
    "cuda": "minigrad.devices.gpu.cuda",
}
_devices: dict[str, Any] = {}
WHICH = "'cuda' is an NVIDIA GPU, without a number; 'simt' is a simulated one"


class Chosen(threading.local):
    """Per thread: the device that replaces the arrays' own, and the device of new Arrays."""

    device: Any = None
    default: Any = None


chosen = Chosen()


def register(device):
    """Register a device under its name."""
    _devices[device.name] = device


def device_names():
    """Return the names of all devices that minigrad knows, available or not."""
    return tuple(_modules)


def device_named(name):
    """Return the device named, such as 'cpu'; raise DeviceError if unknown or unavailable."""
    device = _devices.get(name)
    if device is None:
        if name not in _modules:
            raise DeviceError(f"wanted a device: {', '.join(_modules)}", short(name), WHICH)
        try:
            importlib.import_module(_modules[name])
        except DeviceError as error:  # raise anew, with the caller's line, not importlib's
            raise DeviceError(error.wanted, error.got, error.fix) from None
        device = _devices[name]
    return device


def device_of(array) -> Any:
    """Return the device that computes on an Array: the active one, or the one holding it."""
    device = chosen.device
    if device is None:
        return device_named(array.buffer.pool.device)
    check = getattr(device, "check_here", None)  # a GPU must not receive addresses of other memory
    if check is not None:
        check(array)
    return device


@uninterrupted
def like(x):
    """Return an uninitialised Array like x, which must be flat; inlined for the fast paths."""
    home = x.buffer.home
    if not home:
        return device_of(x).empty(x.shape, x.dtype)
    buffer = home.pop()
    pool, nbytes = home.pool, buffer.nbytes
    buffer.owners, buffer.requested = 1, x.buffer.requested
    pool.takes += 1
    pool.allocated_bytes += nbytes
    current = pool.current_bytes = pool.current_bytes + nbytes
    if current > pool.peak_bytes:
        pool.peak_bytes = current
    out = object.__new__(Array)
    out.buffer, out.version, out.offset = buffer, 0, 0
    out.shape, out.strides, out.dtype = x.shape, x.strides, x.dtype
    out.size, out.is_flat = x.size, True
    return out


def default_device() -> Any:
    """Return the device of new Arrays if none is named."""
    return chosen.device or chosen.default or device_named("cpu")


def chosen_default():
    """Return the name of this thread's chosen device for new Arrays, whichever is active."""
    return "cpu" if chosen.default is None else chosen.default.name


def set_default(device):
    """Set the device of this thread's new Arrays (None: the CPU); return the previous one."""
    before, chosen.default = chosen.default, device
    return before


def values(array):
    """Return the elements on the host, for reading inside the engine only."""
    if array.buffer.pool.device == "cpu":
        return array.dtype.numbers(ndarray(array))
    seams.effects.read(array)
    return array.dtype.numbers(device_named(array.device).to_numpy(array))


def set_values(array, data):
    """Write an ndarray of the same shape into an Array. The caller handles versions."""
    if array.buffer.pool.device == "cpu":
        ndarray(array)[...] = array.dtype.cells(data) if array.dtype.is_coded else data
    else:
        device = device_named(array.device)
        device.copy(device.from_numpy(data, array.dtype), array)


def moved(array, device):
    """Return an Array with the same values on a device; share it if it is there already."""
    if device_named(array.device) is device:
        return device.share(array)
    return device.from_numpy(values(array), array.dtype)


def host() -> Any:
    """Return the device whose memory Python reads: the CPU, or its stand-in while tracing."""
    usual = default_device()
    return usual if usual.name == "cpu" else device_named("cpu")


@block
def active(device):
    """Run every op of this thread on one device while the block lasts.

    Callers must also call `tape.modes.watch`: fast paths do not check which device is active.
    """
    before, chosen.device = chosen.device, device
    try:
        yield device
    finally:
        chosen.device = before
