"""Scalar formulas as small trees. Calling a Python function with symbols builds one.

The same names (`exp`, `where`, `*`) act on symbols, on numbers and, through `Flows.bind`, on
objects of upper layers. So a formula becomes a kernel, its gradient becomes a fused kernel, and
higher derivatives evaluate the same tree with Variables.
"""

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

from minigrad.errors import ArgumentTypeError


def _sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


ON_NUMBERS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": operator.pow, "neg": operator.neg, "abs": abs, "floor": math.floor, "ceil": math.ceil,
    "round": round, "sqrt": math.sqrt, "exp": math.exp, "expm1": math.expm1, "log": math.log,
    "log1p": math.log1p, "log2": math.log2, "sin": math.sin, "cos": math.cos, "tanh": math.tanh,
    "sigmoid": _sigmoid, "atan2": math.atan2, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "erf": math.erf, "maximum": max, "minimum": min,
    "where": lambda c, a, b: a if c else b,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
    "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b,
    "logical_not": operator.not_,
}  # fmt: skip
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
LOGIC = {"logical_and", "logical_or", "logical_not"}
ROW_REDUCTIONS = {
    "row_sum", "row_max", "row_mean", "row_min", "row_prod", "row_any", "row_all",
}  # fmt: skip
MOST_SHOWN = 100  # operations in the text of a formula


class Flows:
    """An operand of formulas. Every operation on it goes through `bind(name, args)`."""

    __slots__ = ()

    def bind(self, name, args):
        """Apply the named operation to `args`, one of which is self."""
        raise NotImplementedError


def call(name, *args):
    """Apply a named operation to expressions, Variables or numbers."""
    for a in args:
        if isinstance(a, Flows):
            return a.bind(name, args)
    return ON_NUMBERS[name](*args)


def _define(name):
    def function(*args):
        return call(name, *args)

    function.__name__ = name
    return function


neg, absolute, floor, ceil, round_, sqrt = map(
    _define, ("neg", "abs", "floor", "ceil", "round", "sqrt")
)
exp, expm1, log, log1p, log2 = map(_define, ("exp", "expm1", "log", "log1p", "log2"))
atan2, floor_divide, remainder = map(_define, ("atan2", "floor_divide", "remainder"))
sin, cos, tanh, sigmoid, erf = map(_define, ("sin", "cos", "tanh", "sigmoid", "erf"))
maximum, minimum, where, power = map(_define, ("maximum", "minimum", "where", "pow"))
equal, not_equal = map(_define, ("equal", "not_equal"))
logical_and, logical_or, logical_not = map(_define, ("logical_and", "logical_or", "logical_not"))
row_sum, row_max, row_mean = map(_define, ("row_sum", "row_max", "row_mean"))
column_of = _define("column_of")  # the index along the last axis, as an int
cast_float = _define("cast_float")  # an int or bool as a float


def sign(x):
    """Return -1, 0 or 1; NaN stays NaN."""
    return where(x > 0, 1, where(x < 0, -1, x))


def zero_of(x):
    """Return 0 in the shape of x. x * 0.0 would be NaN where x is infinite or NaN."""
    return where(False, x, 0.0)


def _asked(what, condition):
    """Return the error for `if`, `and` or `==` in a formula, which stands for all elements."""
    return ArgumentTypeError(
        f"a formula stands for all elements at once: it cannot ask {what}",
        fix=f"e.where({condition}, a, b) chooses for each element",
    )


class Expression(Flows):
    """`op` applied to `args`. Equal trees are one object, so finding common parts costs nothing.

    depth: the nesting depth of row reductions, which is the number of passes over a row.
    """

    __slots__ = ("args", "depth", "op")
    _interned: dict = {}

    def __new__(cls, op, *args):
        if op == "constant":  # 0.0 == -0.0 and NaN != NaN, but repr tells them apart
            key = (op, type(args[0]), repr(args[0]))
        else:
            key = (op, *((type(a), a) for a in args))
        known = cls._interned.get(key)
        if known is None:
            made = object.__new__(cls)
            made.op, made.args = op, args
            made.depth = max((a.depth for a in args if isinstance(a, Expression)), default=0)
            made.depth += op in ROW_REDUCTIONS
            known = cls._interned.setdefault(key, made)  # other threads see only finished objects
        return known

    __hash__ = object.__hash__

    def __eq__(self, other):
        if isinstance(other, (int, float)):
            raise _asked(f"whether {self} equals {other}", f"e.equal(x, {other})")
        return self is other

    def __bool__(self):
        raise _asked(f"whether {self} holds", "the condition")

    if TYPE_CHECKING:  # installed below from one table

        def __neg__(self) -> Any: ...
        def __add__(self, other: Any) -> Any: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __pow__ = __rpow__ = __lt__ = __le__ = __gt__ = __ge__ = __add__

    def bind(self, name, args):
        return Expression(
            name,
            *(a if isinstance(a, Expression) else Expression("constant", a) for a in args),
        )

    def __repr__(self):
        return _written(self, [MOST_SHOWN])


