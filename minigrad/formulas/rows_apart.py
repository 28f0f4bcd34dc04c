"""Splits formulas with row reductions into steps for all rows at once.

A row kernel reads a row several times, from the cache. If the rows are columns of memory,
neighbours belong to different rows, and a kernel per reduction is faster.
"""

import functools
from typing import NamedTuple

from minigrad.formulas.expression import (
    ROW_REDUCTIONS,
    Expression,
    Program,
    symbol,
    symbols_of,
    walk,
)


class Apart(NamedTuple):
    """A program in steps, and then a program per output.

    A step is (name, how, program): it reduces the program along rows, or, if `how` is None,
    computes it per row. The programs that follow read its value for each row under its name.
    """

    steps: list
    outputs: list


@functools.lru_cache(256)
def apart(program):
    """Return a program as Apart, or None if it uses the place of an element in its row."""
    rewritten, steps = {}, []  # {expression: the same without reductions}

    def part(formula):
        used = symbols_of(formula)
        names = [*program.inputs, *(name for name, _, _ in steps)]
        return Program([n for n in names if n in used], [formula], program.real)

    def named(how, formula):
        steps.append((f"row{len(steps)}", how, part(formula)))
        return symbol(steps[-1][0])

    def is_of_rows(formula):
        used = symbols_of(formula)
        return bool(used) and used.isdisjoint(program.inputs)

    for e in walk(program.outputs):  # arguments first
        if e.op == "column_of":
            return None
        if e.op in ("symbol", "constant"):
            rewritten[e] = e
            continue
        args = [rewritten[a] if isinstance(a, Expression) else a for a in e.args]
        if e.op in ROW_REDUCTIONS:
            rewritten[e] = named(e.op.removeprefix("row_"), args[0])
            continue
        made = Expression(e.op, *args)
        if not is_of_rows(made):  # what is the same for a row is computed once
            args = [named(None, a) if a.op != "symbol" and is_of_rows(a) else a for a in args]
            made = Expression(e.op, *args)
        rewritten[e] = made
    return Apart(steps, [part(rewritten[e]) for e in program.outputs])
