"""Checks what a custom Function promises, and raises the error for a broken promise."""

import inspect

import numpy as np

from minigrad.arguments import shown
from minigrad.array.array import View
from minigrad.errors import ArgumentTypeError, InPlaceError
from minigrad.tape.variable import Variable, written_line


def held_by(value):
    """Returns a value and all that tuples, lists and dicts in it hold, at any depth."""
    held, stack = {}, [value]
    while stack:
        x = stack.pop()
        if id(x) not in held:  # a list may contain itself
            held[id(x)] = x
            if isinstance(x, (tuple, list)):
                stack += x
            elif isinstance(x, dict):
                stack += x.values()
    return held.values()


def hidden_intermediate(ctx, args):
    """Returns the name of an attribute of ctx that holds an array of floats, or None.

    Arguments of forward do not count. forward may have computed other arrays from its arguments, so
    their own gradients are unknown.
    """
    given = {id(a) for a in args}
    for name, value in vars(ctx).items():
        for x in () if name in ctx.own else held_by(value):
            is_array = isinstance(x, (Variable, np.ndarray, np.generic))
            if is_array and x.dtype.kind in "fc" and id(x) not in given:
                return name
    return None


def check_class(cls):
    """Raises ArgumentTypeError if forward or backward takes `self`."""
    for name in ("forward", "backward"):
        code = getattr(vars(cls).get(name), "__code__", None)
        if code is not None and code.co_varnames[:2] == ("self", "ctx"):
            raise ArgumentTypeError(
                f"{cls.__name__}: wanted a static method {name}",
                f"def {name}(self, ctx, ...)",
                f"@staticmethod, def {name}(ctx, ...): ...",
            )


def refuse_arguments(name, args):
    """Raises the ArgumentTypeError for `MyFunction(x)`."""
    raise ArgumentTypeError(
        f"{name}: making the Function takes no arguments",
        f"{len(args)}",
        f"{name}.apply(x) calls it, as {name}()(x) does",
    )


def refuse_names(name, named):
    """Raises the ArgumentTypeError for arguments passed by name."""
    raise ArgumentTypeError(
        f"{name}.apply: wanted arguments without names, as backward returns one gradient for "
        "each, in their order",
        f"{', '.join(named)} by name",
        f"{name}.apply(x, {next(iter(named.values()))!r:.40})",
    )


def check_method(cls, name, arguments):
    """Raises ArgumentTypeError if a Function lacks forward or backward. name: the method."""
    if not hasattr(cls, name):
        raise ArgumentTypeError(
            f"{cls.__name__}: wanted a static method {name}",
            f"a Function without {name}",
            f"@staticmethod, def {name}{arguments}: ...",
        )


def refuse_call(cls, name, arguments):
    """Raises ArgumentTypeError if a Function's forward or backward does not take the arguments."""
    signature = inspect.signature(getattr(cls, name))
    try:
        signature.bind(*arguments)
    except TypeError as error:
        names = ["ctx", *("xyz"[: len(arguments) - 1] if name == "forward" else ["*dys"])]
        raise ArgumentTypeError(
            f"{cls.__name__}.{name}: wanted a static method that takes ctx and "
            f"{len(arguments) - 1} more",
            f"def {name}{signature}: {error}",
            f"@staticmethod, def {name}({', '.join(names)}): ...",
        ) from None


def check_outputs(name, outputs):
    """Raises ArgumentTypeError if forward returned something else than Variables."""
    for y in outputs:
        if not isinstance(y, Variable):
            raise ArgumentTypeError(
                f"{name}.forward: wanted a Variable or a tuple of Variables",
                f"{type(y).__name__}",
                "wrap it: mg.variable(...)",
            )


def check_writes(name, dirty, args, outputs, written):
    """Raises if autograd cannot record the writes of forward to its arguments.

    dirty: the arguments of mark_dirty. written: the arguments that changed.
    """
    for x in dirty:
        if not any(x is a for a in args):
            raise ArgumentTypeError(
                f"{name} (mark_dirty): wanted arguments of forward",
                shown(x),
                "mark the argument itself, not a copy or a view of it",
            )
        x.write_check(f"{name} (mark_dirty)")
        if type(x.array) is View:
            raise InPlaceError(
                f"{name} (mark_dirty): a write to a view cannot be recorded: its base would not "
                "know",
                x.describe(),
                f"{name}.apply(x.clone())",
            )
        if not any(x is y for y in outputs):
            raise InPlaceError(
                f"{name} (mark_dirty): wanted forward to return what it wrote to",
                x.describe(),
                "return the argument itself, or write to a copy: x = x.clone()",
                details=[("written at", written_line(x.array))],
            )
    marked = {x.array.storage for x in dirty}
    returned = {y.array.storage for y in outputs}
    for x in written:
        storage = x.array.storage
        if storage not in marked and (x._requires_grad or storage in returned):
            raise InPlaceError(
                f"{name}.forward wrote in place to its argument, and autograd was not told",
                x.describe(),
                "write to a copy, x = x.clone(); or call ctx.mark_dirty(x) and return x",
                details=[("written at", written_line(x.array))],
            )
