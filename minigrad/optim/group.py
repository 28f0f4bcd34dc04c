"""Group: parameters with the same hyperparameters."""

import weakref
from typing import Any

import numpy as np

from minigrad.arguments import several
from minigrad.array.array import Array, ndarray
from minigrad.array.dtypes import float64
from minigrad.devices.backend import host
from minigrad.errors import ArgumentError, ArgumentTypeError, StateError
from minigrad.formulas.update import MOST_HYPERPARAMETERS, flat
from minigrad.hints import NAMES
from minigrad.memory.interrupts import uninterrupted
from minigrad.nn import Module, Parameter
from minigrad.seams import seams
from minigrad.tape.attribute_writes import written
from minigrad.tape.variable import Variable

WANTED = "a Module, Parameters, or a list of dicts"
FIX = "give it the model, or list(model.parameters()); a generator can be used only once"


class Group:
    """Parameters, and their hyperparameters as attributes, `learning_rate` first.

    One float64 array holds the numbers, and the kernels read it; `group.learning_rate = v` writes
    to it. parameters: those that are updated now; `optimizer.add` adds one.
    """

    _reference: Any
    _hyperparameters: dict
    _array: Array
    parameters: tuple
    sources: list

    def __init__(self, optimizer, sources, hyperparameters):
        self.__dict__.update(
            _reference=weakref.ref(optimizer), sources=sources, parameters=(), _hyperparameters={}
        )
        device = host()  # CPU kernels read the array; other devices get the numbers
        self.__dict__["_array"] = device.from_numpy(np.zeros(MOST_HYPERPARAMETERS), float64)
        for name, value in hyperparameters.items():
            setattr(self, name, value)

    @property
    def _optimizer(self):
        """The optimizer. A group does not keep it alive."""
        optimizer = self._reference()
        if optimizer is None:
            raise StateError(
                "a group outlived its optimizer, which updated its parameters and no longer exists",
                fix="keep the optimizer: optimizer = mg.optim.Adam(...), then optimizer.groups[0]",
            )
        return optimizer

    def __getattr__(self, name) -> Any:
        values = self.__dict__["_hyperparameters"]
        if name == "learning_rate":
            return float(ndarray(self._array)[0])
        if name not in values:
            raise AttributeError(
                f"a group of {self._optimizer.algorithm} has no '{name}'; "
                f"it has learning_rate, {', '.join(n for n in values if n != 'learning_rate')}"
            )
        return values[name]

    def __getitem__(self, name):
        name = NAMES["Optimizer"].get(name, name)
        raise ArgumentTypeError(
            f"a group of {self._optimizer.algorithm} has attributes, not items",
            f"group[{name!r}]",
            f"group.{name}, to read it and to set it",
        )

    def __setitem__(self, name, value):
        self[name]

    @uninterrupted
    def __setattr__(self, name, value):
        if name == "sources":
            self.__dict__[name] = value
            return
        if name == "parameters":
            raise ArgumentTypeError(
                f"the parameters of a group of {self._optimizer.algorithm} follow what the "
                "optimizer was given",
                fix=f"optimizer.add(parameter, group={self._optimizer.groups.index(self)})",
            )
        if name != "learning_rate":
            written(self, f"{self._optimizer.algorithm}.{name} = ...")
        else:
            seams.effects.refuse(
                f"learning_rate = ... of {self._optimizer.algorithm} inside a compiled step would "
                "be set once, while tracing",
                "call the step() of a schedule there, or set it outside the step",
            )
        value = self._optimizer.checked(name, value)
        values = self._hyperparameters
        if name != "learning_rate" and values.get(name) != value:
            self._optimizer.forget_plan()  # the rule may need other state
        is_complete = len(values) == len(self._optimizer.defaults)
        if is_complete and name != "learning_rate":
            values["learning_rate"] = self.learning_rate  # a compiled step may have written it
        changed = {**values, name: value}
        if len(changed) == len(self._optimizer.defaults):
            self._optimizer.check(changed)
            self._optimizer.update_of(changed)  # raises for an invalid rule
            numbers = list(flat(changed).values())
            host().prepare_write(self._array)
            ndarray(self._array)[: len(numbers)] = numbers
        values[name] = value

    def follow(self, parameters):
        """Sets the parameters to update from now on."""
        self.__dict__["parameters"] = tuple(parameters)

    @property
    def address(self):
        """The address from which the kernels read the numbers."""
        return self._array.address

    @property
    def learning_rate_array(self):
        """A float64 Variable () over the learning rate's memory."""
        return Variable(self._array.view((), (), 0))

    def fixed(self):
        """Returns {name: value} of all hyperparameters except the learning rate."""
        return {n: v for n, v in self._hyperparameters.items() if n != "learning_rate"}

    def as_dict(self):
        """Returns {name: value} of the hyperparameters."""
        return {**self._hyperparameters, "learning_rate": self.learning_rate}

    def update(self, dtype=None):
        """Returns the formulas.Update for its parameters of a dtype, by default of a wide one."""
        return self._optimizer.update_of(self._hyperparameters, dtype)

    def numbers(self):
        """Returns {symbol: number} of the hyperparameters, for formulas.update."""
        return flat(self.as_dict())

    def __reduce_ex__(self, protocol):
        raise ArgumentTypeError(
            "copy, pickle: a group is a part of its optimizer",
            fix="copy.deepcopy(optimizer) copies its groups; group.as_dict() has the numbers",
        )

    def __repr__(self):
        shown = ", ".join(f"{name}={value}" for name, value in self.as_dict().items())
        return f"Group({len(self.parameters)} parameters, {shown})"


