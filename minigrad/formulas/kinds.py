"""Finds the kind of a value in a formula, 'f', 'i' or 'b', by one rule; estimates its cost."""

from minigrad.array.dtypes import by_name
from minigrad.formulas.expression import COMPARISONS, LOGIC, Expression, walk

OWN = {  # functions of mathematics.py
    "exp", "expm1", "log", "log1p", "log2", "tanh", "sigmoid", "erf", "sin", "cos", "atan2",
    "floor_divide", "remainder",
}  # fmt: skip
OWN_COST = 30  # one exp costs about as much as 30 additions
COSTS = {"div": 6, "sqrt": 6, "pow": 20}  # a power more, but a square and a cube less
WHOLE = {"floor_divide", "remainder", "pow"}  # for ints: functions of powers.py
REAL_ONLY = OWN - WHOLE | {"sqrt", "div", "cast_float", "row_mean"}
TRUTH = COMPARISONS | LOGIC | {"row_any", "row_all"}
KEEPS_BOOL = {"where", "maximum", "minimum", "row_max", "row_min"}


def kind_of_number(x):
    """Returns the kind of a Python number."""
    return "b" if isinstance(x, bool) else "i" if isinstance(x, int) else "f"


def result_kind(op, kinds):
    """Returns the kind of an operation's result, given the kinds of its operands.

    >>> result_kind("add", ["b", "i"]), result_kind("where", ["b", "f", "i"])
    ('i', 'f')
    """
    if op in TRUTH:
        return "b"
    if op.startswith("as_"):
        return by_name(op[3:]).kind
    if op == "column_of":
        return "i"
    if op in REAL_ONLY:
        return "f"
    distinct = set(kinds[1:] if op == "where" else kinds)
    if distinct == {"b"} and op in KEEPS_BOOL:
        return "b"
    return "f" if "f" in distinct else "i"


class Kinds:
    """The kinds of symbols and formulas."""

    def __init__(self):
        self._known = {}

    def copy(self):
        """Returns Kinds with the same declarations."""
        other = Kinds()
        other._known.update(self._known)
        return other

    def declare(self, e, kind):
        """Sets the kind of a symbol, by a DType or a kind."""
        self._known[e] = kind if isinstance(kind, str) else kind.kind

    def of(self, e):
        """Returns the kind of a formula over declared symbols."""
        kind = self._known.get(e)
        if kind is None:
            kind = self._known[e] = self._find(e)
        return kind

    def _find(self, e):
        if e.op == "constant":
            return kind_of_number(e.args[0])
        return result_kind(e.op, [self.of(a) for a in e.args])

    def as_stored(self, e, dtype, real):
        """Returns the formula of e as stored to an array and loaded again in a kernel of `real`."""
        computed = real if dtype.is_float else dtype.arithmetic
        if self.of(e) == dtype.kind and dtype is computed:
            return e
        return Expression(f"as_{dtype.name}", e)


def cost(formulas):
    """Estimate the arithmetic of formulas, in additions."""
    return sum(OWN_COST if e.op in OWN else COSTS.get(e.op, 1)
               for e in walk(formulas) if e.op not in ("symbol", "constant"))  # fmt: skip
