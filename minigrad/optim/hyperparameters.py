"""Hyperparameters: their types and ranges."""

import math

from minigrad.arguments import flag, number
from minigrad.errors import ArgumentTypeError


def checked(algorithm, defaults, below_one, name, value):
    """A hyperparameter as a Python value, after checking its type and range.

    Args:
        algorithm: name of the optimizer, for messages.
        defaults: {name: default value}; the default determines the type.
        below_one: names of numbers that must be below 1; the numbers of pairs always must.
    """
    if name not in defaults:
        raise AttributeError(
            f"{algorithm} has no hyperparameter '{name}'; it has {', '.join(defaults)}"
        )
    default = defaults[name]
    if isinstance(default, bool):
        return flag(algorithm, name, value)
    if isinstance(default, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(default):
            raise ArgumentTypeError(f"{algorithm}: wanted two numbers for {name}", f"{value!r}")
        return tuple(number(algorithm, name, b, 0.0, below=1.0) for b in value)
    return number(algorithm, name, value, 0.0, below=1.0 if name in below_one else math.inf)
