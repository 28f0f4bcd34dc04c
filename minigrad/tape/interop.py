"""Variables among Python, NumPy and the libraries that speak DLPack."""

from typing import Any

import numpy as np

from minigrad.arguments import flag
from minigrad.array.array import export
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

REFLECTED = {  # {NumPy's name of an operator: what `array operator x` is}
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "power": "__rpow__", "matmul": "__rmatmul__", "less": "__gt__", "less_equal": "__ge__",
    "greater": "__lt__", "greater_equal": "__le__", "equal": "__eq__", "not_equal": "__ne__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
}  # fmt: skip


class Interop:
    """What a Variable shows to the world outside the graph."""

    __slots__ = ()
    array: Any
    node: Any
    name: Any
    _grad: Any
    _requires_grad: bool
    shape: Any
    size: Any
    dtype: Any
    describe: Any
    write_check: Any
    clone: Any
    __array_priority__ = 1000

    def numpy(self, writable=False):
        """A NumPy view, read-only so that no write goes unseen. It keeps the memory alive.

        Of a Variable on the CPU; another device's is copied there first: x.to("cpu").numpy().

        Args:
            writable: allow writes through the view. Counts as one write now; autograd then copies
                this Variable's values whenever it saves them, as it cannot see the later ones.
        """
        writable = flag("numpy", "writable", writable)
        self._leaves_graph()
        array, device = self.array, device_named(self.array.device)
        if array.device != "cpu":
            raise DeviceError(
                "NumPy shows memory of the CPU alone",
                f"{self.describe()} on {array.device}",
                "x.to('cpu').numpy(), with x.detach() before it if it requires gradients",
            )
        if writable:
            if any(n > 1 and s == 0 for n, s in zip(array.shape, array.strides, strict=True)):
                raise InPlaceError(
                    "numpy(writable=True): wanted memory of its own for every element",
                    f"a broadcast view {array.shape} with strides {array.strides}",
                    "export x.clone(), which has an element of its own at each place",
                )
            self.write_check("numpy(writable=True)")
            device.prepare_write(array, user_place())
            array.mark_foreign()
        return export(array, device.copy_buffer, writable)

    def _leaves_graph(self):
        seams.effects.read(self.array)
        if state.context is not None and self._requires_grad:
            state.context.has_left_graph = True

    def __array__(self, dtype=None, copy=None):
        if self._requires_grad:
            raise GradientError(
                "NumPy cannot carry a graph: this Variable requires gradients",
                self.describe(),
                "x.detach().numpy() for a view of the values, or the function of minigrad",
            )
        view = self.numpy()
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ArgumentError(
                    "NumPy asked for another dtype without a copy, which cannot be",
                    f"{view.dtype} to {np.dtype(dtype)}",
                    "leave out copy=False",
                )
            return view.astype(dtype)
        return view.copy() if copy else view

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        """`array + x` is x's reflected operator; functions of NumPy know no graph: they raise."""
        name, is_call = ufunc.__name__, method == "__call__" and not more
        reflected = REFLECTED.get(name) if is_call and len(inputs) == 2 else None
        if reflected and inputs[1] is self:
            return getattr(self, reflected)(inputs[0])
        if "out" in more:
            raise ArgumentTypeError(
                f"np.{name}: wanted NumPy's values to write into an array",
                self.describe(),
                "array += x.detach().numpy(), or x = x + array for a new Variable",
            )
        raise ArgumentTypeError(
            f"np.{name}: a function of NumPy keeps no graph, and takes no Variables",
            self.describe(),
            f"mg.{name}(x), if minigrad has it; np.{name}(x.detach().numpy()) outside the graph",
        )

    def __array_function__(self, function, types, args, kwargs):
        """NumPy's functions act on the values of Variables outside the graph, and refuse others."""
        name = function.__name__
        named = {k: _plain(name, v) for k, v in kwargs.items()}
        return function(*[_plain(name, x) for x in args], **named)

    def __dlpack__(self, **kwargs):
        if self._requires_grad:
            raise GradientError(
                "DLPack cannot carry a graph: this Variable requires gradients",
                self.describe(),
                "export x.detach()",
            )
        if self.array.device != "cpu":
            self._leaves_graph()
            return device_named(self.array.device).dlpack(self.array, **kwargs)
        return self.numpy(writable=True).__dlpack__(**kwargs)

    def __dlpack_device__(self):
        if self.array.device != "cpu":
            return device_named(self.array.device).dlpack_device()
        return (1, 0)  # kDLCPU

    @property
    def __cuda_array_interface__(self):
        device = device_named(self.array.device)
        export = getattr(device, "cuda_array_interface", None)
        if export is None:
            raise AttributeError(f"there is no CUDA memory on {device.name}")
        self._leaves_graph()
        return export(self.array)

    def item(self):
        """The only element, as a Python number."""
        if self.size != 1:
            raise ShapeError(
                "item: wanted one element", f"shape {self.shape}", "use tolist() or numpy()"
            )
        self._leaves_graph()
        return device_named(self.array.device).item(self.array)

    def tolist(self):
        """Nested lists of Python numbers."""
        self._leaves_graph()
        return values(self.array).tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype.kind != "i" or self.size != 1:
            raise ArgumentTypeError(
                "an index: wanted one integer", f"{self.dtype}{list(self.shape)}"
            )
        return self.item()

    def __bool__(self):
        if self.size != 1:
            raise ArgumentError(
                "the truth of an array: wanted one element",
                f"shape {self.shape}",
                "say which: (x > 0).any() or (x > 0).all()",
            )
        return bool(self.item())

    def __len__(self):
        if not self.shape:
            raise ArgumentTypeError("len() of a Variable without axes")
        return self.shape[0]

    def __format__(self, form):
        if not form:
            return str(self)
        if self.size != 1:
            raise ArgumentTypeError(
                f"the format {form!r}: wanted one element",
                f"shape {self.shape}",
                "format x.tolist() piece by piece",
            )
        return format(self.item(), form)

    # -- copies --------------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        if self.node is not None:
            raise GradientError(
                "copy.deepcopy: wanted a leaf: a copy cannot have part of a graph",
                f"the output of {self.node.op}",
                "x.detach().clone() for the values, x.clone() to stay in the graph",
                details=[("made at", self.node.line)],
            )
        kind: Any = type(self)
        grad = self._grad
        new = kind(device_of(self.array).convert(self.array, self.dtype))
        new.name, new._requires_grad = self.name, self._requires_grad
        if grad is not None:
            new._grad = type(grad)(device_of(grad.array).convert(grad.array, grad.dtype))
        memo[id(self)] = new
        return new

    def __copy__(self):
        return self.clone()  # matplotlib copies what it is given to plot

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            f"pickle: a {type(self).__name__} holds memory of the engine",
            fix="pickle or np.save x.detach().numpy(), and make it anew with mg.variable",
        )


def _plain(name, x):
    """An argument of NumPy's function `name`, with arrays in the place of Variables."""
    if isinstance(x, Interop):
        if x._requires_grad:
            raise GradientError(
                f"np.{name} cannot carry a graph: this requires gradients",
                x.describe(),
                f"mg.{name} if there is one, or x.detach()",
            )
        return x.numpy()
    return type(x)([_plain(name, y) for y in x]) if type(x) in (tuple, list) else x
