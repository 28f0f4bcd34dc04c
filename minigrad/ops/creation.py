"""New Variables from data, constants, ranges and random numbers, on the default device."""

import contextlib
import functools
import math

import numpy as np

from minigrad.arguments import (
    Count,
    instance,
    is_run_number,
    label,
    number,
    real,
    short,
    shown,
    whole,
)
from minigrad.array.bits import Bfloats
from minigrad.array.dtypes import (
    SPELLINGS,
    as_dtype,
    bfloat16,
    float16,
    float32,
    float64,
    int64,
)
from minigrad.devices.backend import device_named, device_of, host, moved
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    OutOfMemoryError,
)
from minigrad.hints import teaching
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.devices import placed
from minigrad.ops.names import remembered
from minigrad.ops.observers import announce, named
from minigrad.ops.operands import (
    as_float,
    check_storable,
    from_data,
    made,
    of_run,
    refuse_masked,
    storable,
    stored_number,
)
from minigrad.ops.shape import shape_of
from minigrad.seams import seams
from minigrad.tape.modes import ANNOUNCED, state
from minigrad.tape.variable import Variable

ORDINARY = float16.limits  # numbers that all dtypes of floats hold


@named
def variable(data, dtype=None, device=None, requires_grad=False, name=None):
    """Makes a leaf with a copy of `data`: numbers, nested lists, an ndarray or a Variable.

    Data of shape (...) -> (...). Python floats become float32, ints int64, bools bool. Arrays,
    NumPy scalars and Variables keep their dtype, also inside lists.

    Args:
        data: the values.
        dtype: another dtype for the leaf.
        device: a name; the default is the device of a Variable, and else the default device.
        requires_grad: whether backward computes a gradient for the leaf.
        name: a name, for messages and pictures.

    Raises:
        ArgumentTypeError: the data are not numbers, or lists have different lengths.
        DTypeError: a number does not fit into the dtype, or minigrad lacks the dtype.

    >>> import minigrad as mg
    >>> mg.variable([[1.0, 2.0]]).shape
    (1, 2)
    """
    if not isinstance(data, (Variable, np.ndarray)) and _is_cuda(data):
        data = from_dlpack(data)
    if isinstance(data, Variable):
        source = data.array
        home = device_of(source)
        array = home.convert(source, source.dtype if dtype is None else as_dtype(dtype, "variable"))
        if device is not None and placed(device) is not home:
            array = moved(array, placed(device))
    else:
        array = _from_data(data, dtype, device)
    out = _leaf("variable", array, requires_grad, name)
    return announce("variable", out) if state.path in ANNOUNCED else out


def _leaf(where, array, requires_grad, name):
    """Makes a leaf, and checks a user's options."""
    out = Variable(array, name=name if name is None else label(where, name))
    if requires_grad is not False:
        out.requires_grad = requires_grad
    return out


def _from_data(data, dtype, device):
    data = _decided("variable", data, dtype)
    if is_run_number(data):
        return of_run(data, dtype=dtype).array
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        data, coded = _by_dlpack(data)
        if coded:
            dtype = coded if dtype is None else as_dtype(dtype, "variable")
            return placed(device).from_numpy(coded.numbers(data), dtype)
    array, own, _ = from_data("variable", data)
    dtype = own if dtype is None else as_dtype(dtype, "variable")
    if not hasattr(data, "__array__"):  # arrays are converted unchecked, like astype
        check_storable("variable", array, dtype)
        _refuse_fractions("variable", array, dtype)
    return placed(device).from_numpy(array, dtype)


def _decided(name, number, dtype):
    """Makes a RunTimeNumber a plain float if the dtype is integer: each value traces anew."""
    is_float = is_run_number(number) and not isinstance(number, (int, np.integer))
    cuts = is_float and dtype is not None and as_dtype(dtype, name).kind == "i"
    return float(number) if cuts else number


def _refuse_fractions(name, array, dtype):
    """Raises if an integer dtype would cut off a fraction of a number in a list."""
    if dtype.kind == "i" and array.dtype.kind == "f" and (cut := array != np.trunc(array)).any():
        raise DTypeError(
            f"{name}: wanted whole numbers for {dtype}",
            f"{array[cut].reshape(-1)[0]}",
            f"mg.{name}(...).to({dtype.name!r}), which cuts fractions off",
        )


