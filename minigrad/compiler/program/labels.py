"""Names values and calls, for reports and pictures.

A value is named after its parameter, its argument, or the operation that made it. A call is named
after the operations fused into it.
"""

import contextlib
from collections import Counter
from types import FunctionType, MethodType

from minigrad.compiler.program.items import MatMul, Opaque
from minigrad.compiler.program.program import ARGUMENT, CAPTURED, CONSTANT, Ref

MOST_FUNCTIONS = 64  # the most whose globals and closures are searched for Modules
MOST_NAMES = 6  # the most operations in a kernel's label
BACKWARD, STEP = " backward", ".step"


def operation(instruction):
    """Return the name of the operation that an instruction belongs to.

    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x = s.argument((2, 3))
    >>> s.reduce("sum", s.exp(x), axes=(1,)) and [operation(i) for i in s.instructions]
    ['exp', 'sum']
    """
    i = instruction
    if i.name:
        return i.name.removesuffix(STEP)
    if i.attributes.get("how"):
        return i.attributes["how"]
    program = i.attributes.get("program")
    if program is None:
        return i.op
    op = program.outputs[0].op
    if op in ("symbol", "constant"):
        return "copy" if isinstance(i.inputs[0], Ref) else "fill"
    return op


def joined(instructions, most=MOST_NAMES):
    """Join the operations of a call, each once: 'linear + relu', 'softmax + its gradient'."""
    names = list(dict.fromkeys(map(operation, instructions)))
    shown = []
    for name in names:
        of = name.removesuffix(BACKWARD)
        if of != name and of in names:
            shown[shown.index(of)] = f"{of} + its gradient"
        else:
            shown.append(name)
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return " + ".join(shown)


def label(item):
    """Return the label of an item of a plan: its operations, and whether it has one element."""
    if type(item) is Opaque:
        i = item.instruction
        what = operation(i)
        if i.op == "callback":
            return i.attributes["call"].label
        if i.op == "check":
            a = i.attributes
            limits = f" {a['low']} to {a['high']}" if a.get("what") == "within" else ""
            return f"check: {a.get('what', '')}{limits}"
        return what if what == i.op or i.op == "random" else f"{what} ({i.op})"
    text = joined(item.instructions)
    if type(item) is not MatMul and item.size == 1:
        text += ", single numbers"
    return text


def size_text(value):
    """Return the dtype and size of a Value that has no name."""
    return f"{value.dtype}[{value.size}]"


class ValueNames:
    """Gives the Values of a program names.

    Args:
        instructions: the instructions whose Values get names.
        trace: the `Traced` that they came from, or None.
        function: the compiled function: parameters are looked up in the Modules that it can reach.
    """

    def __init__(self, instructions, trace=None, function=None):
        self._names, self._makers, self._numbers = {}, {}, {}
        storages = parameter_names(trace, function)
        for i in instructions:
            for r in i.writes:
                self._makers.setdefault(r.value, i)
        for i in instructions:
            for r in (*i.reads, *i.writes):
                v = r.value
                if v.kind == CAPTURED and v not in self._names:
                    name = storages.get(id(v.storage)) if v.storage is not None else None
                    self._names[v] = v.name or name or f"{size_text(v)} of {operation(i)}"
        self._tell_apart(instructions, {id(v.storage): v for v in self._names}, trace, function)

    def _tell_apart(self, instructions, values, trace, function):
        """Distinguish parameters of several models with one name: first.weight, second.weight."""
        counts = Counter(self._names.values())
        for variable, module in _modules_near(function, trace):
            for name, p in module.named_parameters() if variable else ():
                v = values.get(id(p.array.storage))
                if v is not None and counts[self._names[v]] > 1:
                    self._names[v] = f"{variable}.{name}"
        for i in instructions:  # an optimizer's step: the parameter, then its state
            if i.name.endswith(STEP) and i.outputs and i.outputs[0].value in self._names:
                new = self._names[i.outputs[0].value]
                for r in i.outputs[1:]:
                    head, of, _ = self._names.get(r.value, "").rpartition(" of ")
                    if of and counts[self._names[r.value]] > 1:
                        self._names[r.value] = f"{head} of {new}"

    def __call__(self, value):
        """Return the name of a Value."""
        if value.kind == ARGUMENT:
            return short_name(value.name) or f"argument {value.index}"
        known = self._names.get(value)
        if known:
            return known
        if value.kind == CONSTANT:
            return f"constant {size_text(value)}"
        maker = self._makers.get(value)
        name = operation(maker) if maker is not None else value.name
        return name.removesuffix(STEP) if name else size_text(value)

    def numbered(self, value):
        """Return the name; number temporaries that share one: the second is 'linear 2'."""
        name = self(value)
        if not value.is_temporary:
            return name
        numbers = self._numbers.setdefault(name, {})
        n = numbers.setdefault(value, len(numbers) + 1)
        return name if n == 1 else f"{name} {n}"

    def with_line(self, value):
        """Return the name; for a temporary, also the user's line."""
        maker = self._makers.get(value)
        line = value.line or (maker.line if maker is not None else "")
        return f"{self(value)} ({place_of(line)})" if line and value.is_temporary else self(value)


def short_name(where):
    """Return the name in the words for an argument: 'x' of `argument 0 ('x')`."""
    parts = where.split("'")
    return parts[1] + parts[2].strip(" )") if len(parts) >= 3 else where


def place_of(line):
    """Return `file:line` of `file:line  text`, without folders."""
    return line.split("  ")[0].replace("\\", "/").rsplit("/", 1)[-1]


# -- parameters --------------------------------------------------------------------------------


def parameter_names(trace, function):
    """Return {id of a Storage: name} of the parameters and buffers in a function's reach."""
    names = {}
    for effect in trace.capture.grads if trace is not None else ():
        if effect.leaf is not None and effect.leaf.name:
            names[id(effect.leaf.array.storage)] = effect.leaf.name
            if effect.leaf.group is not None:
                names[id(effect.leaf.group[0].flat)] = "gradients"
    for _, module in _modules_near(function, trace):
        for name, variable in (*module.named_parameters(), *module.named_buffers()):
            names.setdefault(id(variable.array.storage), variable.name or name)
    return names


def _modules_near(function, trace):
    """Return [(name, Module)] from a function's globals, closure, self and arguments."""
    near, waiting, seen = [], [function], set()
    while waiting and len(seen) < MOST_FUNCTIONS:
        f = waiting.pop()
        near += [("", f), ("self", getattr(f, "__self__", None))]
        f = getattr(f, "__func__", f)
        code = getattr(f, "__code__", None)
        if code is None or id(f) in seen:
            continue
        seen.add(id(f))
        reached = [(name, f.__globals__.get(name)) for name in code.co_names]
        for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # not set yet
                reached.append((name, cell.cell_contents))
        near += reached
        waiting += [x for _, x in reached if isinstance(x, (FunctionType, MethodType))]
    if trace is not None:
        near += [("", i.reference()) for i in trace.identities]
    held = []
    for name, x in near:
        inside = () if _is_module(x) else getattr(x, "__dict__", {}).items()
        held += [(name, x), *((str(key), y) for key, y in inside)]
    return [(name, x) for name, x in held if _is_module(x)]


def _is_module(x):
    return hasattr(type(x), "named_parameters") and hasattr(type(x), "named_buffers")
