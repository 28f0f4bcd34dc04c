"""Formulas made smaller: constants computed, steps that change nothing left out.

Only what is exact for every input, infinities and NaN among them, but for the sign of zero, which
kernels do not keep either: x + 0 is x, 0 * x is not 0.
"""

import math

from minigrad.kernels.expression import ON_NUMBERS, Expression


def folded(op, args):
    """Expression(op, *args), or something smaller that has the same value."""
    values = [a.args[0] for a in args if a.op == "constant"]
    if values and op == "where" and args[0].op == "constant":
        return args[1] if args[0].args[0] else args[2]
    if len(values) == len(args) and op in ON_NUMBERS:
        number = _computed(op, values)
        if number is not None:
            return Expression("constant", number)
    if len(args) == 2 and values:
        same = _unchanged(op, *args)
        if same is not None:
            return same
    return Expression(op, *args)


def _computed(op, values):
    """A function of numbers, or None where the kernel had better say what comes."""
    if op == "div" and not values[1]:
        return None
    try:
        number = ON_NUMBERS[op](*values)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    if isinstance(number, complex) or (isinstance(number, float) and not math.isfinite(number)):
        return None
    if op in ("floor", "ceil", "round") and isinstance(values[0], float):
        return float(number)
    return number


def _unchanged(op, a, b):
    """The operand that is the result, if the other one is a neutral number of the same kind."""
    for x, other, is_left in ((a, b, True), (b, a, False)):
        if x.op != "constant" or isinstance(x.args[0], bool) or other.op == "constant":
            continue
        number = x.args[0]
        if not isinstance(number, float):
            continue  # an int times a float is a float: the kind would change
        if op == "add" and number == 0.0 and _is_real(other):
            return other
        if op == "mul" and number == 1.0 and _is_real(other):
            return other
        is_neutral = (op == "sub" and number == 0.0) or (op == "div" and number == 1.0)
        if is_neutral and not is_left and _is_real(other):
            return other
    return None


REAL = {"exp", "log", "tanh", "sigmoid", "sqrt", "div", "erf", "row_mean", "expm1", "log1p"}


def _is_real(e):
    """Whether a formula surely has kind 'f'. Symbols say so by their mark."""
    if e.op in REAL:
        return True
    if e.op == "symbol":
        return e.args[0].startswith("f")
    if e.op == "constant":
        return isinstance(e.args[0], float)
    if e.op in ("add", "sub", "mul", "neg", "maximum", "minimum", "row_sum", "row_max"):
        return any(_is_real(a) for a in e.args)
    if e.op == "where":
        return any(_is_real(a) for a in e.args[1:])
    return e.op in ("as_float32", "as_float64")
