"""Finds numbers and bools that a compiled function reads from closures, globals, attributes.

The search covers the code of the function, and of the user's functions and methods that it names.
It follows names, attributes and constant keys (`self.config.beta`, `config["rates"][0]`) that lead
to numbers. Each call compares these like numbers among the arguments; see `numbers`. A number that
the code itself writes (`self.calls += 1`) is left out: pure Python effects happen only while
tracing.

Everything else is frozen, including what loops and computed keys find in lists, dicts and sets.
"""

import dis
import functools
import sysconfig
from types import CellType, CodeType, FunctionType, MethodType, ModuleType

from minigrad.compiler.trace.guards import SEEN
from minigrad.compiler.trace.numbers import Number
from minigrad.errors import is_ours
from minigrad.nn.module import Module
from minigrad.tape.attribute_writes import writes
from minigrad.tape.variable import Variable

MOST_FUNCTIONS = 50
ELSEWHERE = tuple(sysconfig.get_paths()[k] for k in ("stdlib", "purelib", "platlib"))


class OutsideValue:
    """The place of a number: a cell, or an entry of a list or dict (also of a `__dict__`).

    where: the place in words; is_moving: whether it is known to change.
    """

    def __init__(self, holder, key, where, is_moving=False):
        self.holder, self.key, self.where, self.is_moving = holder, key, where, is_moving

    def get(self):
        """Return the current value, or None."""
        holder = self.holder
        try:
            return holder.cell_contents if type(holder) is CellType else holder[self.key]
        except (ValueError, LookupError):  # nothing is there yet, or no longer
            return None

    def put(self, value):
        """Write the value without the engine noticing an attribute write."""
        if type(self.holder) is CellType:
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value

    def text(self, constant):
        """Return an expression that reads the value; constant(x): a name for an object."""
        name = constant(self.holder)
        if type(self.holder) is CellType:
            return f"{name}.cell_contents"
        if type(self.holder) is list:
            return f"({name}[{self.key}] if {has_entry(self.key)} <= len({name}) else None)"
        return f"{name}.get({self.key!r})"


def has_entry(k):
    """Return the length that a list needs to have an entry k."""
    return k + 1 if k >= 0 else -k


