"""What a device must offer, stated once, and which device an operation runs on."""

import importlib
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from minigrad.array.array import Array, ndarray
from minigrad.array.dtypes import DType
from minigrad.errors import DeviceError
from minigrad.memory.interrupts import uninterrupted
from minigrad.seams import seams


class Device(Protocol):
    """A table of functions over Arrays.

    `out` Arrays are made by `empty` and written, never returned. Scalars among inputs are Python
    numbers. Shapes are tuples, strides count elements.
    """

    name: str

    def empty(self, shape: tuple, dtype: DType) -> Array:
        """A contiguous Array with undefined elements."""
        ...

    def elementwise(self, program, inputs: Sequence[Any], outputs: Sequence[Array]) -> None:
        """outputs = program(inputs), broadcast to the outputs' shape; an output may be an input."""
        ...

    def reduce(
        self, program, how: str, inputs: Sequence[Any], out: Array, shape: tuple, axes: tuple
    ) -> None:
        """out = sum, mean, prod, max, min, any or all over `axes` of one formula of the inputs."""
        ...

    def rows(
        self, program, modes: tuple, inputs: Sequence[Any], outputs: Sequence[Array], shape: tuple
    ) -> None:
        """Formulas with row reductions along the last axis of `shape`."""
        ...

    def matmul(
        self, a: Array, b: Array, out: Array, bias: Array | None = None, accumulate: bool = False
    ) -> None:
        """out = a @ b (+ bias); at least two axes each, leading axes broadcast.

        accumulate: add to what a float `out` holds, summing over its batch axes of stride 0.
        """
        ...

    def gather(self, x: Array, index: Array, out: Array) -> None:
        """out[o, i, :] = x[o, index[i], :]; contiguous (outer, n, r), (m,) and (outer, m, r).

        The index is int64 and within 0 to n - 1, here and in the two functions that follow.
        """
        ...

    def scatter_add(self, source: Array, index: Array, out: Array) -> None:
        """out[o, index[i], :] += source[o, i, :], in the order of i: the adjoint of gather.

        On a GPU in any order: floats that meet in one place may be rounded differently each time.
        """
        ...

    def put(self, source: Array, index: Array, out: Array) -> None:
        """out[o, index[i], :] = source[o, i, :]; of equal indices the last one wins."""
        ...

    def wrap_index(self, index: Array, n: int, out: Array) -> int:
        """out = index of any integer dtype as int64, plus n where it is negative.

        Returns the first place that lies outside -n to n - 1, or -1.
        """
        ...

    def nonzero(self, x: Array) -> Array:
        """The places in C order of the elements that are not 0: (m,) int64."""
        ...

    def cumsum(self, x: Array, out: Array, axis: int) -> None:
        """out = running sums of x along an axis; out is contiguous, of x's dtype or int64."""
        ...

    def arg_reduce(self, x: Array, out: Array, axis: int, is_max: bool) -> None:
        """out = the place of the first largest (smallest) element, or of the first NaN; int64."""
        ...

    def argsort(self, x: Array, out: Array) -> None:
        """out = the places of the elements of x (n,) float64 in ascending order, int64.

        Equal ones stay in their order. Of the CPU alone.
        """
        ...

    def random(
        self, array: Array, kind: str, seed: int, counter: int, low: int = 0, high: int = 0
    ) -> None:
        """Fills an Array: 'uniform' in [0, 1), 'normal', or 'integers' from low to high - 1.

        Element i depends on seed, counter and i alone.
        """
        ...

    def side_by_side(self, function: Any, count: int, work: int) -> None:
        """function(k, a, b) for the k-th range of a to b - 1 within count, perhaps at once.

        work: in elements: little work is not cut. The function calls this device and makes no
        Arrays but views.
        """
        ...

    def parts(self, count: int, work: int) -> int:
        """How many ranges side_by_side makes of the same arguments."""
        ...

    def unfold(self, x: Array, out: Array, window: Any) -> None:
        """out = the windows of x as columns, 0 where they overhang.

        x (images, channels, h, w) is contiguous; out (images, channels * elements of a window,
        windows of an image) is so along its last axis. `window`: see `cpu.window.Window`.
        """
        ...

    def fold(self, columns: Array, out: Array, window: Any) -> None:
        """out = the sum of columns at the places they were unfolded from: the adjoint of unfold."""
        ...

    def convolves(self, what: str, dtype: DType, shape: tuple, kernels: tuple, window: Any) -> bool:
        """Whether the device convolves without unfolding, and that takes no longer.

        what: "output" (`convolve`), "input" (`convolve_back`) or "kernels" (`correlate`). shape: of
        the images (n, c, h, w); kernels: (o, c / groups, kh, kw). A device may lack all four.
        """
        ...

    def convolve(self, x: Array, w: Array, bias: Array | None, out: Array, window: Any) -> None:
        """out (n, o, oh, ow) = the cross-correlation of x (n, c, h, w) with w, plus bias (o,)."""
        ...

    def convolve_back(self, g: Array, w: Array, out: Array, window: Any) -> None:
        """out (n, c, h, w) = the gradient of x, of g (n, o, oh, ow): the adjoint in x."""
        ...

    def correlate(self, g: Array, x: Array, out: Array, window: Any) -> None:
        """out (o, c, kh, kw) = the gradient of w: the adjoint in w."""
        ...

    def largest(self, x: Array, out: Array, window: Any) -> None:
        """out = where in the flattened x the first largest element of each window lies, int64.

        A NaN counts as the largest. x (images, channels, h, w), out (images, channels, oh, ow).
        """
        ...

    def update(self, update, rows: Sequence[tuple], values: dict) -> None:
        """One step of a formulas.Update, for parameters of one dtype.

        rows: (p, g, slots, steps) of each, contiguous; steps: float64, or None. values: {symbol:
        number} of the hyperparameters. This and the two that follow the CPU lacks: it has tables
        of addresses (`devices/cpu/updates.py`).
        """
        ...

    def squares(self, arrays: Sequence[Array]) -> list:
        """The sum of squares of each of contiguous Arrays of one dtype, as floats."""
        ...

    def scale(self, arrays: Sequence[Array], factors: Sequence[float]) -> None:
        """Multiplies contiguous Arrays of one dtype by a float each."""
        ...

    def share(self, x: Array) -> Array:
        """clone(): copy-on-write where that is possible."""
        ...

    def copy_buffer(self, old):
        """A Buffer with the same bytes."""
        ...


