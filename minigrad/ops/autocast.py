"""autocast: functions of the public table compute in half precision, or in float32, inside a block.

TABLE says which does what. The functions that it names are wrapped behind their fast paths, which
an active block turns off (`State.update`): so they cost nothing outside of a block. Inside, such a
function casts its arguments, then runs as it does outside. What it calls is not cast again, and
nothing is cast in a backward pass: gradients have the dtypes of the forward pass.
"""

import functools
import weakref
from typing import Any

import numpy as np

from minigrad.arguments import flag, short
from minigrad.array.dtypes import DTYPES, as_dtype, float32, float64, near_dtype, promote
from minigrad.errors import DTypeError
from minigrad.memory.blocks import Block
from minigrad.memory.interrupts import uninterrupted
from minigrad.ops.operands import constant, first_variable
from minigrad.ops.shape import Cast
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable

LOWER, FLOAT32, WIDEST = "the block's dtype", "float32", "the widest dtype of the arguments"
TABLE = {  # which dtype the floats among a function's arguments get, but for float64
    LOWER: (
        "matmul", "linear", "conv1d", "conv2d", "einsum", "outer", "scaled_dot_product_attention",
    ),
    FLOAT32: (
        "exp", "expm1", "log", "log1p", "log2", "pow", "reciprocal", "rsqrt", "tan", "softplus",
        "sum", "mean", "prod", "cumsum", "cumprod", "var", "std", "norm", "logsumexp", "softmax",
        "log_softmax", "layer_norm", "rms_norm", "normalize", "cross_entropy", "mse", "huber",
        "bce_with_logits",
    ),
    WIDEST: ("scatter_add", "index_add", "stack", "concatenate"),
}  # fmt: skip
RULES = {name: rule for rule, names in TABLE.items() for name in names}
VIEWS = ("einsum",)  # products that may return a view of an operand
entrances: dict[Any, Any] = {}  # {name: the function with its fast path}, by ops.table


class _Weight:
    """A leaf's values in half precision, while nobody has written to either."""

    def __init__(self, leaf, dtype, half):
        # the table forgets a leaf that dies: pop(key, the reference), without a line of Python
        self.leaf = weakref.ref(leaf, functools.partial(state.casts.pop, id(leaf)))
        self.array, self.half = leaf.array, half
        self.versions, self.dtype = (leaf.array.version, half.version), dtype

    def is_of(self, leaf, dtype):
        """Returns whether it still has the values of a leaf."""
        now = leaf.array
        is_same = self.leaf() is leaf and self.array is now and self.dtype is dtype
        return is_same and self.versions == (now.version, self.half.version)


def _cast(x, dtype, is_shared):
    """Casts a Variable. A leaf that requires gradients is converted once in a block.

    is_shared: whether calls may share the converted values: nobody gets a view of them.
    """
    if x.dtype is dtype:
        return x
    if x.node is not None or not x._requires_grad or not dtype.is_narrow or state.is_inference:
        return x.to(dtype)
    if not is_shared or x.array.is_foreign:  # NumPy may write there, and no version tells
        return x.to(dtype)
    weight = state.casts.get(id(x))
    if weight is None or not weight.is_of(x, dtype):
        y = x.to(dtype)
        state.casts[id(x)] = _Weight(x, dtype, y.array)
        return y
    if not state.recording:
        return Variable(weight.half)
    return Cast.record((x,), [x.array], weight.half, 1, (dtype,))  # a node for each use


def _floats(values):
    """Returns the Variables of floats among values, and in lists of them."""
    floats = []
    for v in values:
        if isinstance(v, Variable):
            floats += [v] if v.dtype.is_float else []
        elif isinstance(v, (list, tuple)):
            floats += _floats(v)
    return floats


def _cast_all(v, cast, near):
    """Applies a function to the Variables in a value whose dtype autocast may change."""
    if isinstance(v, Variable):
        return cast(v) if v.dtype.is_float and v.dtype is not float64 else v
    if isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.dtype != np.float64:
        return _cast_all(constant(v, "autocast", near), cast, near)
    if type(v) in (list, tuple):
        return type(v)([_cast_all(x, cast, near) for x in v])
    return v