def split(name, given):
    """Splits an optimizer's first argument into groups: [(sources, own hyperparameters)]."""
    given = _unwrapped(given)
    if isinstance(given, (Module, Parameter)):
        return [([given], {})]
    given = several(name, WANTED, given, FIX)
    if not any(isinstance(item, dict) for item in given):
        return [([_source(name, item) for item in given], {})]
    groups = []
    for item in given:
        if not isinstance(item, dict) or not {"parameters", "params"} & set(item):
            raise ArgumentTypeError(
                f"{name}: wanted a list of dicts, each with 'parameters'",
                f"{type(item).__name__}" if not isinstance(item, dict) else f"keys {list(item)}",
                "[{'parameters': model.body, 'learning_rate': 1e-4}, {'parameters': model.head}]",
            )
        own = {k: v for k, v in item.items() if k not in ("parameters", "params")}
        parameters = _unwrapped(item.get("parameters", item.get("params")))
        if isinstance(parameters, (Module, Parameter)):
            parameters = [parameters]
        listed = several(name, WANTED, parameters, FIX, or_none=True)
        sources = [_source(name, p) for p in listed]
        groups.append((sources, own))
    return groups


def _unwrapped(given):
    """Returns the Module inside a compiled one, and any other argument unchanged."""
    inside = getattr(given, "__wrapped__", None)
    return inside if isinstance(inside, Module) else given


def _source(name, item):
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        item = item[1]  # a pair from named_parameters()
    if isinstance(item, (Module, Parameter)):
        return item
    if isinstance(item, Variable):
        fix = "p = nn.Parameter(x), and compute with p"
    elif isinstance(item, str):
        fix = "give it the model, or model.parameters()"
    else:
        fix = None
    raise ArgumentTypeError(
        f"{name}: wanted nn.Parameters, as it keeps something of each from step to step",
        item.describe() + ", a Variable" if isinstance(item, Variable) else type(item).__name__,
        fix,
    )


def check_trainable(name, parameter):
    """Raises for a Parameter of a view or clone."""
    if parameter.copy_of:
        fix = {
            "view": "give it the model: view.train()",
            "clone": "give it the model it is a copy of",
        }
        raise ArgumentError(
            f"{name}: '{parameter.name}' belongs to a {parameter.copy_of} of a model, which is "
            "never trained",
            parameter.describe(),
            fix[parameter.copy_of],
        )
