"""Hyperparameters: which types and ranges are taken."""

import math

from minigrad.errors import ArgumentError, ArgumentTypeError
from minigrad.graph.variable import Variable


def checked(algorithm, known, name, value):
    """A hyperparameter of the right type and range, as a Python value.

    Args:
        algorithm: name of the optimizer, for messages.
        known: the names that it has.
    """
    if name not in known:
        raise AttributeError(
            f"{algorithm} has no hyperparameter '{name}'; it has {', '.join(known)}"
        )
    if name in ("nesterov", "centered"):
        if not isinstance(value, bool):
            raise ArgumentTypeError(f"{algorithm}: wanted True or False for {name}", f"{value!r}")
        return value
    if name == "betas":
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise ArgumentTypeError(f"{algorithm}: wanted two numbers for betas", f"{value!r}")
        return tuple(_number(algorithm, name, b, below_one=True) for b in value)
    return _number(algorithm, name, value, below_one=name == "alpha")


def _number(algorithm, name, value, below_one):
    if isinstance(value, Variable) and value.size == 1:
        value = value.item()
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{algorithm}: wanted a number for {name}", f"{value!r}") from None
    if not 0.0 <= number < (1.0 if below_one else math.inf):
        wanted = "at least 0 and below 1" if below_one else "0 or more, and finite"
        raise ArgumentError(f"{algorithm}: wanted {name} {wanted}", f"{value}")
    return number
