"""Handles Python numbers that change between calls: each run reads them, like Variables.

Initially, a number among the arguments is guarded by value. When a second value arrives, as for a
learning rate or a temperature, the step is traced with a `Number` instead, which computes like the
number and records how. Each call of the program then repeats the computation in Python, and writes
what formulas read into one-element memory.

What Python decides by a number (`if t < 100`, a size, an index, `math.exp(t)`) is guarded by its
outcome: another outcome needs another program.
"""

import ctypes
import gc
import math
import operator
import weakref
from typing import Any

import numpy as np

from minigrad.arguments import RunTimeNumber
from minigrad.array.dtypes import int64
from minigrad.compiler.trace.guards import is_plain, value_key
from minigrad.devices.cpu.device import cpu
from minigrad.errors import TraceError
from minigrad.seams import seams

KINDS = (int, float, np.floating, np.integer)  # not bool
SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**",
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
    operator.eq: "==", operator.ne: "!=",
}  # fmt: skip
SHOWN = {"dtype", "ndim", "shape", "size", "itemsize", "strides"}  # same for all values of a type


def is_number(x):
    """Return whether a run can read x from memory: a float, or an int in int64's range."""
    if not isinstance(x, KINDS) or isinstance(x, (bool, RunTimeNumber)):
        return False
    return not isinstance(x, (int, np.integer)) or -(2**63) <= x < 2**63


class NumberRow:
    """How a number is computed: a function of NumberRows and constants; None for an argument.

    A compiled function creates each NumberRow once, so that its memory stays the same.
    """

    __slots__ = ("arguments", "cells", "function", "where")

    def __init__(self, function, arguments, where=""):
        self.function, self.arguments, self.where = function, arguments, where
        self.cells = {}

    def cell(self, dtype):
        """Return the 0-d Array that the program reads, and the ctypes cell that writes it."""
        pair = self.cells.get(dtype)
        if pair is None:
            # adopted memory counts as NumPy's, which may be written at any time: graphs keep copies
            array, cell = cpu.adopt(np.zeros((), dtype.memory), dtype), getattr(ctypes, dtype.c)
            pair = self.cells[dtype] = array, cell.from_address(array.address)
        return pair

    def name(self):
        """Return the arguments that it is computed from, in words."""
        return ", ".join(sorted(leaf.where for leaf in self.leaves()))

    def leaves(self):
        """Return the arguments that it is computed from."""
        if self.function is None:
            return {self}
        rows = [x for x in self.arguments if type(x) is NumberRow]
        return {leaf for row in rows for leaf in row.leaves()}


class NumberPlaces:
    """Which number arguments of a compiled function have changed between calls.

    moving: their places; fixed: places where tracing with a Number has failed.
    """

    def __init__(self):
        self.moving, self.fixed = set(), set()
        self._last, self._rows = {}, {}

    def learn(self, numbers):
        """Note the numbers of a call, {where: value}; return whether more of them move now."""
        before = len(self.moving)
        for where, value in numbers.items():
            key = value_key(value)
            if self._last.setdefault(where, key) != key:
                self.moving.add(where)
        return len(self.moving) > before

    def wanted(self):
        """Return the places of the numbers that each run has to read."""
        return self.moving - self.fixed

    def row(self, function, arguments, where=""):
        """Return the NumberRow of a computation."""
        parts = tuple(x if type(x) is NumberRow else value_key(x) for x in arguments)
        key = function, parts, where
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = NumberRow(function, arguments, where)
        return row


