"""Identities of formulas, a row each: the pattern on the left equals the formula on the right.

Each row is exact for every float, including NaN, the infinities and -0.0, and for ints that wrap
around. So x + 0.0 has no row, as it turns -0.0 into 0.0; x * 0 has none, as it is NaN for an
infinite x. A value that was stored and read again (`as_float32`) matches no pattern but a, b and c:
what a store rounds stays rounded. To add an identity, add a row: tests/compiler/test_identities.py
evaluates both sides of every row on the edge values of each kind.
"""

import math
from typing import Any, NamedTuple

from minigrad.formulas.expression import (
    Expression,
    absolute,
    ceil,
    equal,
    floor,
    logical_not,
    maximum,
    minimum,
    neg,
    not_equal,
    round_,
    symbol,
    symbols_of,
    where,
)

FORMULAS = a, b, c = (symbol("a"), symbol("b"), symbol("c"))  # match any formula
NUMBERS = true, false = (symbol("true"), symbol("false"))  # match a number other than 0, and 0
COMMUTATIVE = {"add", "mul", "maximum", "minimum", "equal", "not_equal"}


class Identity(NamedTuple):
    """One row.

    kinds: for which the row holds. All formulas that the right side reads are of one of them, and
    both sides of the same kind, so that nothing is converted that was not converted before.
    """

    pattern: Any
    equals: Any
    kinds: str = "fi"


IDENTITIES = (
    Identity(a * 1, a),
    Identity(a / 1, a, "f"),
    Identity(a**1, a),
    Identity(a - 0, a),
    Identity(a + 0, a, "i"),
    Identity(a + -0.0, a, "f"),
    Identity(neg(neg(a)), a),
    Identity(a - -b, a + b),
    Identity(a + -b, a - b),
    Identity(-a * -b, a * b),
    Identity(-a / -b, a / b, "f"),
    Identity(absolute(-a), absolute(a)),
    Identity(absolute(absolute(a)), absolute(a)),
    Identity(floor(floor(a)), floor(a), "f"),
    Identity(ceil(ceil(a)), ceil(a), "f"),
    Identity(round_(round_(a)), round_(a), "f"),
    Identity(maximum(a, a), a),
    Identity(minimum(a, a), a),
    Identity(where(true, a, b), a, "fib"),
    Identity(where(false, a, b), b, "fib"),
    Identity(where(c, a, a), a, "fib"),
    Identity(logical_not(logical_not(a)), a, "b"),
    Identity(logical_not(equal(a, b)), not_equal(a, b)),
    Identity(logical_not(not_equal(a, b)), equal(a, b)),
)


def _by_op():
    rows: dict = {}
    for row in IDENTITIES:
        rows.setdefault(row.pattern.op, []).append(row)
    return rows


BY_OP = _by_op()


class Rewrite:
    """Rewrites formulas by the identities, from the operands up; `rewrite(e)` equals e.

    kinds: the Kinds of the formulas' symbols.

    >>> from minigrad.formulas.kinds import Kinds
    >>> x = symbol("x")
    >>> kinds = Kinds()
    >>> kinds.declare(x, "f")
    >>> rewrite = Rewrite(kinds)
    >>> rewrite(-(-(x * 1.0))), rewrite(x + 0.0)
    (x, add(x, 0.0))
    """

    def __init__(self, kinds):
        self.kinds, self.done = kinds, {}

    def __call__(self, e):
        if e.op in ("symbol", "constant"):
            return e
        if e not in self.done:
            args = [self(x) for x in e.args]
            same = all(x is y for x, y in zip(args, e.args, strict=True))
            self.done[e] = self.simplified(e if same else Expression(e.op, *args))
        return self.done[e]

    def number(self, e):
        """Return the number that a formula stands for, or None."""
        return e.args[0] if e.op == "constant" else None

    def simplified(self, e):
        """Return what the rows make of a formula whose operands are simplified already."""
        for row in BY_OP.get(e.op, ()):
            bindings: dict = {}
            if self._matches(row.pattern, e, bindings):
                right = _filled(row.equals, bindings)
                read = {self.kinds.of(bindings[symbol(name)]) for name in symbols_of(row.equals)}
                if (
                    len(read) == 1
                    and read <= {*row.kinds}
                    and self.kinds.of(right) == (self.kinds.of(e))
                ):
                    return right if right in bindings.values() else self.simplified(right)
        return e

    def _matches(self, pattern, e, bindings):
        """Return whether e has a pattern's form; add to bindings, {symbol: what stands for it}."""
        if pattern in FORMULAS:
            return bindings.setdefault(pattern, e) is e
        value = self.number(e)
        if pattern in NUMBERS:
            return value is not None and (value != 0) == (pattern is true)
        if pattern.op == "constant":
            wanted = pattern.args[0]
            if value is None or value != wanted:
                return False
            return math.copysign(1, value) == math.copysign(1, wanted)
        if pattern.op != e.op:
            return False
        for order in (pattern.args, pattern.args[::-1])[: 1 + (e.op in COMMUTATIVE)]:
            trial = dict(bindings)
            if all(self._matches(p, x, trial) for p, x in zip(order, e.args, strict=True)):
                bindings.update(trial)
                return True
        return False


def _filled(formula, bindings):
    """Return the right side of a row, with what its symbols stand for."""
    if formula in FORMULAS:
        return bindings[formula]
    return Expression(formula.op, *(_filled(x, bindings) for x in formula.args))
