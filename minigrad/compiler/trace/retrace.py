"""Retraces: checks whether a step still does the same, and says why it is traced so often."""

import math

import numpy as np

from minigrad.compiler.program.program import ARGUMENT, CAPTURED, CONSTANT, Ref
from minigrad.compiler.trace.structure import StepOutput
from minigrad.devices.backend import values
from minigrad.errors import TraceError
from minigrad.formulas.expression import Program
from minigrad.tape.variable import Variable

COSTLY = 0.1  # warn of retraces that find an old program if tracing takes this share of the time
OFTEN = 5  # more traces than this cause a warning that says why
STRANGERS = 10  # consecutive calls with new objects that cause a warning
PASS_IT = "pass what changes as an argument: mg.variable(v), or keep it in an array and write it"
CHOOSE = (
    "pass what Python chooses by as an argument: each value of a bool, number or string has a "
    "program of its own"
)


class Difference(Exception):
    """A difference found by a `Comparison`. what: a phrase; old, new: as text; line: where."""

    def __init__(self, what, old, new, line=""):
        super().__init__(what)
        self.what, self.old, self.new, self.line = what, str(old), str(new), line


class Comparison:
    """Compares two Traced side by side: temporaries match by order, memory by identity."""

    def __init__(self, old, new):
        self.old, self.new, self.pairs, self.line = old.capture, new.capture, {}, ""
        self.moving = {**old.moving, **new.moving}

    def difference(self):
        """Return the first Difference, or None if they are the same program."""
        try:
            self._programs(self.old.recording, self.new.recording)
            self._effects()
            self._links(self.old.link, self.new.link)
        except Difference as difference:
            return difference.with_traceback(None)  # the traceback's frames hold it: a cycle
        return None

    def _same(self, what, old, new):
        if type(old) is not type(new) or not _equal(old, new):
            raise Difference(what, _shown(old), _shown(new), self.line)

    # -- the program ---------------------------------------------------------------------------

    def _programs(self, a, b):
        self._same("the number of arrays passed in", len(a.arguments), len(b.arguments))
        for old, new in zip(a.instructions, b.instructions, strict=False):
            self.line = new.line
            self._instruction(old, new)
        self.line = ""
        if len(a.instructions) != len(b.instructions):
            longer = max(a.instructions, b.instructions, key=len)
            i = longer[min(len(a.instructions), len(b.instructions))]
            self.line = i.line
            self._same("the number of operations", len(a.instructions), len(b.instructions))
        self._all("the results", a.results, b.results)

    def _instruction(self, old, new):
        self._same("the operation", old.name or old.op, new.name or new.op)
        self._same("the operation", old.op, new.op)
        for key, value in old.attributes.items():
            other = new.attributes.get(key)
            if key == "error":
                continue
            if isinstance(value, Program):
                if type(other) is not Program or not value.is_same(other):
                    raise Difference("the formula", value, other, self.line)
                continue
            self._same(f"the attribute {key} of {new.name or new.op}", value, other)
        self._all(f"an operand of {new.name or new.op}", old.inputs, new.inputs)
        self._all(f"the result of {new.name or new.op}", old.outputs, new.outputs)

    def _all(self, what, old, new):
        self._same(f"the count of {what}", len(old), len(new))
        for x, y in zip(old, new, strict=True):
            if isinstance(x, Ref) and isinstance(y, Ref):
                self._value(what, x.value, y.value)
                self._same(f"the layout of {what}", x.layout(), y.layout())
            else:
                self._same(f"the number that is {what}", x, y)

    def _value(self, what, old, new):
        if old in self.pairs:
            if self.pairs[old] is not new:
                raise Difference(what, _named(old), _named(new), self.line)
            return
        self._same(f"where {what} comes from", old.kind, new.kind)
        self._same(f"the dtype and size of {what}", (old.dtype, old.size), (new.dtype, new.size))
        if old.kind == CONSTANT:
            a, b = (values(v.storage).reshape(-1) for v in (old, new))
            if a.tobytes() != b.tobytes():
                k = int(np.argmax(a != b))
                raise Difference(
                    f"data that the step makes, {what}",
                    f"{a[k]} at {k}",
                    f"{b[k]} at {k}",
                    self.line,
                )
        elif old.kind == ARGUMENT:
            self._same(f"the argument that is {what}", old.index, new.index)
        elif old.kind == CAPTURED and self._place(old) != self._place(new):
            raise Difference(
                f"the array from outside that is {what}", _named(old), _named(new), self.line
            )
        self.pairs[old] = new

    def _place(self, value):
        """Return a key that is equal for the same outside memory."""
        if value.kind == ARGUMENT:
            return ARGUMENT, value.index
        if value in self.moving:
            return "grad", self.moving[value]
        return CAPTURED, id(value.storage)

    # -- effects -------------------------------------------------------------------------------

    def _effects(self):
        a, b = self.old, self.new
        self._tree("what the step returns", a.structure, b.structure)
        self._same("whether arguments require gradients afterwards", a.flags, b.flags)
        self._same("how far the random numbers move", a.random_count, b.random_count)
        self._same("the number of a schedule's steps", len(a.actions), len(b.actions))
        for (f, when), (g, other) in zip(a.actions, b.actions, strict=True):
            if f != g or when != other:
                raise Difference("a schedule's step", _shown(f), _shown(g))
        written, other = ({self._place(v): n for v, n in c.written.items()} for c in (a, b))
        if written != other:
            raise Difference("which arrays are written in place", len(a.written), len(b.written))
        self._same("the number of leaves whose .grad is used", len(a.grads), len(b.grads))
        for x, y in zip(a.grads, b.grads, strict=True):
            if x.leaf is not y.leaf or x.argument != y.argument:
                raise Difference("the leaf whose .grad is used", x.where, y.where)
            self._same(f"whether {y.where}.grad is None before", x.was_none, y.was_none)
            self._same(f"whether {y.where}.grad is set before it is looked at", x.is_set, y.is_set)
            if x.is_read != y.is_read or (x.is_read and x.before is not y.before):
                raise Difference(f"{y.where}.grad", "another array", "this one")
            self._same(f"whether {y.where}.grad is None after", x.after is None, y.after is None)
            if x.after is not None and not (_kept(x) and _kept(y)):
                self._tree(f"{y.where}.grad", x.after, y.after)

    def _links(self, old, new):
        what = "whether the results carry a graph"
        self._same(what, old is None, new is None)
        if old is None:
            return
        self._same("what backward of the results leads to", len(old.edges), len(new.edges))
        for x, y in zip(old.edges, new.edges, strict=True):
            if x is not y and (x != y or not isinstance(x, int)):
                raise Difference("a leaf that backward of the results leads to", _edge(x), _edge(y))
        self._same("whether backward raises", repr(old.error), repr(new.error))
        self._same("what is kept for backward", len(old.kept), len(new.kept))
        for x, y in zip(old.kept, new.kept, strict=True):
            if isinstance(x, int) or isinstance(y, int):
                self._same("what is kept for backward", x, y)
            else:
                self._value("kept for backward", x, y)
        for which, mine in old.pullbacks.items():
            other = new.pullbacks[which]
            self._same("what backward reads", mine.kept, other.kept)
            self._same("what backward leads to", mine.targets, other.targets)
            self._programs(mine.capture.recording, other.capture.recording)

    def _tree(self, what, old, new):
        self._same(f"the type of {what}", type(old), type(new))
        if isinstance(old, StepOutput):
            is_same = old[:2] == new[:2] and old[3:] == new[3:]
            if not is_same or not _same_variable(old.variable, new.variable):
                raise Difference(what, f"{old.kind} {old.index}", f"{new.kind} {new.index}")
        elif isinstance(old, dict):
            self._same(f"the keys of {what}", tuple(old), tuple(new))
            for key in old:
                self._tree(f"{what}[{key!r}]", old[key], new[key])
        elif isinstance(old, (tuple, list)):
            self._same(f"the length of {what}", len(old), len(new))
            for k, (x, y) in enumerate(zip(old, new, strict=True)):
                self._tree(f"{what}[{k}]", x, y)
        else:
            self._same(what, old, new)


