"""Parameter: a Variable that a module trains. Its id stays the same when its values change."""

import itertools
import warnings
from typing import Any

from minigrad.arguments import flag, label, short
from minigrad.arguments import function as checked_function
from minigrad.array.array import Array
from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, DTypeError, GradientError, ShapeError
from minigrad.hints import teaching_class
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn.ownership import add_owner, is_owned, path, remove_owner
from minigrad.ops.operands import constant
from minigrad.tape.attribute_writes import written
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable

NAME: Any = Variable.name  # the descriptors that Parameter's own properties override
REQUIRES_GRAD: Any = Variable.requires_grad

_next_id = itertools.count(1).__next__


@teaching_class
class Parameter(Variable):
    """A leaf that requires gradients; modules and optimizers identify it by its `id`.

    Optimizers keep their state (such as momentum) by id. So change the values and keep the
    Parameter: `p.map(f)`, `p.assign(value)`, `with p.edit() as value:`, or any in-place method
    under `mg.no_grad()`. A new Parameter has a new id: its state starts from zero.

    Args:
        data: floats: a Variable, an ndarray, nested lists or a number. The values are copied
            at the first write; their graph is left behind.
        requires_grad: False freezes the Parameter.
        name: a name; the default is its path in the model, such as "0.weight".

    >>> import minigrad as mg
    >>> p = mg.nn.Parameter([1.0, -3.0])
    >>> before = p.id
    >>> p.map(lambda value: value.clip(-2.0, 2.0)).tolist(), p.id == before
    ([1.0, -2.0], True)
    """

    __slots__ = ("copy_of", "id", "last_name", "owners")

    def __init__(self, data, requires_grad=True, name=None):
        source = data if isinstance(data, Variable) else constant(data, "Parameter")
        if not source.dtype.is_float:
            raise DTypeError(
                "Parameter: wanted floating point values: only they can be trained",
                source.describe(),
                "convert first: x.to('float32'), or keep it as a Buffer",
            )
        self.owners, self.last_name, self.copy_of = [], None, None
        array = device_of(source.array).share(source.array)
        super().__init__(array, name=label("Parameter", name))
        self.id = _next_id()
        self._requires_grad = flag("Parameter", "requires_grad", requires_grad)

    @classmethod
    def over(cls, array: Array, source: "Parameter", copy_of):
        """Returns a frozen stand-in for `source` over an Array: same id. copy_of: view or clone."""
        out = object.__new__(cls)
        out.owners, out.last_name, out.copy_of = [], source.name, copy_of
        Variable.__init__(out, array)
        out.id = source.id
        return out

    # -- names and owners ----------------------------------------------------------------------

    @property
    def name(self):  # pyright: ignore[reportIncompatibleVariableOverride] - a slot there
        """The name that was set, or else the path in the outermost living module: "0.weight"."""
        own = NAME.__get__(self)
        dead = self.owners[0][1] if self.owners else None
        return own or path(self.owners) or self.last_name or dead

    @name.setter
    def name(self, value):
        NAME.__set__(self, value)

    @property
    def is_orphan(self):
        """Whether a module owned it once and no living module owns it now."""
        return bool(self.owners or self.last_name) and not is_owned(self.owners)

    def owned_by(self, module_reference, attribute):
        """Adds an owner; the module that registers the parameter calls this."""
        self.owners = add_owner(self.owners, module_reference, attribute)

    def released_by(self, module, attribute):
        """Removes an owner; the module that drops the parameter calls this."""
        self.last_name = self.name
        self.owners = remove_owner(self.owners, module, attribute)

    # -- new values, same parameter ------------------------------------------------------------

    def assign(self, value):
        """Writes new values of the same shape; id, optimizer state and `.grad` stay. Returns self.

        Raises:
            GradientError: the value carries a graph; a parameter is a leaf and cannot hold one.
            ShapeError: the value has another shape.
        """
        value = value if isinstance(value, Variable) else constant(value, "assign", self)
        if value.node is not None:
            raise GradientError(
                f"assign: {self._called()} is a leaf and cannot take a value that carries a graph",
                f"the output of {value.node.op}",
                "p.assign(value.detach()), or compute it in p.map(f), where nothing is recorded",
                details=[("made at", value.node.line)],
            )
        if value.shape != self.shape:
            raise ShapeError(
                f"assign: wanted the shape {self.shape} of {self._called()}",
                f"{value.shape}",
                "another shape is another parameter: set a new nn.Parameter, and tell the "
                "optimizer: optimizer.replace(old, new)",
            )
        with no_grad():
            self.copy_(value)
        return self

    assign_ = assign

    def map(self, function):
        """Replaces the values by function(values); id, optimizer state and `.grad` stay.

        The function receives a Variable outside the graph; nothing is recorded. Returns self.
        """
        checked_function("map", "function", function)
        with no_grad():
            result = function(self.detach())
        if not isinstance(result, Variable):
            raise ArgumentTypeError(
                "map: wanted a function that returns a Variable",
                f"{type(result).__name__}",
                "p.map(lambda value: value.clip(-1.0, 1.0))",
            )
        return self.assign(result)

    def edit(self):
        """`with p.edit() as value:` for in-place changes of the values; nothing is recorded.

        id, optimizer state and `.grad` stay. Warns if nothing was written: `value *= 2` writes,
        `value = value * 2` makes a new Variable.
        """
        return _Edit(self)

    def _called(self):
        return f"parameter '{self.name}'" if self.name else "this parameter"

    # -- copies are never trained --------------------------------------------------------------

    @property
    def requires_grad(self):
        """Whether backward computes its gradient. Assigning False freezes it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if value and self.copy_of:
            raise GradientError(
                f"{self._called()} belongs to a {self.copy_of} of a model, which is never trained",
                fix="train the model itself, or copy.deepcopy(model) for a second one to train",
            )
        if value is not self._requires_grad:
            written(self, f"{self._called()}.requires_grad = {short(value)}")
        REQUIRES_GRAD.fset(self, value)

    def __deepcopy__(self, memo):
        out = type(self)(self.detach(), self._requires_grad, NAME.__get__(self))
        out.copy_of = self.copy_of
        memo[id(self)] = out
        return out

    def __repr__(self):
        return super().__repr__().replace("Variable(", "Parameter(", 1).replace("\n", "\n ")


class _Edit:
    """The context manager that `Parameter.edit` returns."""

    def __init__(self, parameter):
        self._parameter, self._mode = parameter, no_grad()

    @uninterrupted
    def __enter__(self):
        self._version = self._parameter.version
        self._mode.__enter__()
        return self._parameter.detach()

    @uninterrupted
    def __exit__(self, kind, *error):
        self._mode.__exit__(kind, *error)
        if kind is None and self._parameter.version == self._version:
            warnings.warn(
                f"edit: nothing was written to {self._parameter._called()}; "
                "write in place: value *= 2, not value = value * 2",
                stacklevel=2,
            )


class Buffer(Variable):
    """Values that belong to a module but are not trained, such as running statistics.

    A Buffer that is an attribute of a Module is part of its `state_dict()`, unless
    persistent=False.
    """

    __slots__ = ("is_persistent",)

    def __init__(self, data, persistent=True, name=None):
        source = data if isinstance(data, Variable) else constant(data, "Buffer")
        array = device_of(source.array).share(source.array)
        super().__init__(array, name=label("Buffer", name))
        self.is_persistent = flag("Buffer", "persistent", persistent)

    def __deepcopy__(self, memo):
        out = type(self)(self, self.is_persistent, self.name)
        memo[id(self)] = out
        return out

    def __repr__(self):
        return super().__repr__().replace("Variable(", "Buffer(", 1)