def _arguments(name, lower, args, named):
    """Casts the arguments of a call by the rule for its name. lower: the block's dtype."""
    rule, values = RULES[name], [*args, *named.values()]
    all_floats = _floats(values)
    floats = [x for x in all_floats if x.dtype is not float64]
    is_wide = len(floats) < len(all_floats) or any(
        isinstance(v, np.ndarray) and v.dtype == np.float64 for v in values
    )
    if not floats or (rule is LOWER and is_wide):  # products refuse float64 beside other floats
        return args, named
    if rule is LOWER:
        dtype = lower
    elif rule is FLOAT32:
        dtype = float32
    else:
        dtype = functools.reduce(promote, [x.dtype for x in floats])
    near = first_variable(floats)
    cast = functools.partial(_cast, dtype=dtype, is_shared=name not in VIEWS)
    return [_cast_all(v, cast, near) for v in args], {
        k: _cast_all(v, cast, near) for k, v in named.items()
    }


@uninterrupted
def _switch(dtype):
    """Sets the dtype that this thread casts to, or None."""
    state.autocast = dtype
    state.update()


def dispatched(name, function):
    """Wraps what a public function does without its fast path.

    Inside a block of autocast, where fast paths are off, the wrapper casts what TABLE says, and
    calls the function of this name in `entrances` outside of the block.
    """
    is_listed = name in RULES

    @functools.wraps(function)
    def wrapper(*args, **named):
        lower = state.autocast
        if lower is None or state.backward_pass is not None:
            return function(*args, **named)
        try:
            _switch(None)
            if is_listed:
                args, named = _arguments(name, lower, args, named)
            return entrances[name](*args, **named)
        finally:
            _switch(lower)

    return wrapper


class autocast(Block):
    """Inside, matrix products, convolutions and attention compute in half precision.

    Parameters stay in float32, and so does what needs the range or the digits: softmax, losses,
    norms, sums, exp, log and powers take and give float32. All other functions compute in the dtype
    of their arguments; float32 beside a half is float32. TABLE has the lists, which follow
    PyTorch's. float64, ints and bools stay as they are.

    Call `backward` after the block: its gradients have the dtypes of the forward pass, so those of
    parameters are float32. Parameters are cast once in a block, but for those in memory that NumPy
    may write to, and for einsum, which may return a view. A block concerns its thread alone;
    blocks nest, and one is also a decorator of functions and generators. A compiled step may be
    called inside, or have the block inside.

    Args:
        dtype: 'bfloat16' or 'float16'. Gradients in float16 want a `mg.optim.GradScaler`.
        enabled: False turns an outer block off inside.

    Raises:
        DTypeError: the dtype is not one of half precision.

    >>> import minigrad as mg
    >>> x, layer = mg.ones((1, 2)), mg.nn.Linear(2, 3)
    >>> with mg.autocast("float16"):
    ...     y = layer(x)
    ...     loss = mg.mse(y, mg.zeros((1, 3)))
    >>> y.dtype, loss.dtype, layer.weight.dtype
    (float16, float32, float32)
    """

    _setting = "autocast"

    def __init__(self, dtype, enabled=True):
        halves = [d for d in DTYPES if d.is_narrow]
        try:
            half = as_dtype(dtype)
        except DTypeError:
            half = None
        if half is None or half not in halves:
            known = [repr(d.name) for d in halves]
            near = near_dtype(dtype)
            raise DTypeError(
                f"autocast: wanted a dtype of half precision, {' or '.join(known)}",
                short(dtype),
                f"with mg.autocast({near if near in known else known[0]}): - parameters and data "
                "stay in float32",
            )
        self.dtype, self.enabled = half, flag("autocast", "enabled", enabled)

    def __repr__(self):
        return f"mg.autocast({self.dtype.name!r}{'' if self.enabled else ', enabled=False'})"

    def __reduce__(self):
        return autocast, (self.dtype.name, self.enabled)

    def _begin(self):
        before = {"autocast": state.autocast, "casts": state.casts}
        state.autocast = self.dtype if self.enabled else None
        state.casts = {} if state.casts is None else state.casts
        state.update()
        return before

    def _end(self, before, is_error):
        casts = state.casts
        vars(state).update(before)
        state.update()
        if state.casts is not casts:
            casts.clear()  # its weak references refer back to it: a cycle, which would live on
