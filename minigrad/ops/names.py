"""Public functions that remember which routes answer a call.

A function such as `mg.softmax` checks its arguments, and calls operations with others that it makes
of them: the same ones each time for the same layouts and arguments. The second such call notes the
operations and on what they ran, and further ones run their routes (`ops.routes`) after one look-up.
Functions that make new Variables, such as `mg.zeros`, call none: they have routes of their own.
"""

import functools
import inspect
import itertools
import math
from textwrap import indent
from typing import Any, NamedTuple

from minigrad.array.array import View
from minigrad.devices.backend import chosen
from minigrad.devices.cpu.routes import written
from minigrad.errors import MinigradError
from minigrad.ops.fast import IS_USABLE, MISSING, SCOPE, USABLE, call_of_route, maker
from minigrad.ops.routes import LARGEST, are_here, are_plain, call_of, note_first, noted
from minigrad.tape.modes import SLOW, state
from minigrad.tape.variable import Variable

SCOPE |= {"active": chosen, "inf": math.inf}
LAYOUT = "(x.shape, x.strides, x.dtype, x.buffer.pool, x.buffer.is_foreign)"
IS_STALE = (
    "type(x) is View and x.made_at is not None and x.made_at != x.version and {}.node is not None"
)
ONE = f"""\
if {IS_USABLE.format("a0")}:
    x = a0.array
    if not ({IS_STALE.format("a0")}):
        key = ({LAYOUT}, others)
"""
SEVERAL = f"""\
if type(a0) is list or type(a0) is tuple:
    layouts = []
    for a in a0:
        if not {IS_USABLE.format("a")}:
            break
        x = a.array
        if {IS_STALE.format("a")}:
            break
        layouts.append({LAYOUT})
    else:
        key = (*layouts, others)
"""
NONE = "key = active.default, others\n"
FORMS = {"x": ONE, "xs": SEVERAL, "": NONE}
# what a key has of an argument: k, which a Variable leaves out, as does a free number, and its type
# or layout; nothing of those after the last one that is given
ARGUMENT = f"""\
k{{0}} = t{{0}}
if t{{0}} is MISSING:
    u{{0}} = None
else:
    u{{0}} = type(t{{0}})
    if u{{0}} is tuple:
        u{{0}} = (*map(type, t{{0}}),)
        if tuple in u{{0}}:
            u{{0}} = repr(t{{0}})
    elif u{{0}} is float:
        if {{1}} < t{{0}} < {{2}}:
            k{{0}} = None
        else:
            u{{0}} = t{{0}} or repr(t{{0}})
    elif USABLE[u{{0}}] <= path:
        x = t{{0}}.array
        if {IS_STALE.format("t{0}")}:
            path = {SLOW}
        k{{0}}, u{{0}} = None, {LAYOUT}
others += k{{0}}, u{{0}}
"""
REST = "{0} = more[0] if len(more) == 1 and type(more[0]) is tuple else more\n"
TEXT = """\
path, key, call = state.path, None, False
if path != {slow} and not named:
{find}
    if key is not None:
        try:
            call = calls.get(key)
        except TypeError:
            key = None
    if call:
        return call(path, {values})
{give}
if call is None and key is not None:
    return learn(key, ({values}), {args}, named)
return function(*{args}, **named)
"""


