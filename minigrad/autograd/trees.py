"""Handles arguments that are trees: dicts, lists, tuples and dataclasses of Variables.

A list or tuple of numbers alone is data, as for every operation: it is one leaf.
"""

import copy
import dataclasses
from typing import Any

import numpy as np

from minigrad.errors import ArgumentTypeError
from minigrad.tape.variable import Variable


def _is_dataclass(x):
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def is_tree(x):
    """Returns whether an argument is a tree rather than one leaf."""
    if isinstance(x, (list, tuple)):
        return any(isinstance(y, Variable) or is_tree(y) for y in x)
    return isinstance(x, dict) or _is_dataclass(x)


def is_input(leaf):
    """Returns whether a leaf can be differentiated by, because it holds floats."""
    if isinstance(leaf, Variable):
        return leaf.dtype.is_float
    if isinstance(leaf, (list, tuple)):
        try:
            return bool(leaf) and np.asarray(leaf).dtype.kind == "f"
        except ValueError:  # lists of different lengths
            return False
    return isinstance(leaf, (float, np.floating)) or (
        isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
    )


def mapped(tree, function) -> Any:
    """Applies a function to each leaf; returns a tree of the same form. One leaf is a tree too."""
    if not is_tree(tree):
        return function(tree)
    if isinstance(tree, dict):
        pairs = [(key, mapped(value, function)) for key, value in tree.items()]
        return dict(pairs) if type(tree) is dict else _of_kind(tree, pairs)
    if isinstance(tree, (list, tuple)):
        values = [mapped(value, function) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    out = copy.copy(tree)
    for field in dataclasses.fields(tree):
        object.__setattr__(out, field.name, mapped(getattr(tree, field.name), function))
    return out


def _of_kind(tree, pairs):
    out = copy.copy(tree)  # a copy of a defaultdict keeps its default
    for key, value in pairs:
        out[key] = value
    return out


def inputs_of(tree):
    """Returns the leaves of a tree that can be differentiated by, in order."""
    inputs = []
    mapped(tree, lambda leaf: inputs.append(leaf) if is_input(leaf) else None)
    return inputs


def refilled(tree, values) -> Any:
    """Returns a tree with the next of `values` instead of each input, and None for other leaves."""
    return mapped(tree, lambda leaf: next(values) if is_input(leaf) else None)


def beside(name, what, tree, model):
    """Returns the leaves of a tree at the places where a model has its inputs."""
    if not is_tree(model):
        return [tree]
    leaves = []
    _beside(name, what, tree, model, leaves)
    return leaves


def _beside(name, what, tree, model, leaves):
    if not is_tree(model):
        if is_input(model):
            leaves.append(tree)
        return
    keys = _keys(model)
    if type(tree) is not type(model) or _keys(tree) != keys:
        raise ArgumentTypeError(
            f"{name}: wanted {what} of the same form as the argument: {_form(model)}", _form(tree)
        )
    for key in keys or ():
        one, other = (_part(x, key) for x in (tree, model))
        _beside(name, what, one, other, leaves)


def _part(tree, key: Any):
    return getattr(tree, key) if _is_dataclass(tree) else tree[key]


def _keys(tree):
    if isinstance(tree, dict):
        return list(tree)
    if isinstance(tree, (list, tuple)):
        return list(range(len(tree)))
    return [field.name for field in dataclasses.fields(tree)] if _is_dataclass(tree) else None


def _form(tree):
    keys = _keys(tree)
    kind = type(tree).__name__
    if keys is None:
        return kind
    if isinstance(tree, (list, tuple)):
        return f"a {kind} of {len(keys)}"
    return f"a {kind} with {', '.join(map(str, keys))}" if keys else f"an empty {kind}"
