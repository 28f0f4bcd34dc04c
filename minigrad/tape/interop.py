"""Connects Variables to Python's protocols, NumPy, and libraries that support DLPack."""

from typing import Any

import numpy as np

from minigrad.arguments import flag
from minigrad.array.array import Array, export
from minigrad.array.bits import as_bfloats
from minigrad.devices.backend import device_named, device_of, values
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    GradientError,
    InPlaceError,
    ShapeError,
)
from minigrad.seams import seams
from minigrad.tape.modes import state
from minigrad.tape.node import user_place

FUNCTIONS: set = set()  # names of all functions in minigrad's table, methods or not
NUMPYS = {  # {NumPy's name of a function: minigrad's name}
    "absolute": "abs", "fabs": "abs", "arctan2": "atan2", "divide": "div", "multiply": "mul",
    "negative": "neg", "power": "pow", "rint": "round", "subtract": "sub",
}  # fmt: skip
REFLECTED = {  # {NumPy's name of an operator: the method of x for `array operator x`}
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "divmod": "__rdivmod__",
    "power": "__rpow__", "matmul": "__rmatmul__", "less": "__gt__", "less_equal": "__ge__",
    "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
}  # fmt: skip


def numpy(x, writable=False):
    """Returns a NumPy view of the values. It is read-only, so that no write goes unnoticed.

    (...) -> (...), of the Variable's dtype and strides. The view keeps the memory alive. The
    Variable may require gradients; the view has no graph.

    Args:
        writable: allow writes through the view. The call counts as one write. Autograd cannot see
            later writes, so from now on it copies this Variable's values whenever it saves them.

    Raises:
        DeviceError: the Variable is not on the CPU. x.to("cpu").numpy() copies it.
        DTypeError: it is bfloat16, which NumPy lacks, and ml_dtypes, which adds it, is not
            installed. x.to("float32").numpy() has the same numbers.
        InPlaceError: writable=True for a broadcast view, or for a leaf that requires gradients.
    """
    writable, dtype = flag("numpy", "writable", writable), x.dtype.numpy
    memory = _memory(x, writable)
    return memory.view(dtype) if x.dtype.is_coded else memory


def _memory(x, writable):
    """Returns NumPy's view of the memory: of bits if NumPy lacks the dtype; see `numpy`."""
    leave_graph(x)
    array, device = x.array, device_named(x.array.device)
    if not device.is_host:
        raise DeviceError(
            "NumPy shows memory of the CPU alone",
            f"{x.describe()} on {array.device}",
            "x.to('cpu').numpy(), with x.detach() before it if it requires gradients",
        )
    if writable:
        if array.is_broadcast:
            raise InPlaceError(
                "numpy(writable=True): wanted memory of its own for every element",
                f"a broadcast view {array.shape} with strides {array.strides}",
                "export x.clone(), which has an element of its own at each place",
            )
        x.write_check("numpy(writable=True)")
        device.prepare_write(array, user_place())
        array.mark_foreign()
    return export(array, device.copy_buffer, writable)


def leave_graph(x):
    """Prepares a read of a Variable's elements outside the graph."""
    seams.effects.read(x.array)
    if state.context is not None and x._requires_grad:
        state.context.has_left_graph = True


def as_ndarray(x, dtype=None, copy=None):
    """Returns the values as a NumPy array. Raises if the Variable requires gradients."""
    if x._requires_grad:
        raise GradientError(
            "NumPy cannot carry a graph: this Variable requires gradients",
            x.describe(),
            "x.detach().numpy() for a view of the values, or the function of minigrad",
        )
    if x.dtype.is_coded and dtype is not None and copy is not False:  # NumPy may lack its own
        leave_graph(x)
        return values(x.array).astype(dtype)
    view = x.numpy()
    if dtype is not None and np.dtype(dtype) != view.dtype:
        if copy is False:
            raise ArgumentError(
                "NumPy asked for another dtype without a copy, which cannot be",
                f"{view.dtype} to {np.dtype(dtype)}",
                "leave out copy=False",
            )
        return view.astype(dtype)
    return view.copy() if copy else view


def array_ufunc(x, ufunc, method, *inputs, **more):
    """Runs `array + x` and the like by x's reflected operator. Other ufuncs raise."""
    name, is_call = ufunc.__name__, method == "__call__" and not more
    reflected = REFLECTED.get(name) if is_call and len(inputs) == 2 else None
    if reflected and inputs[1] is x:
        return getattr(x, reflected)(inputs[0])
    if "out" in more:
        raise ArgumentTypeError(
            f"np.{name}: wanted NumPy's values to write into an array",
            x.describe(),
            "array += x.detach().numpy(), or x = x + array for a new Variable",
        )
    ours, operands = NUMPYS.get(name, name), ", ".join("xyz"[: len(inputs)])
    outside = f"np.{name}(x.detach().numpy()) outside the graph"
    raise ArgumentTypeError(
        f"np.{name}: a function of NumPy keeps no graph, and takes no Variables",
        x.describe(),
        f"mg.{ours}({operands}); {outside}" if ours in FUNCTIONS else outside,
    )


