"""Emits the formulas of Loops of compiled steps: choices without branches."""

from minigrad.formulas.emitter import Emitter


class BranchlessEmitter(Emitter):
    """Emits choices without branches, because LLVM does not vectorize stores behind a branch.

    kinds: the Kinds of the formulas. column: the text of the index along the row.
    """

    def __init__(self, operands, real, kinds, column):
        super().__init__(operands, real, kinds)
        self.column = column
        self.saved = {}  # {value that an earlier pass stored: text of its place}

    def value(self, e, kind=None):
        """Return a name or literal for e, converted to a kind."""
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
