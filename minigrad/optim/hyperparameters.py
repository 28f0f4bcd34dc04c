"""Hyperparameters: which types and ranges are taken."""

import math

from minigrad.arguments import flag, number
from minigrad.errors import ArgumentTypeError


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
        return flag(algorithm, name, value)
    if name == "betas":
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise ArgumentTypeError(f"{algorithm}: wanted two numbers for betas", f"{value!r}")
        return tuple(number(algorithm, name, b, 0.0, below=1.0) for b in value)
    return number(algorithm, name, value, 0.0, below=1.0 if name == "alpha" else math.inf)
