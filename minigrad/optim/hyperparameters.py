"""Hyperparameters: which types and ranges are taken."""

import math

from minigrad.arguments import flag, number
from minigrad.errors import ArgumentTypeError


def checked(algorithm, defaults, below_one, name, value):
    """A hyperparameter of the right type and range, as a Python value.

    Args:
        algorithm: name of the optimizer, for messages.
        defaults: {name: value} of those that it has, by whose types they are known.
        below_one: names of numbers that are below 1; those of pairs are anyway.
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