def remembered(function, form="x", free=None):
    """Wraps a function so that it finds the routes of earlier calls.

    Its result, or each of a tuple, must depend on layouts and other arguments alone, and it must
    write nothing.

    Args:
        form: what its first argument is: "x", a Variable; "xs", a list of them; "", no Variable.
        free: {name: (low, high)} of arguments that the function passes on to operations or kernels,
            as operands, and looks at in no other way, if they are floats between these. One route
            serves all of them.
    """
    parameters = list(inspect.signature(function).parameters.values())[len(form) > 0 :]
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    values = [f"t{k}" for k in range(len(parameters))]
    slots = [*["a0"][: len(form)], *values]
    find = [f"{t} = {n}\n" for t, n in zip(values, names, strict=False)]
    if len(names) < len(parameters):
        find.append(REST.format(values[-1]))
    else:
        find.append("if not more:\n    pass\n")
        for n in range(1, len(placed) + 1):
            are_free = "".join([f" and {name} is MISSING" for name in placed[:n]])
            find.append(f"elif len(more) == {n}{are_free}:\n    {', '.join(values[:n])}, = more\n")
        find.append(f"else:\n    path = {SLOW}\n")
    limits = [(free or {}).get(p.name, NONE_FREE) for p in parameters]
    find.append("others = ()\n")
    for k, pair in enumerate(limits):
        text = f"if not {' is '.join(values[k:])} is MISSING:\n"
        find.append(indent(text + indent(ARGUMENT.format(k, *pair), "    "), "    " * k))
    find.append(f"if path != {SLOW}:\n{indent(FORMS[form], '    ')}")
    give = "".join([f"if {n} is not MISSING:\n    named['{n}'] = {n}\n" for n in names])
    args = "([a0] if a0 is not MISSING else []) + [*more]" if form else "more"
    text = TEXT.format(
        slow=SLOW, find=indent("".join(find), "    "), give=give,
        values="".join([f"{t}, " for t in slots]), args=f"({args})",
    )  # fmt: skip
    head = f"{'a0=MISSING, /, ' if form else ''}*more, {''.join([f'{n}=MISSING, ' for n in names])}"
    known[function.__name__] = calls = {}
    fast = maker(("calls", "function", "learn"), f"{head}**named", text, "fast")(
        calls, function, _Learner(function, calls, slots, names, limits).learn
    )
    return functools.wraps(function)(fast)


NONE_FREE = 0.0, 0.0  # no number lies between
known: dict[str, dict] = {}  # {name of a function: its calls}


def _are_plain(values):
    """Returns whether equal values of equal types mean the same, and do not change."""
    return are_plain([v for v in values if v is not MISSING and USABLE[type(v)] > state.path])


def _results(y):
    """Returns what a function returned as a tuple."""
    return y if type(y) is tuple else (y,)