def _same_variable(old, new):
    """Return whether two captured Variables view the same memory, or both are `PRESENT`."""
    if not isinstance(old, Variable) or not isinstance(new, Variable):
        return old is new
    a, b = old.array, new.array
    return a.storage is b.storage and a.layout() == b.layout()


def _edge(x):
    return f"argument {x}" if isinstance(x, int) else x.describe()


def _kept(effect):
    return effect.after is not None and effect.after.variable is effect.before is not None


def _equal(old, new):
    if isinstance(old, float):
        return old.hex() == new.hex() or (math.isnan(old) and math.isnan(new))
    if isinstance(old, tuple) and not hasattr(old, "_fields"):
        return len(old) == len(new) and all(
            type(a) is type(b) and _equal(a, b) for a, b in zip(old, new, strict=True)
        )
    return old is new or old == new


def _shown(x):
    return x.describe() if isinstance(x, Variable) else f"{x!r:.120}"


def _named(value):
    name = f" '{value.name}'" if value.name else ""
    made = f", made at {value.line}" if value.line else ""
    return f"{value.dtype}[{value.size}]{name} ({value.kind}{made})"


def changed_error(name, change):
    """Return the TraceError of a step that no longer does what it did when traced."""
    got = f"{change.new}, and {change.old} when it was traced"
    if change.new == change.old:
        got = f"another {change.new} than when it was traced"
    return TraceError(
        f"the compiled step '{name}' does something else than when it was traced: {change.what} "
        "was frozen then",
        got,
        CHOOSE if change.what in ("the operation", "the number of operations") else PASS_IT,
        where=change.line or None,
    )


