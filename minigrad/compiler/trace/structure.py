"""Treats arguments and results as trees: tuples, lists and dicts, with Variables as leaves."""

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from minigrad.array.dtypes import DType
from minigrad.errors import TraceError
from minigrad.tape.variable import Variable

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, DType)


class StepOutput(NamedTuple):
    """Where a Variable that the step returns comes from.

    kind: 'result' (number `index` of the recording's results), 'argument' (Variable number `index`
    among the arguments, the object itself) or 'captured' (`variable`, the object itself).
    is_number: whether a one-element result is returned as a Python number. is_inferred: whether it
    was computed under `mg.inference()`. is_linked: whether it gets the node of the call.
    """

    kind: str
    index: int = -1
    variable: Variable | None = None
    is_number: bool = False
    is_inferred: bool = False
    is_linked: bool = False


def variables_of(*trees, kind: type = Variable):
    """Return the Variables (or StepOutputs) in trees, in order, with repetitions."""
    leaves, stack = [], list(reversed(trees))
    while stack:
        x = stack.pop()
        if isinstance(x, kind):
            leaves.append(x)
        elif isinstance(x, dict):
            stack += reversed(x.values())
        elif isinstance(x, (tuple, list)):
            stack += reversed(x)
    return leaves


def mapped(tree, function, plain=lambda x: x) -> Any:
    """Map a tree: function(leaf) for Variables and StepOutputs, plain(leaf) for others."""
    if isinstance(tree, (Variable, StepOutput)):
        return function(tree)
    if type(tree) in (dict, OrderedDict):
        return type(tree)((key, mapped(value, function, plain)) for key, value in tree.items())
    if type(tree) in (list, tuple):
        return type(tree)(mapped(x, function, plain) for x in tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(x, function, plain) for x in tree))
    if isinstance(tree, PLAIN):
        return plain(tree)
    raise TraceError(
        "a compiled step: wanted it to return Variables, numbers, strings or None, in tuples, "
        "lists or dicts",
        type(tree).__name__,
        "return the Variables that it is made of",
    )


def outputs_of(tree):
    """Return the StepOutputs in what a step returns."""
    return variables_of(tree, kind=StepOutput)