class RunNumbers:
    """The numbers of one trace.

    cells: {(NumberRow, dtype)} that the program reads; guards: {NumberRow: its traced value, to
    compare}; kinds: {NumberRow: its traced type}.
    """

    def __init__(self, places):
        self.places = places
        self.cells, self.guards, self.kinds = {}, {}, {}
        self._alive = []

    def argument(self, value, where):
        """Return the Number that replaces an argument."""
        return self._made(self.places.row(None, (type(value),), where), value)

    def computed(self, function, arguments):
        """Apply a function to Numbers; return a Number, or a plain value with a guard."""
        value = function(*(x._value if type(x) is Number else x for x in arguments))
        if not all(type(x) is Number or is_plain(x) for x in arguments):
            for x in arguments:  # an ndarray is among them, say
                if type(x) is Number:
                    self.fixed(x)
            return value
        return self._made(self._row(function, arguments), value)

    def _row(self, function, arguments):
        rows = tuple(x._row if type(x) is Number else x for x in arguments)
        return self.places.row(function, rows)

    def _made(self, row, value):
        if isinstance(value, (bool, np.bool_)) or not is_number(value):
            if is_plain(value):
                self.guards[row] = value
                return value
            raise TypeError(f"a number that changes became {type(value).__name__}")
        self.kinds[row] = type(value)
        number = Number(self, row, value)
        self._alive.append(weakref.ref(number))
        return number

    def decided(self, function, arguments):
        """Return function(*arguments) as a plain value with a guard; arguments may be Numbers."""
        row = self._row(function, arguments)
        self.guards[row] = value = function(
            *(x._value if type(x) is Number else x for x in arguments)
        )
        return value

    def fixed(self, number):
        """Return the value of a Number, and guard it."""
        self.guards[number._row] = number._value
        return number._value

    def array(self, number, real):
        """Return the 0-d Array that a program reads for a Number. real: the dtype for floats."""
        dtype = real if isinstance(number._value, (float, np.floating)) else int64
        self.cells[number._row, dtype] = None
        return number._row.cell(dtype)[0]

    def deciding(self):
        """Return the arguments whose values have decided something."""
        return {leaf for row in self.guards for leaf in row.leaves()}

    def let_go(self):
        """Raise if a Number outlives its trace: later calls would not renew it."""
        alive = [r for r in self._alive if r() is not None]
        if alive:
            gc.collect()
            for reference in alive:
                kept = reference()
                if kept is not None:
                    raise TraceError(
                        f"a number computed from {kept._row.name()} is kept by the compiled step, "
                        "where later calls would not renew it",
                        fix="return it, and keep what the call returns",
                    )

    def key(self):
        """Return the guards as a part of the trace's key, in addition to the Description."""
        return frozenset((row, value_key(value)) for row, value in self.guards.items())

    # -- the text of a wrapper -----------------------------------------------------------------

    def lines(self, cells, names, outside, constant):
        """Return (lines that compute, with guards that `return MISS`; lines that write memory).

        cells: what the program reads; names: {where: the local name of an argument}; outside:
        {where: OutsideValue}; constant(x): a name for an object.
        """
        self._text, self._names, self._constant = [], dict(names), constant
        self._outside = outside
        for row, value in self.guards.items():
            name = self._name(row)
            key = value_key(value)
            if type(value) in (int, str, bool):
                kind = constant(type(value))
                test = f"type({name}) is not {kind} or {name} != {constant(value)}"
            else:
                test = f"{constant(value_key)}({name}) != {constant(key)}"
            self._text.append(f"if {test}: return MISS")
        writes = []
        for row, dtype in cells:
            name = self._name(row)
            if dtype is int64:
                self._text.append(f"if not -{2**63} <= {name} < {2**63}: return MISS")
                name = f"int({name})"
            writes.append(f"{constant(row.cell(dtype)[1])}.value = {name}")
        if not self._text:
            return [], writes
        checks = [f"    {line}" for line in self._text]
        errors = constant((ArithmeticError, TypeError, ValueError))
        return ["try:", *checks, f"except {errors}: return MISS"], writes

    def _name(self, row):
        name = self._names.get(row.where if row.function is None else row)
        if name is None:
            name = self._names[row] = f"n{len(self._names)}"
            of = () if row.function is None else row.arguments
            parts = [self._name(x) if type(x) is NumberRow else self._constant(x) for x in of]
            sign = SIGNS.get(row.function)
            if row.function is None:
                self._names[row.where] = name
                text = self._outside[row.where].text(self._constant)
            elif sign:
                text = f"{parts[0]} {sign} {parts[1]}"
            else:
                text = f"{self._constant(row.function)}({', '.join(parts)})"
            self._text.append(f"{name} = {text}")
            kind = self.kinds.get(row)
            if kind is not None:
                self._text.append(f"if type({name}) is not {self._constant(kind)}: return MISS")
        return name


def _computing(function, is_turned=False):
    def method(self, *others):
        if not self._is_live():
            arguments = (self._value, *others)
            return function(*(reversed(arguments) if is_turned else arguments))
        for x in others:
            if x is not None and not isinstance(x, (int, float, complex, np.generic)):
                return NotImplemented
        arguments = (*reversed(others), self) if is_turned else (self, *others)
        return self._numbers.computed(function, arguments)

    return method


def _deciding(function):
    """Return a method that guards its result instead of the number itself."""

    def method(self, *others):
        if not self._is_live() or not all(map(is_plain, others)):
            return function(self._fixed(), *others)
        return self._numbers.decided(function, (self, *others))

    return method


def _item(x):
    return x.item()


class Number(RunTimeNumber):
    """Stands for a Python number while a step is traced.

    Its `__class__` is the number's class, so that isinstance accepts it. Arithmetic and NumPy
    ufuncs return Numbers. Any other code that reads the value gets it, which guards the value.
    """

    __slots__ = ("__weakref__", "_numbers", "_row", "_value")

    def __init__(self, numbers, row, value):
        self._numbers, self._row, self._value = numbers, row, value

    __class__ = property(lambda self: type(self._value))  # type: ignore[assignment]

    def _is_live(self):
        """Return whether its trace is running."""
        return seams.effects.is_tracing and seams.effects.numbers is self._numbers

    def _fixed(self):
        return self._numbers.fixed(self) if self._is_live() else self._value

    def item(self):
        return self._numbers.computed(_item, (self,)) if self._is_live() else self._value.item()

    def __getattr__(self, name):
        attribute = getattr(self._value, name)  # an AttributeError does not depend on the value
        return attribute if name in SHOWN else getattr(self._fixed(), name)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._fixed(), dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **more):
        if method == "__call__" and not more and self._is_live():
            return self._numbers.computed(ufunc, inputs)
        plain = [x._fixed() if type(x) is Number else x for x in inputs]
        return getattr(ufunc, method)(*plain, **more)

    def __reduce__(self):
        return self._fixed().__reduce__()


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _function = getattr(operator, _name)
    setattr(Number, f"__{_name}__", _computing(_function))
    setattr(Number, f"__r{_name}__", _computing(_function, is_turned=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs"):
    setattr(Number, f"__{_name}__", _computing(getattr(operator, _name)))
for _name, _function in {
    "round": round, "trunc": math.trunc, "floor": math.floor, "ceil": math.ceil,
}.items():  # fmt: skip
    setattr(Number, f"__{_name}__", _computing(_function))
for _name, _function in {
    "bool": bool, "int": int, "float": float, "complex": complex, "index": operator.index,
    "hash": hash, "str": str, "repr": repr, "format": format,
}.items():  # fmt: skip
    setattr(Number, f"__{_name}__", _deciding(_function))


def without_numbers(x) -> Any:
    """Replace Numbers in a value by plain numbers, and guard them."""
    if type(x) is Number:
        return x._fixed()
    if type(x) is tuple and any(isinstance(y, (Number, tuple)) for y in x):
        return tuple(map(without_numbers, x))
    return x
