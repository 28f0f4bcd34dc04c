"""The emitter for Loops of compiled steps; what their passes compute, and what it costs."""

from minigrad.formulas.emitter import Emitter
from minigrad.formulas.expression import ROW_REDUCTIONS, Expression, walk
from minigrad.formulas.kinds import OWN

OWN_COST = 30  # of an exp, in additions


class LoopEmitter(Emitter):
    """Chooses without branches, with which LLVM would not vectorize a loop that stores.

    kinds: of the formulas; column: the text of the index along the row.
    """

    def __init__(self, operands, real, kinds, column):
        super().__init__(operands, real, kinds)
        self.column = column
        self.saved = {}  # {value that an earlier pass has stored: text of its place}

    def value(self, e, kind=None):
        """A name or literal for e, converted to a kind."""
        if e.op == "column_of":
            return self._convert(f"I8({self.column})", "i", kind or "i")
        return super().value(e, kind)

    def _convert(self, text, own, kind):
        if own != "b" or kind == own:
            return super()._convert(text, own, kind)
        number = "I8" if kind == "i" else self.real
        return f"choose({text}, {number}(1), {number}(0))"

    def _code(self, e):
        if e in self.saved:
            return self.saved[e]
        if e.op == "where":
            kind = self.kind(e)
            a, b = (self.value(x, kind) for x in e.args[1:])
            return f"choose({self.value(e.args[0], 'b')}, {a}, {b})"
        if e.op in ("maximum", "minimum") and self.kind(e) == "f":
            a, b = (self.value(x, "f") for x in e.args)
            return f"choose(({a} {'>' if e.op == 'maximum' else '<'} {b}) | ({a} != {a}), {a}, {b})"
        return super()._code(e)


def elements(roots, stop=()):
    """The expressions that a pass evaluates per element for its roots, outermost first.

    Operands of row reductions and of `stop` are left out: those values are there already.
    """
    found, stack = {}, list(roots)[::-1]
    while stack:
        e = stack.pop()
        if e not in found:
            found[e] = None
            if e.op not in ROW_REDUCTIONS and e not in stop:
                stack += [a for a in reversed(e.args) if isinstance(a, Expression)]
    return list(found)


def reductions(outputs, level):
    """The row reductions of one nesting level, in order of appearance."""
    return [e for e in walk(outputs) if e.op in ROW_REDUCTIONS and e.depth == level]


def cost(formulas):
    """The arithmetic of formulas, in additions."""
    return sum(OWN_COST if e.op in OWN else 6 if e.op in ("div", "sqrt", "pow") else 1
               for e in walk(formulas) if e.op not in ("symbol", "constant"))  # fmt: skip
