"""Checks the type and range of users' arguments. Each check returns the argument, converted.

Every public function checks its arguments first. So a mistake raises at the call, and the error
names the argument. `where` is the function's public name, `name` the argument's. No check accepts a
bool as a number or a number as a bool.
"""

import itertools
import math
from collections.abc import Iterator, MappingView, Reversible, Set
from typing import Any

import numpy as np

from minigrad.errors import ArgumentError, ArgumentTypeError

BOOLS = (bool, np.bool_)
_SETS = (Set, type(iter(set())))
MOST = 1_000_000  # items; an iterable with more is taken to be endless
_ORDERED = (MappingView, Reversible)  # a dict's views, and sets that keep an order


class RunTimeNumber:
    """A number that a compiled step receives at each run; see `compiler.trace.numbers`."""

    __slots__ = ()


class Count(int):
    """x.size, an int. Calling it, as in PyTorch, raises an error that says what to write."""

    __slots__ = ()

    def __call__(self, *axis):
        raise ArgumentTypeError(
            f"x.size is the number of elements, {int(self)}: it is not called",
            f"x.size({', '.join(map(repr, axis))})",
            "x.shape, or x.shape[0] for the size of the first axis",
        )

    def __reduce__(self):
        return int, (int(self),)


def is_run_number(x: Any) -> bool:
    """Returns whether x is a number that a compiled step receives at each run."""
    return isinstance(x, RunTimeNumber)


def real(number: Any) -> float:
    """Converts a number to float; a RunTimeNumber stays one."""
    return number if is_run_number(number) else float(number)


def short(value):
    """Formats a value for a message: the start of its repr, or the size of a huge int."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an int of {value.bit_length()} bits"
    try:
        return f"{value!r:.60}"
    except ValueError:  # Python refuses to print an int of more than 4,300 digits
        return f"a {type(value).__name__} with an int that is too long to print"


def shown(value):
    """Formats a value for a message like `short`, and adds its type."""
    text = short(value)
    has_type = text.startswith(("an int of ", f"a {type(value).__name__} with an int"))
    return text if has_type else f"{text} of type {type(value).__name__}"


def flag(where, name, value, fix=None):
    """Checks that the value is True or False."""
    if isinstance(value, BOOLS):
        return bool(value)
    raise ArgumentTypeError(f"{where}: wanted True or False for {name}", shown(value), fix)


def whole(where, name, value, at_least=None, fix=None):
    """Checks that the value is an int, of at least `at_least` if given."""
    if type(value) is int and at_least is None:
        return value
    try:
        if isinstance(value, BOOLS):
            raise TypeError
        number = value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentTypeError(f"{where}: wanted an int for {name}", shown(value), fix) from None
    if at_least is not None and number < at_least:
        raise ArgumentError(f"{where}: wanted {name} of at least {at_least}", short(number), fix)
    if number.bit_length() > 200:  # no size is so large, and messages could not print it
        raise ArgumentError(f"{where}: wanted {name} far smaller", short(number), fix)
    return number


def number(
    where, name, value, low=-math.inf, high: float | None = math.inf, below=math.inf,
    above=-math.inf,
):  # fmt: skip
    """Checks that the value is a finite number, and returns it as a float.

    It must lie in [low, high], and strictly between above and below. high=None allows infinity.
    """
    if type(value) is float and value - value == 0.0:  # fast path: a finite float
        top = math.inf if high is None else high
        if low <= value <= top and above < value < below:
            return value
    given: Any = value
    if not isinstance(given, (int, float, np.number)) and getattr(given, "size", 0) == 1:
        given = given.item() if hasattr(given, "item") else given  # an array or a Variable
    if isinstance(given, BOOLS) or not isinstance(given, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{where}: wanted a number for {name}", shown(value))
    try:
        x = real(given)
    except OverflowError:
        x = math.inf
    is_inside = low <= x <= (math.inf if high is None else high) and above < x < below
    if high is None and x == math.inf:
        is_inside = low <= x
    if not is_inside or (high is not None and abs(x) == math.inf):
        limits = [
            text
            for text, is_there in (
                (f"at least {low:g}", low > -math.inf),
                (f"above {above:g}", above > -math.inf),
                (f"at most {high:g}" if high is not None else "", high not in (None, math.inf)),
                (f"below {below:g}", below < math.inf),
            )
            if is_there
        ]
        if len(limits) < 2 and high is not None:
            limits.append("finite")
        wanted = " and ".join(limits) or "other than NaN"
        raise ArgumentError(f"{where}: wanted {name} {wanted}", shown(value))
    return x


def share(where, name, value):
    """Checks that the value is a number from 0 to 1, such as a probability."""
    return number(where, name, value, 0.0, 1.0)


def choice(where, name, value, choices):
    """Checks that the value is one of `choices`, mostly strings."""
    if (isinstance(value, str) or value is None) and value in choices:
        return value
    *most, last = [repr(c) for c in choices]
    raise ArgumentError(f"{where}: wanted {name} {', '.join(most)} or {last}", shown(value))


def function(where, name, value: Any, fix=None) -> Any:
    """Checks that the value is callable."""
    if callable(value):
        return value
    raise ArgumentTypeError(f"{where}: wanted a function for {name}", shown(value), fix)


def label(where, value, name="name"):
    """Checks that the value is a str, used as a name, or None."""
    if value is None or isinstance(value, str):
        return value
    raise ArgumentTypeError(f"{where}: wanted a text for {name}", shown(value))


def in_order(where, wanted, given: Any, fix) -> list:
    """Returns the items of an iterable as a list. Refuses a set, which has no order.

    wanted: the kind of the items, in words. fix: how to write the call correctly.
    """
    if isinstance(given, _SETS) and not isinstance(given, _ORDERED):
        raise ArgumentTypeError(
            f"{where}: wanted {wanted} in an order",
            f"a {type(given).__name__}, whose order is another one in each run",
            fix,
        )
    try:
        if isinstance(given, (str, bytes, range)):  # letters and numbers are never wanted
            raise TypeError
        items = iter(given)
    except TypeError:
        raise ArgumentTypeError(f"{where}: wanted {wanted}", shown(given), fix) from None
    listed = list(itertools.islice(items, MOST + 1))
    if len(listed) > MOST:
        raise ArgumentError(
            f"{where}: wanted {wanted}", f"a {type(given).__name__} of more than {MOST:,}", fix
        )
    return listed


def several(where, wanted, given: Any, fix, or_none=False) -> list:
    """Like `in_order`, but refuses an iterable without items.

    or_none: accept an empty list or tuple, which somebody chose to pass. An empty iterator is still
    refused: it may be used up.
    """
    items = in_order(where, wanted, given, fix)
    is_iterator = isinstance(given, Iterator)
    if not items and (is_iterator or not or_none):
        kind = type(given).__name__
        got = f"a {kind} that gives nothing: is it used up?" if is_iterator else f"an empty {kind}"
        raise ArgumentError(f"{where}: wanted {wanted}", got, fix)
    return items


def instance(where, name, value: Any, kind, wanted, fix=None) -> Any:
    """Checks that the value is an instance of `kind`. wanted: the kind, in words."""
    if isinstance(value, kind):
        return value
    raise ArgumentTypeError(f"{where}: wanted {wanted} for {name}", shown(value), fix)