def _written(e, left):
    """Return the text of a formula, with `...` after left[0] operations.

    The full text of n objects may have 2^n operations, as after x = x * x, n times.
    """
    if not isinstance(e, Expression):
        return str(e)
    if e.op in ("symbol", "constant"):
        return str(e.args[0])
    left[0] -= 1
    if left[0] < 0:
        return "..."
    return f"{e.op}({', '.join([_written(a, left) for a in e.args])})"


def _install_operators():
    names = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}
    for method, name in names.items():
        setattr(Expression, f"__{method}__", lambda a, b, name=name: call(name, a, b))
        setattr(Expression, f"__r{method}__", lambda a, b, name=name: call(name, b, a))
    compare = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for method, name in compare.items():
        setattr(Expression, f"__{method}__", lambda a, b, name=name: call(name, a, b))
    setattr(Expression, "__neg__", lambda a: call("neg", a))  # noqa: B010 - same form as above


_install_operators()


def symbol(name):
    """Return a named input of a formula."""
    return Expression("symbol", name)


def walk(outputs):
    """Return every expression in the formulas once, arguments before their users."""
    order, seen, stack = [], set(), [(e, False) for e in reversed(outputs)]
    while stack:
        e, is_done = stack.pop()
        if is_done:
            order.append(e)
        elif e not in seen:
            seen.add(e)
            stack.append((e, True))
            stack += [(a, False) for a in reversed(e.args) if isinstance(a, Expression)]
    return order


def symbols_of(expression):
    """Return the names of the symbols that an expression reads."""
    return {e.args[0] for e in walk([expression]) if e.op == "symbol"}


_order = functools.lru_cache(1024)(lambda expression: walk([expression]))


def evaluate(expression, values):
    """Evaluate an expression with Variables or numbers as symbols, and shared parts once."""
    done = {}
    for e in _order(expression):
        if e.op == "symbol":
            done[e] = values[e.args[0]]
        elif e.op == "constant":
            done[e] = e.args[0]
        else:
            done[e] = call(e.op, *[done[a] for a in e.args])
    return done[expression]


def substitute(e, mapping, cache):
    """Return e with its symbols replaced. cache: results for this mapping, initially {}."""
    if e.op == "symbol":
        return mapping[e.args[0]]
    if e.op == "constant":
        return e
    result = cache.get(e)
    if result is None:
        args = [substitute(a, mapping, cache) for a in e.args]
        result = cache[e] = Expression(e.op, *args)
    return result


class Program:
    """Formulas over named inputs: what one kernel computes.

    real: the dtype to compute in; None: the operands decide. A Program caches its kernels by device
    and layout, so that a dict lookup finds them again. entry: by dtype index, the machine code for
    contiguous operands of that dtype; entry_number: for two inputs, the second a float; entry_bool:
    for an output of bools; entry_in_place, entry_number_in_place: for an output that is an input.
    """

    __slots__ = (
        "depth", "entry", "entry_bool", "entry_in_place", "entry_number", "entry_number_in_place",
        "inputs", "kernels", "layouts", "outputs", "real",
    )  # fmt: skip

    def __init__(self, inputs, outputs, real=None):
        self.inputs, self.outputs, self.real = tuple(inputs), tuple(outputs), real
        self.depth = max((e.depth for e in self.outputs), default=0)
        self.kernels, self.layouts = {}, {}
        self.entry, self.entry_bool, self.entry_in_place = ([None] * 16 for _ in range(3))
        self.entry_number, self.entry_number_in_place = [None] * 16, [None] * 16

    def is_same(self, other):
        """Return whether another Program has the same input names, formulas and real."""
        mine, its = ((p.inputs, p.outputs, p.real) for p in (self, other))
        return mine == its

    def __repr__(self):
        return f"Program({', '.join(self.inputs)} -> {', '.join(map(str, self.outputs))})"


IDENTITY = Program(["x"], [symbol("x")])
ADD = Program(["a", "b"], [symbol("a") + symbol("b")])
