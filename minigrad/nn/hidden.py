"""Refuses Modules and Parameters inside plain collections: training would silently omit them."""

from collections import deque
from typing import Any

from minigrad.errors import ArgumentTypeError

COLLECTIONS = (list, tuple, dict, set, frozenset, deque)
DEPTH = 5  # levels of nested collections to search


def refuse_hidden(module, internal, kinds):
    """Raises if an attribute is a collection, possibly nested, that holds one of `kinds`.

    Also raises if an attribute wraps a Module, such as mg.compile(nn.Linear(2, 2)), unless the
    Module is part of a model. internal: names of attributes that are not the user's.
    """
    for name, value in module.__dict__.items():
        if name in internal:
            continue
        if not isinstance(value, COLLECTIONS):
            _refuse_wrapped(module, name, value, kinds[0])
            continue
        found = _search(value, name, kinds, DEPTH, set())
        if found is None:
            continue
        place, hidden = found
        if not isinstance(hidden, kinds[1]):  # a Module
            box = "ModuleDict" if isinstance(value, dict) else "ModuleList"
            fix = f"self.{name} = nn.{box}(...), one within another if nested"
        else:
            fix = f"set each as an attribute of its own: setattr(self, f'{name}_{{k}}', parameter)"
        raise ArgumentTypeError(
            f"{type(module).__name__}.{name}: a plain {type(value).__name__} hides what is in "
            "it: it would not be trained, saved or counted",
            f"{type(hidden).__name__} at {place}",
            fix,
        )


def _refuse_wrapped(module, name, value, kind):
    inside: Any = getattr(value, "__dict__", {}).get("__wrapped__")
    if isinstance(inside, kind) and inside is not module and not inside._owners:
        raise ArgumentTypeError(
            f"{type(module).__name__}.{name}: a {type(value).__name__} hides the Module that it "
            "wraps: it would not be trained, saved or counted",
            type(inside).__name__,
            f"self.{name} = the Module itself; wrap the whole model, or what calls it",
        )


def _search(value, place, kinds, depth, seen):
    """Returns (place, the first Module or Parameter found), or None. seen: ids visited so far."""
    if id(value) in seen:
        return None
    seen.add(id(value))
    is_ordered = not isinstance(value, (set, frozenset))
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, kinds):
            return f"{place}[{key!r}]" if is_ordered else place, item
        if depth > 1 and isinstance(item, COLLECTIONS):
            inside = f"{place}[{key!r}]" if is_ordered else place
            found = _search(item, inside, kinds, depth - 1, seen)
            if found is not None:
                return found
    return None