_modules = {
    "cpu": "minigrad.devices.cpu.device",
    "simt": "minigrad.devices.gpu.simt",
    "cuda": "minigrad.devices.gpu.cuda",
}
_devices: dict[str, Any] = {}


class _Active(threading.local):
    """Of this thread: the device that wins over the arrays' own, and that of new Arrays."""

    device: Any = None
    default: Any = None


_active = _Active()


def register(device):
    """Adds a device under its name."""
    _devices[device.name] = device


def device_names():
    """The names of all devices that minigrad knows, whether or not they are here."""
    return tuple(_modules)


def device_named(name):
    """The device of a name: 'cpu'."""
    found = _devices.get(name)
    if found is None:
        if name not in _modules:
            raise DeviceError(f"wanted a device: {', '.join(_modules)}", f"{name!r}")
        try:
            importlib.import_module(_modules[name])
        except DeviceError as error:  # made anew: with the line that asked, not one of importlib's
            raise DeviceError(error.wanted, error.got, error.fix) from None
        found = _devices[name]
    return found


def device_of(array) -> Any:
    """The device that computes on an Array: the active one, or the one that holds its bytes."""
    device = _active.device
    if device is None:
        return device_named(array.buffer.pool.device)
    check = getattr(device, "check_here", None)  # a GPU must not be handed other addresses
    if check is not None:
        check(array)
    return device


def default_device() -> Any:
    """Where new Arrays are made if nothing else is said."""
    return _active.device or _active.default or device_named("cpu")


def chosen_default():
    """The name of the device that this thread has chosen for new Arrays, whichever is active."""
    return "cpu" if _active.default is None else _active.default.name


def set_default(device):
    """Makes new Arrays of this thread on a device; None: on the CPU. Returns the one before."""
    before, _active.default = _active.default, device
    return before


def values(array):
    """The elements on the host, to be read inside the engine: not for handing out or writing."""
    if array.buffer.pool.device == "cpu":
        return ndarray(array)
    seams.effects.read(array)
    return device_named(array.device).to_numpy(array)


def set_values(array, data):
    """Writes an ndarray of its shape into an Array. Versions are the caller's."""
    if array.buffer.pool.device == "cpu":
        ndarray(array)[...] = data
    else:
        device = device_named(array.device)
        device.copy(device.from_numpy(data, array.dtype), array)


def moved(array, device):
    """An Array with the same values on a device; of its own, unless it is there already."""
    if device_named(array.device) is device:
        return device.share(array)
    return device.from_numpy(values(array), array.dtype)


def host() -> Any:
    """The device whose memory Python reads: the CPU, or what stands for it in a traced step."""
    usual = default_device()
    return usual if usual.name == "cpu" else device_named("cpu")


class active:
    """Runs every op of this thread on one device while the block lasts."""

    def __init__(self, device):
        self.device = device

    @uninterrupted
    def __enter__(self):
        self.before, _active.device = _active.device, self.device
        return self.device

    @uninterrupted
    def __exit__(self, *error):
        _active.device = self.before
