"""Variable = Array + .grad + the node that made it. PyTorch calls it Tensor.

Operators and methods that compute are installed by `minigrad.ops` from its table.
"""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.arguments import Count, short
from minigrad.array.array import Array, View
from minigrad.devices.backend import device_of, values
from minigrad.errors import (
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GradientError,
    InPlaceError,
    ShapeError,
)
from minigrad.formulas.expression import Flows
from minigrad.hints import missing
from minigrad.seams import seams
from minigrad.tape import hooks as gradient_hooks
from minigrad.tape import interop
from minigrad.tape.interop import FUNCTIONS
from minigrad.tape.modes import state
from minigrad.tape.node import place_line


class Variable(Flows):
    """A value that flows through operations and remembers how it was made.

    `mg.variable(data)`, functions such as `mg.zeros`, and operations make Variables, not a call.
    """

    __slots__ = (
        "__weakref__",
        "_grad",
        "_requires_grad",
        "array",
        "group",
        "hooks",
        "mark",
        "name",
        "node",
        "post_hooks",
        "shows",
    )
    __hash__ = object.__hash__

    def __init__(self, array, node=None, requires_grad=False, name=None):
        if not isinstance(array, Array):
            raise ArgumentTypeError(
                "Variable: cannot be called with data", type(array).__name__, "mg.variable(data)"
            )
        self.array, self.node, self._requires_grad = array, node, requires_grad
        self._grad = self.group = self.hooks = self.post_hooks = None
        self.name = name
        if type(array) is View:
            array.shown_by(self)

    def __getattr__(self, attribute: str) -> Any:
        # an op does not set attributes that start as None, which saves stores
        if attribute in ("_grad", "group", "hooks", "mark", "name", "post_hooks", "shows"):
            return None
        hint = None
        if attribute in FUNCTIONS:
            hint = f"mg.{attribute}(x, ...)"
        elif attribute[-1:] == "_" != attribute[:1] and hasattr(type(self), attribute[:-1]):
            hint = f"x = x.{attribute[:-1]}(...): few methods write in place"
        text = "'Variable' has no attribute"
        known = () if attribute[:1] == "_" else dir(type(self))
        raise missing("Variable", attribute, text, hint, "dir(x) lists it all", known)

    if TYPE_CHECKING:  # installed by tape.backward and ops.table
        backward: Any

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    # protocols of Python, NumPy and other libraries:
    numpy, item, tolist = interop.numpy, interop.item, interop.tolist
    __array_priority__ = 1000
    __array__ = interop.as_ndarray
    __array_ufunc__ = interop.ArrayUfunc()
    __array_function__ = interop.array_function
    __dlpack__ = interop.dlpack
    __dlpack_device__ = interop.dlpack_device
    __cuda_array_interface__ = property(interop.cuda_array_interface)
    __index__ = interop.as_index
    __bool__ = interop.truth
    __len__ = interop.length
    __format__ = interop.formatted
    __deepcopy__ = interop.deep_copy
    __reduce_ex__ = interop.refuse_pickle

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    __trunc__ = __int__

    def __copy__(self):
        return self.clone()  # matplotlib copies the data that it plots

    shape = property(lambda self: self.array.shape, doc="The sizes of the axes, a tuple.")
    ndim = property(lambda self: len(self.array.shape), doc="The number of axes.")
    size = property(lambda self: Count(self.array.size), doc="The number of elements.")
    dtype = property(lambda self: self.array.dtype, doc="The element type.")
    strides = property(lambda self: self.array.strides, doc="Steps along the axes, in elements.")
    nbytes = property(lambda self: self.array.nbytes, doc="Bytes of the elements.")
    version = property(
        lambda self: self.array.version, doc="How many in-place writes the Storage has had."
    )
    refcount = property(
        lambda self: self.array.buffer.owners, doc="How many Storages share the Buffer (clones)."
    )
    is_leaf = property(lambda self: self.node is None, doc="Whether no recorded op computed it.")

    @property
    def device(self):
        """The name of the device that holds the bytes."""
        return self.array.device

    def data_ptr(self):
        """Returns the address of the first element."""
        seams.effects.read(self.array)
        return self.array.address

    @property
    def requires_grad(self):
        """Whether backward computes a gradient for this Variable. Assignable on leaves."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentTypeError("requires_grad: wanted True or False", short(value))
        if self.node is not None:
            raise GradientError(
                "requires_grad can be set on leaves only",
                f"the output of {self.node.op}",
                "use y.detach() for a leaf with the same values",
                details=[("made at", self.node.line)],
            )
        if value and not self.dtype.is_float:
            raise DTypeError(
                "only floating point Variables can require gradients",
                f"{self.dtype}",
                "convert first: x.to('float32')",
            )
        if self._requires_grad != bool(value):
            seams.effects.change(self, f"requires_grad = {bool(value)}")
        self._requires_grad = bool(value)

    def requires_grad_(self, value=True):
        """Sets `requires_grad` of a leaf. Returns self."""
        self.requires_grad = value
        return self

    @property
    def grad(self):
        """The accumulated gradient of a leaf, or None. Assignment checks and copies a value.

        backward() sets it only on leaves. Reading it elsewhere warns, once per line.
        """
        seams.effects.grad(self)
        if self.node is not None and self._grad is None:
            warnings.warn(
                f".grad of a Variable that is no leaf is None: backward() sets it on leaves alone, "
                f"and {self.node.op} made this one; mg.gradients(loss, [x]) gives the gradient of "
                "a result, x.register_hook(f) shows it",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value):
        seams.effects.grad(self, is_set=True)
        if value is None:
            self._grad = None
            return
        if not isinstance(value, Variable):
            raise ArgumentTypeError(".grad: wanted a Variable or None", f"{type(value).__name__}")
        if value.shape != self.shape or value.dtype is not self.dtype:
            raise (ShapeError if value.shape != self.shape else DTypeError)(
                f".grad: wanted {self.dtype}{list(self.shape)}, as the Variable",
                f"{value.dtype}{list(value.shape)}",
            )
        if value.device != self.device:
            raise DeviceError(
                f".grad: wanted a gradient on {self.device}, as the Variable",
                value.device,
                f"move it: g.to({self.device!r})",
            )
        self._grad = Variable(device_of(value.array).convert(value.array, value.dtype))

    def detach(self):
        """Returns a Variable of the same Storage and version counter, without gradients."""
        return Variable(self.array)

    # -- gradients -----------------------------------------------------------------------------

    register_hook = gradient_hooks.register_hook
    register_post_accumulate_hook = gradient_hooks.register_post_accumulate_hook

    def write_check(self, what):
        """Raises InPlaceError if autograd could not record an in-place write now."""
        if state.recording and self._requires_grad and self.node is None:
            raise InPlaceError(
                f"{what}: in-place writes to a leaf that requires gradients cannot be recorded",
                self.describe(),
                "write inside `with mg.no_grad():`, or out of place",
            )

    # -- looking -------------------------------------------------------------------------------

    def __repr__(self):
        text = np.array2string(
            values(self.array), precision=4, separator=", ", threshold=100, prefix="Variable("
        )
        parts = [text]
        if not self.size and self.ndim != 1:
            parts.append(f"shape={self.shape}")
        if self.dtype.name != "float32":
            parts.append(f"dtype={self.dtype}")
        if self.device != "cpu":
            parts.append(f"device={self.device}")
        if self.name:
            parts.append(f"name={self.name!r}")
        if self.node is not None:
            parts.append(f"node={self.node.op}")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        return f"Variable({', '.join(parts)})"

    def describe(self):
        """Returns one line for error messages."""
        name = f" '{self.name}'" if self.name else ""
        return f"{self.dtype}{list(self.shape)}{name}"


def written_line(array: Array):
    """Returns the user's line that last wrote in place to the Storage, or an empty string."""
    return place_line(getattr(array.storage, "written_at", None))


def filled(near, value, shape=None, dtype=None):
    """Makes an Array of one value on the device of `near`, by default of its shape and dtype."""
    device = device_of(near)
    out = device.empty(near.shape if shape is None else shape, dtype or near.dtype)
    device.fill(out, value)
    return out
