"""Guards a trace: describes and checks the arguments of a call.

A `Description` walks the arguments once. It makes a key to compare, checks as lines of Python for
the specialised wrapper (see `wrapper`), and facts in words for the warning about retracing.

- Tuples, lists and dicts: by type, length and keys.
- Variables: by shape, strides, dtype, device, requires_grad, and shared memory.
- Numbers, strings, None, enums, dtypes, slices, ranges and sets of such values: by value.
- Everything else (Modules, Parameters, optimizers, functions): by identity.
- NumPy arrays and iterators are refused: a trace would freeze the first, use up the second.
"""

import weakref
from collections.abc import Iterator
from enum import Enum
from types import MethodType
from typing import Any

import numpy as np

from minigrad.arguments import Count, short
from minigrad.array.array import Array
from minigrad.array.dtypes import DTYPES, DType
from minigrad.compiler.trace.donation import Donated, donated_error
from minigrad.errors import TraceError
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.variable import Variable

SINGLE = (bool, type(None), type(Ellipsis), DType, Enum)  # equal values are one object
EQUAL = (int, Count, str, bytes, range, np.dtype)
OTHER = (float, complex, slice, frozenset, set)
SIGNED = tuple(d.memory.type for d in DTYPES if d.memory.kind in "fi")
NUMBERS = (int, float, *SIGNED)  # a run may read them
SEEN = (*NUMBERS, bool)  # outside values that are guarded
DEEPEST = 50  # levels of nested arguments


class Identity:
    """An object that is compared by identity and held weakly. where: which argument it is."""

    __slots__ = ("number", "reference", "where")

    def __init__(self, x, where):
        self.reference, self.number, self.where = weakref.ref(x), id(x), where

    def __eq__(self, other):
        mine = self.reference()
        return type(other) is Identity and mine is not None and mine is other.reference()

    def __hash__(self):
        return self.number


def value_key(x):
    """Return a key that is equal for equal plain values: 0.0 != -0.0, 1 != 1.0, NaN == NaN."""
    if isinstance(x, float):
        return type(x), x.hex()
    if isinstance(x, complex):
        return type(x), x.real.hex(), x.imag.hex()
    if isinstance(x, np.generic):
        return type(x), x.tobytes()
    if isinstance(x, slice):
        return slice, value_key(x.start), value_key(x.stop), value_key(x.step)
    if isinstance(x, (set, frozenset)):
        return type(x), frozenset(map(value_key, x))
    return type(x), x


def is_plain(x):
    """Return whether x is compared by value."""
    if isinstance(x, (set, frozenset)):
        return all(map(is_plain, x))
    return type(x) in (*SINGLE, *EQUAL, *OTHER) or isinstance(x, (np.generic, np.dtype, Enum))


class Member:
    """A Variable among the arguments. where: in words; name: the wrapper's local name."""

    def __init__(self, variable, where, number, name):
        self.variable, self.where, self.number, self.name = variable, where, number, name
        self.array = variable.array
        self.is_fixed = type(variable) not in (Variable, InferenceVariable)

    def forget(self):
        self.variable = self.array = None


