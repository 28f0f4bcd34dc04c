"""Devices of Variables: the default device of a thread, and moves between devices."""

from minigrad.arguments import short
from minigrad.array.dtypes import DTYPES, DType, find_dtype, near_dtype
from minigrad.devices import backend
from minigrad.devices.backend import (
    WHICH,
    chosen_default,
    default_device,
    device_named,
    device_names,
)
from minigrad.errors import ArgumentTypeError, DeviceError, DTypeError
from minigrad.formulas.expression import call
from minigrad.hints import teaching
from minigrad.memory.blocks import Block
from minigrad.ops.base import Structural
from minigrad.ops.shape import Cast
from minigrad.seams import seams

NARROW = ("int8", "int16", "complex64", "complex128")  # absent
DTYPE_NAMES = tuple(d.name for d in DTYPES)
ANY_TARGET = f"to: wanted a dtype, {', '.join(DTYPE_NAMES)}, or the name of a device"


class Move(Structural):
    """Moves values to another device; the gradient moves back.  (...), to, from -> (...)."""

    samples = [((3, 4), "cpu", "cpu"), ((), "cpu", "cpu")]

    def forward(x, target, source):
        return backend.moved(x, device_named(target))

    gradients = (lambda dy, target, source: call("move", dy, source, target),)


def move(x, target, source):
    """Moves a Variable to a device, differentiably."""
    seams.effects.refuse(
        f"x.to({target!r}) inside a compiled step, which runs on one device",
        "move what it needs before the step",
    )
    return Move.apply(x, target, source)


def one_target(target, device, dtype):
    """Returns (device name or None, DType or None) from the arguments of `to`; one is not None."""
    given = [value for value in (target, device, dtype) if value is not None]
    if not given:
        raise DTypeError(ANY_TARGET, "None")
    if len(given) > 1:
        raise ArgumentTypeError(
            "to: wanted one dtype or one device",
            ", ".join(map(repr, given)),
            "one after the other: .to('float64').to('simt')",
        )
    wanted = given[0]
    if device is None:
        target_dtype = find_dtype(wanted)
        if target_dtype is not None:
            return None, target_dtype
    if dtype is None and isinstance(wanted, str) and wanted in device_names():
        return wanted, None
    if isinstance(wanted, str):
        raise (DTypeError if device is None and target is None else DeviceError)(
            f"to: wanted {_wanted_of(device, dtype)}",
            short(wanted),
            WHICH
            if wanted.startswith(("cuda", "gpu", "mps"))
            else f"x.to('float32'): there is no {wanted}"
            if wanted in NARROW
            else near_dtype(wanted),
        )
    raise DTypeError(ANY_TARGET, short(wanted), _name_in(wanted))


def _wanted_of(device, dtype):
    """Returns the valid names for the argument that was given."""
    dtypes, devices = ", ".join(DTYPE_NAMES), ", ".join(device_names())
    if device is not None:
        return f"a device, {devices}"
    return (
        f"a dtype, {dtypes}" if dtype is not None else f"a dtype, {dtypes}, or a device, {devices}"
    )


def to(x, target=None, *, device=None, dtype=None):
    """Converts x to a dtype, or moves it to a device: x.to('float64'), x.to('simt').

    (...) -> (...).

    It returns x itself if nothing changes. Gradients go back in x's dtype, to x's device. The
    target may be a keyword: device='simt' or dtype='float64'.
    """
    if isinstance(target, DType) and device is None and dtype is None:
        return x if target is x.dtype else Cast.apply(x, target)
    place, dtype = one_target(target, device, dtype)
    if place is not None:
        home = x.device
        return x if place == home else move(x, place, home)
    return x if dtype is x.dtype else Cast.apply(x, dtype)


def placed(device):
    """Returns the device of a name, or the default for None. An active device comes first."""
    usual = default_device()
    if seams.effects.is_tracing:
        wanted = chosen_default() if device is None else device
        if wanted != usual.name:
            seams.effects.made_on(_named(wanted).name)
    is_usual = device is None or (isinstance(device, str) and device == usual.name)
    return usual if is_usual else _named(device)


def _named(device):
    if not isinstance(device, str):
        raise ArgumentTypeError(
            "device: wanted a name, such as 'cpu'",
            short(device),
            _name_in(device) or "x.device is such a name",
        )
    return device_named(device)


def _name_in(given):
    """Returns the hint for a PyTorch user who passed an object with a device or a dtype."""
    if isinstance(given, device):
        return f"give the name alone, {given.name!r}: mg.device is for `with`"
    return "give its .device or its .dtype" if hasattr(given, "device") else None


def get_default_device():
    """Returns the name of the device on which this thread creates Variables."""
    return default_device().name


@teaching
def set_default_device(device):
    """Sets the device on which this thread creates Variables: `mg.zeros`, models, numbers.

    Existing Variables stay where they are: `x.to(device)` and `model.to(device)` move them.
    `from_numpy` and `from_dlpack` share memory, so their Variables are on the memory's device.

    Args:
        device: a name: 'cpu', 'numpy', 'simt' or 'cuda'.

    Raises:
        DeviceError: the device does not exist here; the error says why.

    >>> import minigrad as mg
    >>> mg.set_default_device("simt")
    >>> mg.zeros((2,)).device
    'simt'
    >>> mg.set_default_device("cpu")
    """
    _refuse_trace()
    chosen = _named(device)
    backend.set_default(None if chosen.name == "cpu" else chosen)


def _refuse_trace():
    seams.effects.refuse(
        "a default device set inside a compiled step would be set once, while tracing",
        "set it outside the step",
    )


class device(Block):
    """`with mg.device("simt"):` sets the default device of this thread inside the block.

    Like `set_default_device`, but restores the previous device. Also a decorator of functions and
    generators.

    >>> import minigrad as mg
    >>> with mg.device("simt"):
    ...     x = mg.ones((2,))
    >>> x.device, (x + 1.0).device, mg.ones((2,)).device
    ('simt', 'simt', 'cpu')
    """

    _setting = "device"

    def __init__(self, name):
        self._device = _named(name)

    @property
    def name(self):
        """The name of the device."""
        return self._device.name

    def __repr__(self):
        return f"mg.device({self.name!r})"

    def __reduce__(self):
        return device, (self.name,)  # copies share the device itself

    def _begin(self):
        _refuse_trace()
        is_usual = self._device.name == "cpu"
        return {"default": backend.set_default(None if is_usual else self._device)}

    def _end(self, before, is_error):
        for earlier in before.values():  # empty if a block that began later restores the device
            backend.set_default(earlier)
