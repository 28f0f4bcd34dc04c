"""Calls with arguments that a function does not have: what it takes, and what they are called here.

Only a call that fails pays for it.
"""

import functools
import inspect

from minigrad.errors import ArgumentTypeError

KNOWN_AS = {  # keywords that people bring from PyTorch and NumPy
    "a_max": "high", "a_min": "low", "dim": "axis", "dims": "axes", "end": "stop",
    "end_dim": "end_axis", "fill_value": "value", "grad_outputs": "dy", "gradient": "dy",
    "input": "x", "keepdim": "keepdims", "label": "target", "labels": "target", "max": "high",
    "min": "low", "negative_slope": "slope", "num": "count", "num_classes": "classes",
    "rtol": "relative", "atol": "absolute", "size": "shape", "start_dim": "start_axis",
    "steps": "count", "weights": "weight",
}  # fmt: skip

ADVICE = {  # by function
    "transpose": "x.permute(1, 0) puts the axes in an order; x.T reverses them",
}
DIVISOR = "the sum of squares is divided by n: multiply by n / (n - 1) for the unbiased variance"
ADVICE |= {"var": DIVISOR, "std": f"{DIVISOR}, and take the root"}
for _name in ("zeros", "ones", "rand", "randn"):
    ADVICE[_name] = f"the shape is one tuple: {_name}((2, 3))"
ADVICE["full"] = "the shape is one tuple: full((2, 3), 0.5)"


def fails_at_the_call(error):
    """Whether a TypeError, caught where a function is called, is about its arguments."""
    return error.__traceback__.tb_next is None


def explained(function, error, keywords=()):
    """The error for a call whose arguments do not fit the function's signature."""
    signature = inspect.signature(function)
    known, name = signature.parameters, function.__name__
    fix = None
    for keyword in keywords:
        ours = KNOWN_AS.get(keyword)
        if keyword == "requires_grad" and keyword not in known:
            fix = f"{name}(...).requires_grad_()"
            break
        if keyword not in known and ours in known:
            fix = f"{ours}=, as it is called here"
            break
    got = str(error).partition("() ")[2].removeprefix("got ")
    return ArgumentTypeError(f"{name}: wanted {name}{signature}", got, fix or ADVICE.get(name))


def teaching(function):
    """The function, whose wrong calls raise ArgumentTypeError with its signature."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not fails_at_the_call(error):
                raise
            raise explained(function, error, kwargs) from None

    return wrapper


def check_count(name, names, args):
    """Raises unless there is one operand a name."""
    if len(args) != len(names):
        raise ArgumentTypeError(
            f"{name}: wanted {len(names)} operand{'s' * (len(names) != 1)}, {', '.join(names)}",
            f"{len(args)}",
            f"mg.{name}({', '.join(names)})",
        )