class replaced:
    """Context manager that replaces outside numbers. numbers: [(OutsideValue, Number)]."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __enter__(self):
        self.before = [place.get() for place, _ in self.numbers]
        for place, number in self.numbers:
            place.put(number)

    def __exit__(self, *error):
        for (place, _), before in zip(self.numbers, self.before, strict=True):
            if type(place.get()) is Number:
                place.put(before)
        self.numbers = []


@functools.lru_cache(256)
def _instructions(code):
    """Return [(operation, its name or constant)], the same for all versions of Python."""
    instructions = []
    for i in dis.get_instructions(code):
        op, name = i.opname, i.argval
        if "LOAD_FAST" in op or op in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            op, name = "LOAD", name[-1] if isinstance(name, tuple) else name  # two at once
        elif op in ("LOAD_ATTR", "LOAD_METHOD"):
            op = "LOAD_ATTR"
        elif op == "LOAD_NAME":
            op = "LOAD_GLOBAL"
        elif op == "LOAD_SMALL_INT":
            op = "LOAD_CONST"
        elif op == "BINARY_OP" and i.argrepr == "[]":  # Python 3.14 and later
            op = "BINARY_SUBSCR"
        instructions.append((op, name))
    return instructions


class Walk:
    """Searches the code of a function; found: {(id of the holder, key): OutsideValue}."""

    def __init__(self):
        self.found, self.stored, self.seen = {}, set(), set()

    def outside(self):
        """Return the values found, without those that the code itself writes."""
        return [p for p in self.found.values() if p.key not in self.stored]

    def function(self, f, bound=None, arguments=()):
        """Search a function or method. bound: its first argument."""
        while isinstance(f, MethodType):
            f, bound = f.__func__, f.__self__
        if not isinstance(f, FunctionType):
            if isinstance(f, Module):
                self.function(type(f).forward, f, arguments)
            elif isinstance(f, functools.partial):
                self.function(f.func)
            return
        if (f, id(bound)) in self.seen or len(self.seen) >= MOST_FUNCTIONS:
            return
        self.seen.add((f, id(bound)))
        code = f.__code__
        cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
        if code.co_filename.startswith(ELSEWHERE) or is_ours(code.co_filename):
            for cell in cells.values():  # such as a decorator's: the decorated function
                content = OutsideValue(cell, "", "").get()
                if isinstance(content, (FunctionType, MethodType)):
                    self.function(content)
            return
        given = arguments if bound is None else (bound, *arguments)
        names = code.co_varnames[: code.co_argcount]
        self._code(code, f.__globals__, cells, dict(zip(names, given, strict=False)))

    def _code(self, code, outer, cells, given):
        instructions = _instructions(code)
        for k, (op, name) in enumerate(instructions):
            if op in ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF"):
                self.stored.add(name)
            elif op in ("STORE_SUBSCR", "COPY") and instructions[k - 1][0] == "LOAD_CONST":
                self.stored.add(instructions[k - 1][1])  # x["n"] = ..., or x["n"] += ...
            elif op == "LOAD":
                if name in given:
                    if type(given[name]) not in (
                        dict,
                        list,
                    ):  # numbers among the arguments are known
                        self._chain(given[name], name, instructions, k + 1)
                elif name in cells:
                    self._root(
                        OutsideValue(cells[name], name, f"the outer '{name}'"), instructions, k
                    )
            elif op == "LOAD_GLOBAL" and name in outer:
                self._root(OutsideValue(outer, name, f"the global '{name}'"), instructions, k)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._code(inner, outer, cells, given)

    def _root(self, place, instructions, k):
        value = place.get()
        if type(value) in SEEN:
            self.found[id(place.holder), place.key] = place
        else:
            self._chain(value, place.key, instructions, k + 1)

    def _chain(self, x, words, instructions, k):
        """Follow attributes and constant keys, starting at an object. words: the path to it."""
        while not isinstance(x, Variable):
            op, key = instructions[k]
            if op == "LOAD_ATTR":
                holder, step = getattr(x, "__dict__", None), 1
                if type(holder) is not dict or key not in holder:
                    method = None if isinstance(x, type) else getattr(type(x), key, None)
                    if isinstance(method, FunctionType):
                        self.function(method, x)
                    return
                called = x.__name__ if isinstance(x, ModuleType) else type(x).__name__
                words = f"{called}.{key}"
            elif op == "LOAD_CONST" and instructions[k + 1][0] == "BINARY_SUBSCR":
                holder, step, words = x, 2, f"{words}[{key!r}]"
                if type(x) is list:
                    if type(key) is not int or has_entry(key) > len(x):
                        return
                elif type(x) is not dict or key not in x:
                    return
            else:
                break
            value, k = holder[key], k + step
            if type(value) in SEEN:
                self.found[id(holder), key] = OutsideValue(holder, key, words)
                return
            x = value
        if isinstance(x, (FunctionType, MethodType, Module)):
            self.function(x)


class Surroundings:
    """Finds the numbers and bools outside of one compiled function."""

    def __init__(self, function):
        self.function, self._names = function, {}

    def places(self, args):
        """Return the OutsideValues of a call with positional `args`, with unique names."""
        walk = Walk()
        if isinstance(self.function, FunctionType):
            walk.function(self.function, None, args)
        else:
            walk.function(self.function)
        places = {(id(p.holder), p.key): p for p in walk.outside()}
        for module, name in writes.numbers():
            own = vars(module)
            where = f"{type(module).__name__}.{name}"
            places[id(own), name] = OutsideValue(own, name, where, is_moving=True)
        for key, place in places.items():
            self._name(key, place)
        return list(places.values())

    def _name(self, key, place):
        for n in range(1, 1000):
            name = place.where if n == 1 else f"{place.where} ({n})"
            owner = self._names.setdefault(name, key)
            if owner == key:
                place.where = name
                return
