"""Makes the functions behind operators and names such as `mg.exp` from their operations."""

import functools
import inspect

import numpy as np

from minigrad.arguments import short
from minigrad.errors import ArgumentTypeError, DTypeError
from minigrad.hints import ADVICE, teaching
from minigrad.ops.autocast import dispatched, entrances
from minigrad.ops.fast import fast_path
from minigrad.tape.variable import Variable


def called_as(op, function):
    """Gives a function the name and the docstring of an op; returns it."""
    function.__name__ = function.__qualname__ = op.name
    function.__doc__, function.__module__ = op.__doc__, __name__
    return function


def is_operand(b):
    """Returns whether operators take a value. Other types may handle Variables themselves."""
    return isinstance(b, (Variable, int, float, list, tuple)) or hasattr(b, "__array__")


def operator(op, is_reflected=False):
    """Makes an operator. It returns NotImplemented for operands of unknown types."""

    def otherwise(*operands):
        other = operands[0 if is_reflected else -1]
        return op.otherwise(*operands) if is_operand(other) else NotImplemented

    name = op.name, is_reflected
    made = fast_path(op, dispatched(name, otherwise), "reflected" if is_reflected else "plain")
    entrances[name] = called_as(op, made)
    return made


def logical_operator(op, sign, fix, is_reflected=False):
    """Makes &, |, ^ or ~ of truth values. It refuses ints: minigrad has no bitwise ops."""
    method = operator(op, is_reflected) if op.inputs[1:] else op.apply

    def checked(*operands):
        for x in operands:
            dtype = x.dtype if isinstance(x, Variable) else np.asarray(x).dtype
            if dtype.kind in "iuf":
                raise DTypeError(f"{sign}: wanted truth values", f"{dtype}", fix)
        return method(*operands)

    return checked


def refused_operator(wanted, fix):
    """Makes an operator that raises, for one that Variables do not have."""

    def method(*operands):
        raise ArgumentTypeError(wanted, ", ".join(short(x) for x in operands), fix)

    return method


def function_of(op):
    """Makes the public function of an op whose only arguments are its inputs."""

    def otherwise(*args):
        if len(args) != len(op.inputs):
            names, s = ", ".join(op.inputs), "s" * (len(op.inputs) != 1)
            raise ArgumentTypeError(
                f"{op.name}: wanted {len(op.inputs)} operand{s}, {names}",
                f"{len(args)}",
                ADVICE.get(op.name, f"mg.{op.name}({names})"),
            )
        return op.otherwise(*args)

    otherwise.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in op.inputs]
    )
    taught = teaching(called_as(op, otherwise))
    return functools.wraps(taught)(fast_path(op, dispatched(op.name, taught), "function"))
