"""Makes public functions remember the route of a call.

A function such as `mg.softmax` checks its arguments, and calls one operation with arguments made
from them. For the same layouts and arguments it always makes the same ones. The second such call
notes the route of the operation (`ops.routes`), and further calls find it in one look-up. Functions
that make new Variables, such as `mg.zeros`, call no operation and have routes of their own.
"""

import functools
import inspect
from textwrap import indent
from typing import Any

from minigrad.array.array import View
from minigrad.array.dtypes import DType
from minigrad.devices.backend import _active
from minigrad.devices.cpu.routes import written
from minigrad.ops.fast import IS_USABLE, MISSING, SCOPE, call_of_route, maker
from minigrad.ops.routes import LARGEST, PLAIN, are_here, call_of, note_first, noted
from minigrad.tape.modes import SLOW, state, watch
from minigrad.tape.variable import Variable

SCOPE["active"] = _active
LAYOUT = "(x.shape, x.strides, x.dtype, x.buffer.pool, x.buffer.is_foreign)"
IS_STALE = (
    "type(x) is View and x.made_at is not None and x.made_at != x.version and {}.node is not None"
)
ONE = f"""\
if {IS_USABLE.format("a0")}:
    x = a0.array
    if not ({IS_STALE.format("a0")}):
        key = ({LAYOUT}, {{others}})
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
        key = (*layouts, {{others}})
"""
NONE = "key = (active.default, {others})\n"
FORMS = {"x": (ONE, "a0", "(a0,)"), "xs": (SEVERAL, "*a0", "a0"), "": (NONE, "", "()")}
TYPE = "{0} = type({1})\nif {0} is tuple:\n    {0} = (*map(type, {1}),)\n"
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
        return call(path, {operands})
{give}
if call is None and key is not None:
    return learn(key, {several}, ({others}), {args}, named)
return function(*{args}, **named)
"""


def remembered(function, form="x"):
    """Wraps a function so that it finds the routes of earlier calls.

    form: the kind of its first argument: "x", a Variable; "xs", a list of them; "", no Variable.
    """
    calls: dict[Any, Any] = {}
    known[function.__name__] = calls
    parameters = list(inspect.signature(function).parameters.values())[len(form) > 0 :]
    named = [p.name for p in parameters]
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    values = [f"t{k}" for k in range(len(named))]
    look, operands, several = FORMS[form]
    others = "".join([f"{t}, {t.upper()}, " for t in values])
    find = [f"{t} = {n}\n" for t, n in zip(values, named, strict=True)]
    find.append("if not more:\n    pass\n")
    for n in range(1, len(placed) + 1):
        are_free = "".join([f" and {name} is MISSING" for name in placed[:n]])
        find.append(f"elif len(more) == {n}{are_free}:\n    {', '.join(values[:n])}, = more\n")
    find.append(f"else:\n    path = {SLOW}\n")
    find += [TYPE.format(t.upper(), t) for t in values]
    find.append(f"if path != {SLOW}:\n{indent(look.format(others=others), '    ')}")
    give = "".join([f"if {n} is not MISSING:\n    named['{n}'] = {n}\n" for n in named])
    args = "([a0] if a0 is not MISSING else []) + [*more]" if form else "more"
    text = TEXT.format(
        slow=SLOW, find=indent("".join(find), "    "), operands=operands, give=give,
        several=several, others="".join([f"{t}, " for t in values]), args=f"({args})",
    )  # fmt: skip
    first = "a0=MISSING, /, " if form else ""
    head = f"{first}*more, {''.join([f'{n}=MISSING, ' for n in named])}**named"
    fast = maker(("calls", "function", "learn"), head, text, "fast")(
        calls, function, functools.partial(_learn, function, calls)
    )
    return functools.wraps(function)(fast)


known: dict[str, dict] = {}  # {name of a function: its calls}


def _are_plain(values):
    """Returns whether the values are immutable, and equal ones of equal types mean the same.

    0.0 does not count: it equals -0.0.
    """
    for v in values:
        kind = type(v)
        is_number = kind is float and v == v != 0.0
        is_shape = kind is tuple and set(map(type, v)) <= {int}
        if not (kind in PLAIN or kind is DType or v is MISSING or is_number or is_shape):
            return False
    return True


def _learn(function, calls, key, operands, others, args, named):
    """Returns the result of a call without a route. The second call with a key makes a route."""
    if not _are_plain(others) or (not operands and _active.default is not None):
        return function(*args, **named)
    if note_first(calls, key):
        return function(*args, **named)
    calls[key] = False
    y, asked = _observed(function, args, named)
    if asked is not None:
        if not asked:
            call = _made(function, y, operands, args, named)
        else:
            op, given, attributes = asked[0]
            is_same = len(given) == len(operands) and all(map(_is, given, operands))
            call = call_of(op, given, attributes) if is_same else None
        calls[key] = call or False
    return y


def _is(a, b):
    return a is b


def _observed(function, args, named):
    """Runs a call; returns (result, [operation] or []), or (result, None) if it ran more."""
    asked, made = [], []
    before = state.path, state.watchers, state.asked, state.op_observers
    try:
        watch(+1)
        state.asked, state.op_observers = asked, (lambda name, y, inputs: made.append(y.array),)
        y = function(*args, **named)
    finally:  # without a call: Python delivers Ctrl-C at calls
        state.path, state.watchers, state.asked, state.op_observers = before
    is_all = len(asked) <= 1 == len(made) and made[0] is y.array
    return y, asked if is_all else None


def _made(function, y, operands, args, named):
    """Returns the route of a function that makes a leaf like its operands, or None."""
    arrays = [x.array for x in operands]
    is_like_others = not y._requires_grad and y.name is None
    if not is_like_others or not are_here(arrays) or y.array.size > LARGEST:
        return None
    rest = args[len(arrays) :]
    out, recorder = noted(
        lambda *given: function(*map(Variable, given), *rest, **named).array, arrays, None
    )
    lines = None if recorder is None else written(recorder, out)
    if lines is None:
        return None
    kinds = "x" * len(arrays)
    return call_of_route(lines, kinds, type(out) is View, False, False, (None, (), None))
