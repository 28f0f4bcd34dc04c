"""Masks of active lanes, and how they merge values.

A mask is None (all lanes of the wave), a bool vector with some lane set, or DEAD (no lane left).
A statement gets the mask under which it runs and returns the mask of the lanes that go on to the
next one. Vectors, and so masks, are never modified.
"""

import numpy as np

DEAD = False
NUMBERS = (np.ndarray, np.generic)  # a number in a kernel: a vector, or a scalar for all lanes


class Misuse(Exception):
    """An error in a statement, raised by code that knows neither its line nor its thread.

    The statement turns it into a `SimulationError`. fix: what to do.
    """

    def __init__(self, wanted, fix=None):
        super().__init__(wanted)
        self.fix = fix


def on_numbers(name, function, values):
    """Return a function's result for numbers; raise a Misuse that names a value that is none."""
    try:
        return function(*values)
    except (TypeError, AttributeError):
        others = [value for value in values if not isinstance(value, NUMBERS)]
        if not others:
            raise
        raise Misuse(f"{name} takes numbers, not {describe(others[-1])}") from None


class _Unset:
    """The value of a local variable before its first assignment."""

    def __repr__(self):
        return "<no value yet>"


UNSET = _Unset()


def split(mask, condition):
    """Split a mask into (lanes where the condition holds, lanes where it does not)."""
    if condition.ndim == 0:
        return (mask, DEAD) if condition else (DEAD, mask)
    if condition.dtype != bool:
        condition = condition != 0
    if mask is None:
        held = np.count_nonzero(condition)
        if held == condition.size:
            return None, DEAD
        return (condition, ~condition) if held else (DEAD, None)
    taken = mask & condition
    held = np.count_nonzero(taken)
    if not held:
        return DEAD, mask
    if held == np.count_nonzero(mask):
        return mask, DEAD
    return taken, mask > condition


def union(a, b, whole=None):
    """Return the lanes of either mask; `whole`, which contains both, if they make up all of it."""
    if a is DEAD or a is b:
        return b
    if b is DEAD:
        return a
    if a is None or b is None:
        return None
    both = a | b
    count = np.count_nonzero(both)
    if count == both.size:
        return None
    return whole if whole is not None and count == np.count_nonzero(whole) else both


def outside(mask, inner):
    """Return the lanes of `mask` that are not in `inner`, or DEAD."""
    if inner is DEAD:
        return mask
    if inner is None or inner is mask:
        return DEAD
    rest = ~inner if mask is None else mask > inner
    return rest if rest.any() else DEAD


def merge(mask, new, old):
    """Return the new value in the lanes of a mask, the old one elsewhere."""
    if mask is None or new is old or old is UNSET:
        return new
    if isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old):
        return tuple(merge(mask, n, o) for n, o in zip(new, old, strict=True))
    if isinstance(new, np.generic) and isinstance(old, np.generic):
        if new.dtype == old.dtype and new.tobytes() == old.tobytes():  # 0.0 is not -0.0
            return new
    elif not isinstance(new, NUMBERS) or not isinstance(old, NUMBERS):
        return _merge_objects(mask, new, old)
    return np.where(mask, new, old)


def _merge_objects(mask, new, old):
    merged = getattr(new, "merged", None)
    if merged is None or type(new) is not type(old):
        raise Misuse(
            f"one name stands for {describe(new)} in some threads and {describe(old)} in others",
            "give it one type on every path, as the compiler demands",
        )
    return merged(mask, old)


def describe(value):
    """Return a value's type in a few words, for messages."""
    if isinstance(value, NUMBERS):
        return f"{'an' if value.dtype.kind == 'i' else 'a'} {value.dtype}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if value is None:
        return "None"
    if isinstance(value, str):
        return "a text"
    if getattr(value, "shape", None) == ():
        return "an array without axes"
    return getattr(value, "kind", type(value).__name__)