class _Learner(NamedTuple):
    """Finds out what calls of a function do.

    Attributes:
        calls: {key: a function that repeats the call; False if none can; None after one call}.
        slots: the arguments' names in generated text: "a0" for a first argument of Variables, "t0",
            "t1" and so on for the others.
        names: the function's own names of the others, without a last one that takes several.
        limits: (low, high) for each of the others; a float between them is free.
    """

    function: Any
    calls: dict
    slots: list
    names: list
    limits: list

    def learn(self, key, values, args, named):
        """Returns the result of a call without a route. The second call with a key makes one."""
        others = values[self.first :]
        is_elsewhere = not self.first and chosen.default is not None
        if _are_plain(others) and not is_elsewhere and not note_first(self.calls, key):
            self.calls[key] = False
            call = self.calls[key] = self.explored(values) or self.by_number(values) or False
            if call:
                return call(state.path, *values)
        return self.function(*args, **named)

    @property
    def first(self):
        """How many of the values are the first argument: 1, or 0 if there is none."""
        return int(self.slots[:1] == ["a0"])

    def free(self, values):
        """Returns {place: value} of the free numbers."""
        pairs = enumerate(zip(values[self.first :], self.limits, strict=True), self.first)
        return {k: v for k, (v, (low, high)) in pairs if type(v) is float and low < v < high}

    def arguments(self, values):
        """Returns (positional arguments of the function, named ones)."""
        named = zip(self.names, values[self.first :], strict=False)
        more = itertools.chain(*values[self.first + len(self.names) :])
        return (*values[: self.first], *more), {n: v for n, v in named if v is not MISSING}

    def by_number(self, values):
        """Returns a function that finds routes by free numbers, too: it looks at them after all.

        Returns None if none of the values is one.
        """
        places = [*self.free(values)]
        learner = self._replace(calls={}, limits=[NONE_FREE] * len(self.limits))

        def call(path, *values):
            key = tuple([values[k] or repr(values[k]) for k in places])
            route = learner.calls.get(key)
            if route:
                return route(path, *values)
            args, named = self.arguments(values)
            if route is None:
                return learner.learn(key, values, args, named)
            return self.function(*args, **named)

        return call if places else None

    def explored(self, values):
        """Returns a function that repeats the call for any values of its key, or None.

        Runs the call once on stand-ins for its Variables and free numbers, which show what
        operations run on.
        """
        texts, variables = [], []
        numbers = {k: v * 1.0 for k, v in self.free(values).items()}  # other objects
        for text, v in zip(self.slots, values, strict=True):
            if isinstance(v, Variable):
                texts.append(text)
                variables.append(v)
            elif text == "a0":
                texts += [f"a0[{k}]" for k in range(len(v))]
                variables += v
        stand_ins, asked, made = [], [], []

        def run(*operands):
            stand_ins[:], asked[:] = map(Variable, operands[: len(variables)]), ()
            left = iter(stand_ins)
            given: list[Any] = [
                next(left) if isinstance(v, Variable) else numbers.get(k, v)
                for k, v in enumerate(values)
            ]
            if self.first and given[0] is values[0]:
                given[0] = [*left]
            args, named = self.arguments(given)
            state.asked = asked
            try:
                y = self.function(*args, **named)
            finally:
                state.asked = None
            made[:] = [y]
            return [v.array for v in _results(y)]

        arrays = [x.array for x in variables]
        if not are_here(arrays):
            return None
        try:
            _, recorder = noted(run, [*arrays, *numbers.values()], None)
        except MinigradError:
            return None  # the call on the user's operands explains itself
        y, own = made[0], {*map(id, stand_ins)}
        if recorder is None or any(v.size > LARGEST or id(v) in own for v in _results(y)):
            return None
        if asked:
            texts = dict(zip(map(id, stand_ins), texts, strict=True))
            texts |= {id(v): self.slots[k] for k, v in numbers.items()}
            used = {id(a) for _, args, *_ in asked for a in args}
            fixed = {id(a) for _, _, attributes, _ in asked for a in attributes}
            if not used.issuperset(map(id, numbers.values())) or not fixed.isdisjoint(
                map(id, numbers.values())
            ):
                return None  # it did something else with a free number
            return self.of_operations(texts, asked, y, len(recorder.checks))
        if type(y) is tuple or y._requires_grad or y.name is not None:
            return None
        if texts != self.slots[: len(texts)] or recorder.used_numbers() != len(numbers):
            return None  # as above
        lines = written(recorder, y.array)
        kinds, is_view = "x" * len(arrays) + "n" * len(numbers), type(y.array) is View
        operands = {s: f"a{k}" for k, s in enumerate([*texts, *[self.slots[k] for k in numbers]])}
        given, known = [operands.get(s, s) for s in self.slots], (None, (), None)
        return lines and call_of_route(lines, kinds, is_view, False, False, known, given)

    def of_operations(self, texts, asked, y, checks):
        """Returns a function that repeats operations by their routes, or None if one has no route.

        Args:
            texts: {id of a stand-in: its name in the generated text}.
            asked: the operations that ran, as in `state.asked`.
            y: the result, or a tuple of them.
            checks: how many checks of elements ran. One outside of operations would not run again.
        """
        last = {id(a): k for k, (_, args, *_) in enumerate(asked) for a in args}
        last |= dict.fromkeys(map(id, _results(y)))
        lines, constants = [], []
        calls: list[Any] = [call_of(*call[:3]) for call in asked]
        if None in calls or sum([call.checks for call in calls]) != checks:
            return None
        for k, (call, (_, args, _, result)) in enumerate(zip(calls, asked, strict=True)):
            operands = []
            for a in args:
                if not isinstance(a, Variable) and id(a) not in texts:
                    operands.append(f"c{len(constants)}")
                    constants.append(a)
                else:
                    operands.append(texts.get(id(a)))
            if None in operands:
                return None
            if len(asked) == 1 and operands == ["a0"] and type(y) is not tuple:
                return call
            texts[id(result)] = f"y{k}"
            lines.append(f"y{k} = c{len(constants)}({', '.join(['path', *operands])})\n")
            constants.append(call)
            done = {
                texts[id(a)] for a in args if last[id(a)] == k and texts.get(id(a), "a")[0] == "y"
            }
            lines += [f"del {text}\n" for text in sorted(done)]
        shown = [texts.get(id(v)) for v in _results(y)]
        if None in shown or f"y{len(asked) - 1}" not in shown:
            return None
        names = tuple([f"c{k}" for k in range(len(constants))])
        body = "".join([*lines, f"return {', '.join(shown)}{',' * (type(y) is tuple)}\n"])
        return maker(names, ", ".join(["path", *self.slots]), body, "route")(*constants)