@teaching
def from_numpy(array, requires_grad=False, name=None):
    """Makes a leaf that shares the memory of an ndarray: each sees the writes of the other.

    (...) -> (...), of the array's dtype. Autograd cannot see NumPy's writes, so an op that saves
    the values of a writable array copies them. A read-only or strided array is copied at once. Like
    the array, the leaf is always on the CPU; `x.to(device)` copies it to a device.

    Raises:
        ArgumentTypeError: the argument is not an ndarray.
        DTypeError: minigrad lacks the element type.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError("from_numpy: wanted an ndarray", f"{type(array).__name__}")
    refuse_masked("from_numpy", array)
    array = np.asarray(array)  # np.matrix and np.ma reshape in their own ways
    dtype = as_dtype(array.dtype, "from_numpy")
    return _leaf("from_numpy", _adopted(array, dtype), requires_grad, name)


def _adopted(array, dtype):
    """Returns an Array over an ndarray's memory, or a copy: see `from_numpy`."""
    device = host()
    if array.flags.c_contiguous and array.flags.writeable and array.dtype.isnative:
        return device.adopt(array, dtype)
    return device.from_numpy(dtype.numbers(array) if array.dtype == dtype.memory else array, dtype)


@teaching
def from_dlpack(data):
    """Makes a Variable over the memory of another library's array, by the DLPack protocol.

    (...) -> (...), of the array's dtype and on its device: the CPU or 'cuda'.

    Raises:
        ArgumentTypeError: the array does not support DLPack, requires gradients, or is in memory
            that neither NumPy nor 'cuda' can read.
        DTypeError: minigrad lacks the element type.
    """
    if not hasattr(data, "__dlpack__"):
        raise ArgumentTypeError(
            "from_dlpack: wanted an array that speaks DLPack", f"{type(data).__name__}"
        )
    if _is_cuda(data):
        return Variable(device_named("cuda").adopt_view(data))
    refuse_masked("from_dlpack", data)
    array, coded = _by_dlpack(data)
    return from_numpy(array) if coded is None else Variable(_adopted(array, coded))


def _is_cuda(data):
    """Returns whether another library's array is in CUDA memory, by its DLPack device type."""
    kind = getattr(data, "__dlpack_device__", None)
    return kind is not None and int(kind()[0]) in (2, 13)


def _by_dlpack(data):
    """Returns (ndarray over another library's array, its dtype if NumPy sees only its bits)."""
    try:
        return np.from_dlpack(data), None
    except (BufferError, RuntimeError) as error:
        with contextlib.suppress(BufferError, RuntimeError, TypeError):
            return np.from_dlpack(Bfloats(data)), bfloat16
        raise ArgumentTypeError(
            "DLPack: wanted an array on the CPU, of a dtype that NumPy has, without a graph",
            f"{type(data).__name__}: {error}",
            "convert it first, such as t.detach().cpu().float() of PyTorch",
        ) from error


def sizes_of(name, shape):
    """Checks a shape for new memory; returns a tuple of ints of at least 0."""
    shape = shape_of(name, shape)
    if min(shape, default=0) < 0:
        raise ArgumentError(
            f"{name}: wanted sizes of at least 0",
            f"{shape}",
            f"{name}((n, ...)) with the sizes written out: -1 is for x.reshape, which knows them",
        )
    return shape


def count_of(name, n):
    """Checks a number of elements, an int."""
    n = whole(name, "the number of elements", n, 0)
    if n >= 2**60:
        raise OutOfMemoryError(f"{name}: wanted fewer elements", shown(n))
    return n


def _refuse_sizes(name, shape, dtype, value=None):
    """Raises if the dtype is really a size, as in zeros(2, 3)."""
    if isinstance(dtype, (int, float)):
        first = shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape
        given = f"{first}, {dtype}" if value is None else f"{first}, {value!r:.60}"
        rest = "" if value is None else f", {dtype}"
        raise ArgumentTypeError(
            f"{name}: wanted the shape as one tuple, then a dtype",
            f"{dtype!r} for the dtype",
            f"{name}(({given}){rest})",
        )


@functools.partial(remembered, form="", free={"value": ORDINARY})
@named
def full(shape, value, dtype=None, device=None, requires_grad=False, name=None):
    """Makes a leaf of one value.  shape, number -> shape.

    dtype: the default is float32 for a float, int64 for an int, bool for a bool.

    Raises:
        ArgumentTypeError: the value is no number, or a Variable of several elements.
        GradientError: the value is a Variable whose graph would be lost.
    """
    shape = sizes_of("full", shape)
    _refuse_sizes("full", shape, dtype, value)
    place = placed(device)
    own = None
    if isinstance(value, Variable):
        own, value = value.dtype, _constant("full", value)
    value = _decided("full", value, dtype)
    if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
        raise ArgumentTypeError("full: wanted a number for value", shown(value))
    if dtype is None:
        plain = int64 if value.__class__ is Count else SPELLINGS.get(value.__class__)
        dtype = own or plain or from_data("full", value)[1]
    dtype = as_dtype(dtype, "full")
    value, given = stored_number("full", value, dtype), value
    if not is_run_number(value):
        _refuse_fractions("full", np.asarray(given), dtype)
    array = place.empty(shape, dtype)
    place.fill(array, real(value) if array.dtype.is_float else value)
    out = _leaf("full", array, requires_grad, name)
    return announce("full", out) if state.path in ANNOUNCED else out


