"""Checks the function passed to `mg.compile`, and reads its signature."""

import inspect
import weakref
from typing import Any

from minigrad.errors import ArgumentTypeError


def check_function(function):
    """Raise unless the argument is a function that runs to its end in one call."""
    if isinstance(function, (classmethod, staticmethod)):
        kind = type(function).__name__
        raise ArgumentTypeError(
            "compile: wanted the function itself", f"a {kind}", f"@mg.compile below @{kind}"
        )
    kind = getattr(type(function), "not_a_step", None)
    if kind:
        raise ArgumentTypeError(
            "compile: wanted a function of Variables",
            kind,
            "leave out mg.compile: a kernel is compiled by itself, and launched outside of steps",
        )
    if not callable(function):
        raise ArgumentTypeError(
            "compile: wanted a function, or something else that can be called",
            f"{type(function).__name__}",
            "@mg.compile above a def, or mg.compile(f)",
        )
    for kind in ("isgeneratorfunction", "iscoroutinefunction", "isasyncgenfunction"):
        if getattr(inspect, kind)(function):
            raise ArgumentTypeError(
                "compile: wanted a function that runs to its end in one call",
                f"{kind[2:-8]} function '{function.__name__}'",
                "compile what it does in one step",
            )


def signature_of(function):
    """Return (names of positional parameters, whether it has **kwargs), for `Description`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return (), True
    kinds = inspect.Parameter
    names = [
        p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    return tuple(names), any(p.kind is kinds.VAR_KEYWORD for p in parameters)


def weakly(method):
    """Wrap a bound method weakly, so that its own object can hold it without a cycle."""
    reference: Any = weakref.WeakMethod(method)
    return lambda *arguments: reference()(*arguments)