class Description:
    """The arguments of one call.

    key: hashable. members: a Member per Variable, in order. lines: checks of `args` and `kwargs`
    that leave by `return MISS` and use the names in `scope`; they call the Variable of each member
    v0, v1, ... and its Array x0, x1, ... facts: {(where, what): value}. identities: an Identity per
    object. numbers: {where: value}; moving: {where: local name} of numbers that are not compared;
    outside: {where: OutsideValue} of such numbers outside the arguments; see `numbers`.
    """

    def __init__(self, args, kwargs, names=(), is_open=False, moving=(), outside=()):
        self.members, self.lines = [], []
        self.numbers, self.moving, self._moving = {}, {}, moving
        self.scope: dict[str, Any] = {"Array": Array}
        self.facts, self.identities, self.parts = {}, [], []
        self._count = 0
        self.wheres = [f"argument {_named(k, names)}" for k in range(len(args))]
        self._tuple(args, "args", self.wheres, 0)
        self._keywords(kwargs, is_open)
        self.outside = {}
        for place in outside:
            self._outside(place)
        self._sharing()
        self.key = tuple(self.parts)

    # -- the walk ------------------------------------------------------------------------------

    def _new(self, prefix="a"):
        self._count += 1
        return f"{prefix}{self._count}"

    def _constant(self, value):
        name = self._new("C")
        self.scope[name] = value
        return name

    def _check(self, condition):
        self.lines.append(f"if {condition}: return MISS")

    def _keywords(self, kwargs, is_open):
        order = tuple(kwargs) if is_open else tuple(sorted(kwargs))
        self.order = order
        self.parts.append(order)
        if not order:
            self._check("kwargs")
            return
        if is_open:  # the function can see the order
            self._check(f"tuple(kwargs) != {self._constant(order)}")
        else:
            self._check(f"len(kwargs) != {len(order)}")
        missing = self._constant(object())
        for key in order:
            name = self._new()
            self.lines.append(f"{name} = kwargs.get({key!r}, {missing})")
            self._walk(kwargs[key], name, f"argument {key!r}", 0)

    def _tuple(self, values, name, wheres, depth):
        self.parts.append(len(values))
        self._check(f"len({name}) != {len(values)}")
        if values:
            parts = [self._new() for _ in values]
            self.lines.append(f"{', '.join(parts)}, = {name}")
            for value, part, where in zip(values, parts, wheres, strict=True):
                self._walk(value, part, where, depth)

    def _walk(self, x: Any, name, where, depth):
        kind = type(x)
        if depth > DEEPEST:
            raise TraceError(f"{where}: wanted at most {DEEPEST} nested lists, tuples and dicts")
        if isinstance(x, Variable):
            self._variable(x, name, where)
        elif isinstance(x, (tuple, list)):
            self.parts.append(kind)
            self._check(f"type({name}) is not {self._constant(kind)}")
            self.facts[where, "length"] = len(x)
            wheres = [f"{where}[{k}]" for k in range(len(x))]
            self._tuple(x, name, wheres, depth + 1)
        elif isinstance(x, dict):
            self._dict(x, name, where, depth)
        elif is_plain(x):
            self._plain(x, name, where)
        elif isinstance(x, MethodType):
            self.parts.append(kind)
            self._check(f"type({name}) is not {self._constant(kind)}")
            self._walk(x.__self__, f"{name}.__self__", where, depth + 1)
            self._walk(x.__func__, f"{name}.__func__", where, depth + 1)
        else:
            self._object(x, name, where)

    def _outside(self, place):
        """Add a number that the function reads from outside; see `surroundings`."""
        value, where = place.get(), place.where
        if type(value) not in SEEN:
            return
        if type(value) in NUMBERS and (place.is_moving or where in self._moving):
            self.outside[where] = place
            self.numbers[where] = value
            return
        name, known = self._new(), self._constant(value)
        self.lines.append(f"{name} = {place.text(self._constant)}")
        count = len(self.lines)
        self.parts.append(where)
        self._plain(value, name, where)
        self.lines[count:] = [
            f"if {name} is not {known}:",
            *(f"    {x}" for x in self.lines[count:]),
        ]

    def _dict(self, x, name, where, depth):
        keys = tuple(x)
        if not all(map(is_plain, keys)):
            raise TraceError(f"{where}: wanted numbers and strings as keys", short(keys))
        self.parts += (type(x), tuple(map(value_key, keys)))
        self._check(
            f"type({name}) is not {self._constant(type(x))} "
            f"or tuple({name}) != {self._constant(keys)}"
        )
        for key in keys:
            part = self._new()
            self.lines.append(f"{part} = {name}[{self._constant(key)}]")
            self._walk(x[key], part, f"{where}[{key!r}]", depth + 1)

    def _plain(self, x, name, where):
        if type(x) in NUMBERS:
            self.numbers[where] = x
            if where in self._moving:
                self.parts.append(type(x))
                self.moving[where] = name
                self._check(f"type({name}) is not {self._constant(type(x))}")
                return
        key = value_key(x)
        self.parts.append(key)
        self.facts[where, "value"] = x
        if isinstance(x, SINGLE):
            self._check(f"{name} is not {self._constant(x)}")
        elif isinstance(x, EQUAL):
            kind = self._constant(type(x))
            self._check(f"type({name}) is not {kind} or {name} != {self._constant(x)}")
        elif type(x) is float and x == x and x:
            self._check(f"type({name}) is not float or {name} != {self._constant(x)}")
        else:
            self.scope["value_key"] = value_key
            kind = self._constant(type(x))
            wanted = self._constant(key)
            self._check(f"type({name}) is not {kind} or value_key({name}) != {wanted}")

    def _object(self, x, name, where):
        if isinstance(x, np.ndarray):
            raise TraceError(
                f"{where} is a NumPy array, whose numbers would be frozen into the program",
                f"{x.dtype}{list(x.shape)}",
                "pass mg.variable(x), which copies, or mg.from_numpy(x), which shares its memory",
            )
        if isinstance(x, Iterator):
            raise TraceError(
                f"{where} is used up when it is iterated over: a program cannot ask it again",
                type(x).__name__,
                "iterate outside and pass each item, or pass a list",
            )
        try:
            identity = Identity(x, where)
        except TypeError:
            raise TraceError(
                f"{where}: wanted Variables, numbers, strings, None, tuples, lists, dicts, or "
                "objects that can be known again",
                type(x).__name__,
                "pass the Variables and numbers that it holds",
            ) from None
        self.parts.append(identity)
        self.identities.append(identity)
        self.facts[where, "object"] = identity.number
        self._check(f"{name} is not {self._constant(identity.reference)}()")

    # -- Variables -----------------------------------------------------------------------------

    def _variable(self, x, name, where):
        k = len(self.members)
        if type(x.array.storage) is Donated:
            raise donated_error(x.array.storage)
        self.members.append(Member(x, where, k, name))
        if self.members[k].is_fixed:  # a Parameter, or another subclass
            self._object(x, name, where)
            self.lines.append(f"v{k} = {name}; x{k} = v{k}.array")
            self.parts.append(x._requires_grad)
            self._check(f"v{k}._requires_grad is not {bool(x._requires_grad)}")
            return
        a = x.array
        self.parts.append(
            (type(x), a.shape, a.strides, a.dtype, a.device, x._requires_grad, x.node is None)
        )
        self.facts[where, "shape"] = a.shape
        self.facts[where, "strides"] = a.strides
        self.facts[where, "dtype"] = a.dtype
        self.facts[where, "device"] = a.device
        self.facts[where, "requires_grad"] = x._requires_grad
        kind = self._constant(type(x))
        self._check(f"type({name}) is not {kind}")
        self.lines.append(f"v{k} = {name}; x{k} = v{k}.array")
        shape, strides, dtype = map(self._constant, (a.shape, a.strides, a.dtype))
        self._check(
            f"x{k}.shape != {shape} or x{k}.strides != {strides} or x{k}.dtype is not {dtype} "
            f"or v{k}._requires_grad is not {bool(x._requires_grad)} "
            f"or v{k}.node is {'not ' if x.node is None else ''}None"
        )

    def _sharing(self):
        """Group the members by Storage; check relative offsets within each group."""
        by_storage = {}
        for member in self.members:
            by_storage.setdefault(id(member.array.storage), []).append(member)
        self.groups = list(by_storage.values())
        for group in self.groups:
            first = group[0]
            k = first.number
            self.lines.append(f"s{k} = x{k} if type(x{k}) is Array else x{k}.storage")
            if not first.is_fixed:
                pool = first.array.storage.buffer.pool
                self._check(f"s{k}.buffer.pool is not {self._constant(pool)}")
            for other in group[1:]:
                n = other.number
                apart = other.array.offset - first.array.offset
                is_same = other.variable is first.variable
                self.parts.append((k, n, apart, is_same))
                self._check(
                    f"x{n}.storage is not s{k} or x{n}.offset - x{k}.offset != {apart} "
                    f"or (v{n} is v{k}) is not {is_same}"
                )
        names = [f"s{group[0].number}" for group in self.groups]
        self.facts["the arguments", "sharing of memory"] = tuple(
            tuple(m.where for m in g) for g in self.groups if len(g) > 1
        )
        if len(names) == 2:
            self._check(f"{names[0]} is {names[1]}")
        elif len(names) > 2:
            self._check(f"len({{{', '.join(names)}}}) != {len(names)}")


def _named(k, names):
    return f"{k} ('{names[k]}')" if k < len(names) else f"{k}"
