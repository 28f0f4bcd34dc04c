"""model.valid(): a live view. model.clone(): a frozen copy. copy.deepcopy(model): a new model."""

import copy
from typing import Any

from minigrad.devices.backend import device_of
from minigrad.errors import ArgumentTypeError, GradientError
from minigrad.nn.parameter import Buffer, Parameter
from minigrad.nn.registry import INTERNAL, Registry
from minigrad.tape.modes import no_grad

OF_VIEW = {"_source", "_seen", "training"}  # a view's own attributes
_view_types = {}


class _View:
    """What a view does differently from its module; it looks up all else in the module on use."""

    def __getattribute__(self, name):
        mine = object.__getattribute__(self, "__dict__")
        source = mine["_source"]
        if name in OF_VIEW or name not in source.__dict__:
            return object.__getattribute__(self, name)
        value = source.__dict__[name]
        kind = source._members.get(name)
        if kind not in ("parameter", "module") or value is None:
            return value
        seen = mine["_seen"].get(name)
        key = value if kind == "module" else value.array
        if seen is None or seen[0] is not key or seen[1] is not value:
            if kind == "module":
                shown = view(value)
            else:
                shown = type(value).over(value.array, value, "view")
            seen = mine["_seen"][name] = key, value, shown
        return seen[2]

    def __setattr__(self, name, value):
        source = self.__dict__["_source"]
        raise ArgumentTypeError(
            f"{type(source).__name__}.{name}: a valid() view shows the model and cannot be changed",
            fix=f"change the model itself: model.{name} = ..., or model = view.train()",
        )

    def __delattr__(self, name):
        self.__setattr__(name, None)

    def _refuse_hidden(self):
        self.__dict__["_source"]._refuse_hidden()

    def __call__(self, *args, **kwargs):
        call = super().__call__  # pyright: ignore[reportAttributeAccessIssue] - the module's
        with no_grad():
            return call(*args, **kwargs)

    def register_forward_hook(self, hook):
        """Registers a hook on the viewed model. Calls of the view run it as well."""
        return self.__dict__["_source"].register_forward_hook(hook)

    def train(self, mode=True):
        """Returns the viewed model, unchanged, or with mode=False this view."""
        return self.__dict__["_source"] if mode else self

    def valid(self):
        """Returns the view itself."""
        return self

    def requires_grad_(self, value=True):
        """Raises: a view is never trained."""
        if value:
            raise GradientError(
                "requires_grad_: a valid() view is never trained", fix="view.train() is the model"
            )
        return self

    def to(self, target=None, *, device=None, dtype=None):
        """Raises: convert the model itself."""
        raise ArgumentTypeError(
            "to: a valid() view shows the model and cannot be converted", fix="model.to(...)"
        )

    def clone(self):
        """Returns a frozen copy of the model."""
        return self.__dict__["_source"].clone()


def view(module):
    """Module.valid."""
    if isinstance(module, _View):
        return module
    kind = type(module)
    if kind not in _view_types:
        _view_types[kind] = type(kind.__name__, (_View, kind), {"__doc__": kind.__doc__})
    out = object.__new__(_view_types[kind])
    object.__getattribute__(out, "__dict__").update(_source=module, _seen={}, training=False)
    return out


def rebuild(module, memo, of_parameter, of_buffer, of_value):
    """Builds a module of the same type and names.

    memo: {id: copy}, as for copy.deepcopy. of_parameter, of_buffer, of_value: functions that copy a
    part of that kind.
    """
    copied = memo.get(id(module))
    if copied is not None:
        return copied
    kind: Any = type(module)
    out = memo[id(module)] = kind.blank()
    for name, value in module.__dict__.items():
        if name in INTERNAL:
            continue
        if isinstance(value, Registry):
            new = rebuild(value, memo, of_parameter, of_buffer, of_value)
        elif isinstance(value, (Parameter, Buffer)):
            new = memo.get(id(value))
            if new is None:
                of = of_parameter if isinstance(value, Parameter) else of_buffer
                new = memo[id(value)] = of(value)
        else:
            new = of_value(value)
        Registry.__setattr__(out, name, new)
    out.__dict__["training"] = module.training
    return out


def clone(module):
    """Module.clone."""

    def frozen(p):
        return type(p).over(device_of(p.array).share(p.array), p, "clone")

    def copied(b):
        return type(b)(b, b.is_persistent, b.name)

    return rebuild(module, {}, frozen, copied, lambda value: value).eval()


def deepcopy(module, memo):
    """Module.__deepcopy__: new parameters with new ids."""

    def again(x):
        return copy.deepcopy(x, memo)

    return rebuild(module, memo, again, again, again)


def shallow(module):
    """Module.__copy__: a second module that shares the parameters, which are then tied."""
    return rebuild(module, {}, lambda p: p, lambda b: b, lambda value: value)