def _constant(name, value):
    """Returns the number of a Variable of one element; its graph would be lost."""
    if value.size != 1:
        raise ArgumentTypeError(
            f"{name}: wanted a number for value",
            value.describe(),
            "x.expand(shape).clone() repeats a whole Variable",
        )
    if value.requires_grad and state.recording:
        raise GradientError(
            f"{name}: the value becomes a constant, and this one requires gradients",
            value.describe(),
            "mg.ones(shape) * x, or x.detach()",
        )
    return value.item()


@functools.partial(remembered, form="")
@teaching
def zeros(shape, dtype=float32, device=None, requires_grad=False, name=None):
    """Makes a leaf of zeros.  shape -> shape, float32 by default."""
    _refuse_sizes("zeros", shape, dtype)
    dtype = dtype if dtype is None else as_dtype(dtype, "zeros")
    return full(sizes_of("zeros", shape), 0.0, dtype, device, requires_grad, name)


@functools.partial(remembered, form="")
@teaching
def ones(shape, dtype=float32, device=None, requires_grad=False, name=None):
    """Makes a leaf of ones.  shape -> shape, float32 by default."""
    _refuse_sizes("ones", shape, dtype)
    dtype = dtype if dtype is None else as_dtype(dtype, "ones")
    return full(sizes_of("ones", shape), 1.0, dtype, device, requires_grad, name)


@functools.partial(remembered, free={"value": ORDINARY})
@teaching
def full_like(x, value, dtype=None):
    """Makes a leaf of one value with a Variable's shape, device and, by default, dtype.

    (...), number -> (...).

    >>> import minigrad as mg
    >>> mg.full_like(mg.zeros((2,)), 3).tolist()
    [3.0, 3.0]
    """
    x = _like("full_like", x)
    return full(x.shape, value, x.dtype if dtype is None else dtype, x.device)


@remembered
@teaching
def zeros_like(x):
    """Makes zeros of a Variable's shape, dtype and device.  (...) -> (...)."""
    x = _like("zeros_like", x)
    return zeros(x.shape, x.dtype, x.device)


@remembered
@teaching
def ones_like(x):
    """Makes ones of a Variable's shape, dtype and device.  (...) -> (...)."""
    x = _like("ones_like", x)
    return ones(x.shape, x.dtype, x.device)


def _like(name, x):
    return instance(name, "x", x, Variable, "a Variable")


@named
def arange(start, stop=None, step=1, dtype=None, device=None):
    """Makes start, start + step, ... up to but not including stop, like range.  -> (n,)."""
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        is_bool = isinstance(value, (bool, np.bool_))
        if is_bool or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ArgumentTypeError("arange: wanted numbers", shown(value))
        if type(value) is int:
            as_float("arange", value)
    if not step:
        raise ArgumentError("arange: wanted a step other than 0", f"{step}")
    if not all(math.isfinite(value) for value in (start, stop, step)):
        raise ArgumentError("arange: wanted finite numbers", f"{start}, {stop}, {step}")
    values = made("arange", lambda: np.arange(start, stop, step))
    if values.dtype.kind not in "fi":
        raise DTypeError("arange: wanted ints that int64 holds", f"{start}, {stop}"[:60])
    if dtype is None:
        is_whole = values.dtype.kind == "i"
        dtype = int64 if is_whole else from_data("arange", [start, stop, step])[1]
    dtype = as_dtype(dtype, "arange")
    return Variable(placed(device).from_numpy(values, dtype))


@named
def linspace(start, stop, count, dtype=float32, device=None):
    """Makes count evenly spaced numbers from start to stop, both included.  -> (count,)."""
    start, stop = number("linspace", "start", start), number("linspace", "stop", stop)
    dtype = float32 if dtype is None else dtype
    for end in (start, stop):
        storable("linspace", end, as_dtype(dtype, "linspace"))
    count = count_of("linspace", count)
    values = made("linspace", lambda: np.linspace(start, stop, count))
    return Variable(placed(device).from_numpy(values, as_dtype(dtype, "linspace")))