class Causes:
    """Facts about the traced calls, to find the one that changes from call to call."""

    def __init__(self):
        self.history, self.warned = [], 0
        self.since, self.now, self.seconds = None, 0.0, 0.0
        self.strangers, self.objects = 0, []

    def stranger(self, name, objects):
        """Note a call with new objects (Identities); return the warning when it is due.

        If such objects live no longer than the call, no program is ever made.
        """
        new = [x for x in objects if x not in self.objects]
        self.strangers, self.objects = self.strangers + 1, objects
        if self.strangers != STRANGERS or not new:
            return None
        text = f"the compiled step '{name}' has run as usual {STRANGERS} times and has no program"
        return f"{text}: {_cause((new[0].where, 'object'), [])}"

    def spent(self, began, ended):
        """Note how long a trace took."""
        self.strangers = 0
        self.since = began if self.since is None else self.since
        self.now, self.seconds = ended, self.seconds + ended - began

    def compiled(self, seconds):
        """Exclude compilation from the elapsed time, which measures how often the step is used."""
        self.since = (self.since or 0.0) + seconds

    def are_costly(self):
        """Return whether tracing took over a tenth of the time since the first trace."""
        return self.seconds > COSTLY * (self.now - (self.since or 0.0))

    def add(self, facts):
        """Note the facts of one trace: {(where, what): value}."""
        self.history.append(facts)
        del self.history[:-64]

    def sentence(self, name):
        """Return the warning when due (after OFTEN traces, then at each doubling), or None."""
        n = len(self.history)
        if n <= max(OFTEN, 2 * self.warned):
            return None
        self.warned = n
        keys = dict.fromkeys(key for facts in self.history for key in facts)
        seen = {key: _distinct(facts.get(key) for facts in self.history) for key in keys}
        ranked = sorted(seen, key=lambda key: -len(seen[key]))
        text = f"the compiled step '{name}' has been traced {n} times, which takes far longer "
        text += "than running it"
        if not ranked or len(seen[ranked[0]]) < 2:
            return text
        return f"{text}: {_cause(ranked[0], seen[ranked[0]])}"


def _distinct(values):
    kept = {}
    for value in values:
        kept.setdefault((type(value), repr(value)), value)
    return list(kept.values())


def _cause(key, values):
    (where, what), n = key, len(values)
    values = [v for v in values if v is not None] or values  # None: calls without such an argument
    shown = ", ".join(map(str, values[:3])) + (", ..." if n > 3 else "")
    name = where.split("'")[1] if "'" in where else "x"
    if what == "shape":
        return f"{where} has had {n} shapes: {shown}; pad the last batch or drop it"
    if what == "length":
        return (
            f"{where} has had {n} lengths: {shown}; each is a program of its own: pass one "
            "Variable (mg.stack), or as many items in each call"
        )
    if what == "value" and isinstance(values[0], (int, float)) and type(values[0]) is not bool:
        return (
            f"{where} is a Python number, changes ({shown}), and decides what the step does by its "
            "value: a branch, a size, an index, a function such as math.exp; each value is a "
            f"program of its own: decide outside the step, or compute with mg.variable({name})"
        )
    if what == "value":
        return f"{where} changes: {shown}; each value is a program of its own"
    if what == "object":
        return (
            f"{where} is another object at each call; make it once, outside, and pass the same "
            "one, or pass the Variables that it holds, in a tuple or dict"
        )
    if what == "strides":
        return f"{where} lies in memory in {n} ways; pass {name}.clone() of a transposed one"
    if what == "attributes":
        return (
            "an attribute of a Module, Parameter, optimizer or GradManager is set between the "
            "calls, or a Module made or dropped; do it once, or keep what changes in an array"
        )
    return f"{what} of {where} changes: {shown}"
