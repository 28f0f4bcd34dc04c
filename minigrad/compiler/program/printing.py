"""Prints a Recording as readable lines: for reports, lessons and error messages."""

from minigrad.compiler.program.program import ARGUMENT, CAPTURED, Ref
from minigrad.formulas.expression import Expression

WIDEST = 70  # characters of a formula; a longer one is shown as its operation's name
SOURCE_COLUMN = 56
UNSHOWN = {"accumulate", "error"}  # shown before the call; a function


def show(recording):
    """Return a listing with one instruction per line.

    %0, %1, ... are temporaries in order of appearance; x0, x1, ... are arguments; captured memory
    has its own name or c0, c1, ...; constants are k0, k1, .... `=` creates a temporary, `:=` writes
    to existing memory. [2:4] are elements of the flat memory; a layout is shown if it is not
    contiguous.

    >>> from minigrad.compiler.program.sketch import Sketch
    >>> s = Sketch()
    >>> x, w = s.argument((2, 3)), s.captured("w", (3,))
    >>> total = s.reduce("sum", s.mul(x, w), axes=(0,), line="train.py:3  y.sum(0)")
    >>> s.add(w, total, out=w)
    >>> print(show(s.recording(total)))
    %0 float32[2, 3] = mul x0 w
    %1 float32[3] = sum %0 over axes 0                      # train.py:3  y.sum(0)
    w := add w %1
    return %1
    """
    names = Names(recording)
    lines = [names.line(i) for i in recording.instructions]
    if recording.results:
        lines.append("return " + ", ".join(map(names.ref, recording.results)))
    return "\n".join(lines)


class Names:
    """Gives the Values of a Recording stable names."""

    def __init__(self, recording):
        self._names, self._counts = {}, {}
        self._taken, self._made = set(), set()
        for i in recording.instructions:
            for x in (*i.inputs, *i.outputs):
                if isinstance(x, Ref):
                    self._name(x.value)
        for r in recording.results:
            self._name(r.value)

    def _name(self, value):
        if value in self._names:
            return
        if value.kind == ARGUMENT:
            name = f"x{value.index}"
        elif value.kind == CAPTURED and value.name and value.name not in self._taken:
            name = value.name
        else:
            name = self._next(value)
        self._taken.add(name)
        self._names[value] = name

    def _next(self, value):
        sign = "%" if value.is_temporary else "c" if value.kind == CAPTURED else "k"
        while True:
            count = self._counts.get(sign, 0)
            self._counts[sign] = count + 1
            if f"{sign}{count}" not in self._taken:
                return f"{sign}{count}"

    def ref(self, x):
        """Return the text of a Ref or a number."""
        if not isinstance(x, Ref):
            return repr(x)
        name = self._names[x.value]
        if not x.is_contiguous:
            start = f" from {x.offset}" if x.offset else ""
            return f"{name}{{{list(x.shape)} strides {list(x.strides)}{start}}}"
        if x.size == x.value.size:
            return name
        return f"{name}[{x.offset}:{x.offset + x.size}]"

    def line(self, i):
        """Return the text of one instruction, followed by the user's line."""
        targets, is_new = [], True
        for r in i.outputs:
            text = self.ref(r)
            if r.value.is_temporary and r.value not in self._made:
                if text == self._names[r.value]:
                    text += f" {r.dtype}{list(r.shape)}"
            else:
                is_new = False
            targets.append(text)
        self._made |= {r.value for r in i.outputs}
        sign = f"{', '.join(targets)} {'=' if is_new else ':='} " if targets else ""
        adds = i.op == "scatter_add" or i.attributes.get("accumulate")
        before = f"{self.ref(i.outputs[0])} + " if adds else ""
        text = f"{sign}{before}{self.call(i)}"
        return f"{text:<{SOURCE_COLUMN - 1}} # {i.line}" if i.line else text

    def call(self, i):
        """Return the text of what an instruction computes."""
        operands = [self.ref(x) for x in i.inputs]
        more = dict(i.attributes)
        program, how = more.pop("program", None), more.pop("how", None)
        more.pop("shape", None)
        axes = more.pop("axes", None)
        if program is None:
            details = [f"{k}={v!r}" for k, v in more.items() if k not in UNSHOWN]
            return " ".join([i.op, *operands, *details])
        if how:
            texts = formulas(program, operands, i.name, _nested)
            axes = "" if axes is None else f" over axes {', '.join(map(str, axes))}"
            return f"{how} {texts[0]}{axes}"
        texts = formulas(program, operands, i.name, formula)
        if i.inputs and not isinstance(i.inputs[0], Ref):
            texts = [t.replace("copy", "fill") if t == f"copy {operands[0]}" else t for t in texts]
        if i.op == "rows":
            if len(texts) < len(more["modes"]):
                return f"rows {texts[0]} ({', '.join(more['modes'])})"
            pairs = zip(texts, more["modes"], strict=True)
            return "rows " + ", ".join(t if m == "store" else f"{t} ({m})" for t, m in pairs)
        return ", ".join(texts)


def formulas(program, operands, name, write):
    """Write a program's formulas over the texts of its operands.

    write: `formula` or `_nested`.
    """
    sizes: dict = {}
    if max(_size(e, sizes) for e in program.outputs) <= WIDEST:
        named = dict(zip(program.inputs, operands, strict=True))
        texts = [write(e, named) for e in program.outputs]
        if max(map(len, texts)) <= WIDEST:
            return texts
    return [" ".join([name or "formula", *operands])]


def _size(e, sizes):
    """Count the operations of a formula when written out, where shared parts repeat."""
    if e not in sizes:
        sizes[e] = 1 + sum(_size(a, sizes) for a in e.args if isinstance(a, Expression))
    return sizes[e]


def formula(e, named):
    """Write a formula: `add x y` for one operation, nested ones with brackets."""
    if e.op == "symbol":
        return f"copy {named[e.args[0]]}"
    if e.op != "constant" and all(a.op in ("symbol", "constant") for a in e.args):
        return " ".join([e.op, *(_nested(a, named) for a in e.args)])
    return _nested(e, named)


def _nested(e, named):
    if not isinstance(e, Expression):
        return repr(e)
    if e.op == "symbol":
        return named[e.args[0]]
    if e.op == "constant":
        return repr(e.args[0])
    return f"{e.op}({', '.join(_nested(a, named) for a in e.args)})"