class ArrayUfunc:
    """A descriptor: `array_ufunc` on the class, where NumPy looks, and None on a Variable.

    Only np.ma looks at the object. For None, `masked + x` calls x's reflected operator at once.
    Otherwise NumPy's functions for masked arrays would run, which keep no graph.
    """

    def __get__(self, x, kind=None):
        return array_ufunc if x is None else None


def array_function(x, function, types, args, kwargs):
    """Runs a function of NumPy on the values. Raises if a Variable requires gradients."""
    name = function.__name__
    named = {k: _plain(name, v) for k, v in kwargs.items()}
    return function(*[_plain(name, x) for x in args], **named)


def dlpack(x, **kwargs):
    """Returns a DLPack capsule of the memory. Other libraries may write through it."""
    if x._requires_grad:
        raise GradientError(
            "DLPack cannot carry a graph: this Variable requires gradients",
            x.describe(),
            "export x.detach()",
        )
    device = device_named(x.array.device)
    if not device.is_host:
        leave_graph(x)
        return device.dlpack(x.array, **kwargs)
    capsule = _memory(x, True).__dlpack__(**kwargs)
    return as_bfloats(capsule) if x.dtype.is_coded else capsule


def dlpack_device(x):
    """Return DLPack's (kind, number) of the device."""
    device = device_named(x.array.device)
    return (1, 0) if device.is_host else device.dlpack_device()  # 1: kDLCPU


def cuda_array_interface(x):
    """Returns the dict that tells other libraries about memory on a GPU."""
    device = device_named(x.array.device)
    export = getattr(device, "cuda_array_interface", None)
    if export is None:
        raise AttributeError(f"there is no CUDA memory on {device.name}")
    if x.dtype.is_coded:
        raise AttributeError(f"the array interface has no {x.dtype}; DLPack has: x.__dlpack__()")
    leave_graph(x)
    return export(x.array)


def item(x):
    """Returns the only element as a Python number: float, int or bool.

    Raises:
        ShapeError: there are several elements, or none.
    """
    array = x.array
    if array.size != 1:
        raise ShapeError("item: wanted one element", f"shape {x.shape}", "use tolist() or numpy()")
    leave_graph(x)
    return device_named(array.buffer.pool.device).item(array)


def tolist(x):
    """Returns the elements as nested lists of Python numbers, or a number for shape ().

    (m, n) -> m lists of n numbers.
    """
    leave_graph(x)
    return values(x.array).tolist()


def as_index(x):
    """Returns the only element of an integer Variable."""
    if x.dtype.kind != "i" or x.size != 1:
        raise ArgumentTypeError("an index: wanted one integer", f"{x.dtype}{list(x.shape)}")
    return x.item()


def truth(x):
    """Returns whether the only element is not 0."""
    if x.size != 1:
        raise ArgumentError(
            "the truth of an array: wanted one element",
            f"shape {x.shape}",
            "say which: (x > 0).any() or (x > 0).all()",
        )
    return bool(x.item())


def length(x):
    """Returns the size of the first axis."""
    if not x.shape:
        raise ArgumentTypeError("len() of a Variable without axes")
    return x.shape[0]


def formatted(x, form):
    """Formats the only element."""
    if not form:
        return str(x)
    if x.size != 1:
        raise ArgumentTypeError(
            f"the format {form!r}: wanted one element",
            f"shape {x.shape}",
            "format x.tolist() piece by piece",
        )
    return format(x.item(), form)


def deep_copy(x, memo):
    """Returns a leaf with copies of the values and of `.grad`."""
    if x.node is not None:
        raise GradientError(
            "copy.deepcopy: wanted a leaf: a copy cannot have part of a graph",
            f"the output of {x.node.op}",
            "x.detach().clone() for the values, x.clone() to stay in the graph",
            details=[("made at", x.node.line)],
        )
    kind: Any = type(x)
    grad = x._grad
    new = kind(device_of(x.array).convert(x.array, x.dtype))
    new.name, new._requires_grad = x.name, x._requires_grad
    if grad is not None:
        new._grad = type(grad)(device_of(grad.array).convert(grad.array, grad.dtype))
    memo[id(x)] = new
    return new


def refuse_pickle(x, protocol):
    """Raises ArgumentTypeError: memory of the engine cannot be pickled."""
    wide = ".to('float32')" if x.dtype.is_coded else ""  # NumPy lacks bfloat16
    raise ArgumentTypeError(
        f"pickle: a {type(x).__name__} holds memory of the engine",
        f"{x.describe()}",
        f"pickle or np.save x.detach(){wide}.numpy(), and restore it with mg.variable"
        + (f"(..., dtype={x.dtype.name!r})" if wide else ""),
    )


def _plain(name, x):
    """Replaces Variables with arrays in an argument of NumPy's function `name`."""
    if isinstance(getattr(x, "array", None), Array):  # ours: other libraries have requires_grad
        if x._requires_grad:
            raise GradientError(
                f"np.{name} cannot carry a graph: this requires gradients",
                x.describe(),
                f"mg.{name} if there is one, or x.detach()",
            )
        return x.numpy()
    return type(x)([_plain(name, y) for y in x]) if type(x) in (tuple, list) else x