@named
def eye(n, dtype=float32, device=None):
    """Makes the identity matrix.  int -> (n, n)."""
    n, dtype = count_of("eye", n), float32 if dtype is None else dtype
    values = made("eye", lambda: np.eye(n))
    return Variable(placed(device).from_numpy(values, as_dtype(dtype, "eye")))


class Generator:
    """A counter-based source of random numbers (Philox 4x32-10, Salmon et al. 2011).

    A number depends only on the seed and its position in the sequence. So it is the same on every
    device and for every number of threads. The state is `seed` and `counter`, ints.
    """

    def __init__(self, seed=0):
        self.manual_seed(seed)

    @uninterrupted
    def manual_seed(self, seed):
        """Restarts at the beginning of the sequence of a seed."""
        seed = whole("manual_seed", "seed", seed)
        seams.effects.refuse(
            "manual_seed: a seed set inside a compiled step would be set once, while tracing",
            "set it outside the step",
        )
        self.seed, self.counter = seed & (2**63 - 1), 0
        return self

    @uninterrupted
    def fill(self, array, kind, low=0, high=0):
        """Fills an Array with the next numbers: uniform, normal or integers."""
        device_of(array).random(array, kind, *self.draw(array.size), low, high)

    def draw(self, count):
        """Returns (seed, counter) of the next `count` numbers and advances past them."""
        traced = seams.effects.draw(self, count)
        if traced is not None:
            return traced
        counter = self.counter
        self.counter += count  # a number takes at most one block
        return self.seed, counter


generator = Generator()


@teaching
def manual_seed(seed):
    """Seeds the default generator: the same seed yields the same numbers."""
    generator.manual_seed(seed)


@teaching
def get_rng_state():
    """Returns the default generator's state, a pair of ints. Save it with a model to resume."""
    seams.effects.refuse(
        "get_rng_state: inside a compiled step the state is not known", "call it outside"
    )
    return generator.seed, generator.counter


@teaching
def set_rng_state(saved):
    """Restores a state from `get_rng_state`. The default generator continues from there.

    >>> import minigrad as mg
    >>> saved = mg.get_rng_state()
    >>> x = mg.rand((3,))
    >>> mg.set_rng_state(saved)
    >>> mg.rand((3,)).tolist() == x.tolist()
    True
    """
    is_pair = isinstance(saved, (tuple, list)) and len(saved) == 2
    if not is_pair:
        raise ArgumentTypeError("set_rng_state: wanted what get_rng_state() gave", short(saved))
    seed, counter = (whole("set_rng_state", "saved", n) for n in saved)
    if not 0 <= counter < 2**63:
        raise ArgumentError("set_rng_state: wanted what get_rng_state() gave", shown(saved))
    generator.manual_seed(seed)
    generator.counter = counter


def _random(name, kind, shape, dtype, source, device, low=0, high=0):
    place = placed(device)
    if source is not None:
        instance(name, "generator", source, Generator, "an mg.Generator")
    array = place.empty(sizes_of(name, shape), as_dtype(dtype, name))
    if array.size:
        (source or generator).fill(array, kind, low, high)
    out = Variable(array)
    return announce(name, out) if state.path in ANNOUNCED else out


def _float(name, shape, dtype):
    _refuse_sizes(name, shape, dtype)
    dtype = float32 if dtype is None else as_dtype(dtype, name)
    if not dtype.is_float:
        raise DTypeError(f"{name}: wanted a dtype of floats, such as float32", f"{dtype}")
    return dtype


@named
def rand(shape, dtype=float32, generator=None, device=None):
    """Draws uniform numbers in [0, 1).  shape -> shape, of floats."""
    return _random("rand", "uniform", shape, _float("rand", shape, dtype), generator, device)


@named
def randn(shape, dtype=float32, generator=None, device=None):
    """Draws standard normal numbers.  shape -> shape, of floats."""
    return _random("randn", "normal", shape, _float("randn", shape, dtype), generator, device)


@named
def randint(low, high, shape, generator=None, device=None):
    """Draws ints from low to high - 1, equally likely.  int, int, shape -> shape, int64."""
    low, high = whole("randint", "low", low), whole("randint", "high", high)
    for end in (low, high):
        storable("randint", end, int64)
    if high <= low:
        raise ArgumentError("randint: wanted low < high", f"{low}, {high}")
    return _random("randint", "integers", shape, int64, generator, device, low, high)


@teaching
def randperm(n, generator=None, device=None):
    """Returns 0 to n - 1 in random order.  int -> (n,), int64."""
    n = count_of("randperm", n)
    place = placed(device)
    keys = _random("randperm", "uniform", (1, n), float64, generator, place.name).array
    order = place.empty((n,), int64)
    if n:
        place.argsort(keys, order.view((1, n), (n, 1)))
    return Variable(order)
