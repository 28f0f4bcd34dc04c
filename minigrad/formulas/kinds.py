"""Kinds of the values in a loop, and what a value becomes by being stored and read again."""

from minigrad.formulas.emitter import REAL_ONLY
from minigrad.formulas.expression import COMPARISONS, LOGIC, Expression

TRUTH = {"row_any", "row_all"}
KEEPS_BOOL = {"where", "maximum", "minimum", "row_max", "row_min"}


class Kinds:
    """Of symbols and formulas: 'f', 'i' or 'b'."""

    def __init__(self):
        self._known = {}

    def copy(self):
        """Kinds that know the same."""
        other = Kinds()
        other._known.update(self._known)
        return other

    def declare(self, e, dtype):
        """Says what a symbol is."""
        self._known[e] = dtype.kind

    def of(self, e):
        """The kind of a formula over declared symbols."""
        found = self._known.get(e)
        if found is None:
            found = self._known[e] = self._find(e)
        return found

    def _find(self, e):
        op = e.op
        if op == "constant":
            value = e.args[0]
            return "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
        if op in COMPARISONS or op in LOGIC or op in TRUTH:
            return "b"
        if op.startswith("as_"):
            return {"bool": "b", "float32": "f", "float64": "f"}.get(op[3:], "i")
        if op == "column_of":
            return "i"
        if op in REAL_ONLY:
            return "f"
        kinds = {self.of(a) for a in (e.args[1:] if op == "where" else e.args)}
        if kinds == {"b"} and op in KEEPS_BOOL:
            return "b"
        return "f" if "f" in kinds else "i"

    def as_stored(self, e, dtype, real):
        """The formula for e after it was stored in an array of a dtype, in a kernel of `real`."""
        kind = self.of(e)
        if dtype.name == "float32" and real == "float64":
            return Expression("as_float32", e)
        if kind == dtype.kind and dtype.name in ("float32", "float64", "int64", "bool"):
            return e
        return Expression(f"as_{dtype.name}", e)
