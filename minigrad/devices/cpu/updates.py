"""Runs an optimizer's step on the CPU: one kernel call updates all, by a table of addresses.

A row of the table has ROW integers: addresses of parameter, gradient (0: leave this one out) and
state, elements, elements from one slot of the state to the next, address of the counters (float64:
steps taken, then the numbers of this step), address of the group's hyperparameters (float64, the
learning rate first). A piece is (row, first element, elements): threads share big parameters. A
kernel counts a step for the first `rows` rows, then updates its pieces.
"""

import functools

from minigrad.array.dtypes import float64
from minigrad.devices import loader
from minigrad.formulas.emitter import Emitter, Operand
from minigrad.formulas.update import STEPS

ROW = 8
PARAMETER, GRADIENT, STATE, SIZE, SLOT, COUNTERS, HYPERPARAMETERS = range(7)


@functools.cache
def kernel(update, dtype):
    """Return kernel(table, rows, pieces, first, last) of a formulas.Update: addresses and ints."""
    text, includes = update_text(update, dtype)
    return loader.entry(loader.load(text, includes).kernel)


def update_text(update, dtype):
    """Return (source text, source files it needs) of the kernel of an Update."""
    arrays, emitter, stores = update.elements(Emitter, dtype)
    real, wide = emitter.real, dtype.arithmetic
    size = wide.itemsize  # offsets count bytes of the state; those of a narrow parameter are a part
    part = f" // {size // dtype.itemsize}" if dtype.is_narrow else ""
    numbers = [f"n{k}" for k in range(len(update.numbers))]
    lines = [
        "@restrict_jit",
        f"def update({', '.join([*arrays, 'n', *numbers])}):",
        *_indented(1, emitter.row),
        "    for i in range(n):",
        *_indented(2, [*emitter.lines, *stores]),
        "",
        "",
        '@jit("void(i8,i8,i8,i8,i8)")',
        "def kernel(table_at, rows, pieces_at, first, last):",
        "    table, pieces = i8_at(table_at), i8_at(pieces_at)",
    ]
    includes = set(emitter.includes)
    if update.of_steps:
        scalars = _Numbers(update, update.of_steps)
        includes |= scalars.includes
        lines += [
            "    for r in range(rows):",
            f"        row = r * {ROW}",
            f"        if table[row + {GRADIENT}] != 0:",
            f"            c = f8_at(table[row + {COUNTERS}])",
            f"            {STEPS} = c[0] + F8(1)",
            f"            c[0] = {STEPS}",
            *_indented(3, scalars.lines),
            *(f"            c[{1 + k}] = {x}" for k, x in enumerate(scalars.values)),
        ]
    fixed = [k for k in range(len(numbers)) if k not in update.of_steps]
    scalars = _Numbers(update, fixed)
    includes |= scalars.includes
    value_of = dict(zip(fixed, scalars.values, strict=True))
    value_of |= {k: f"c[{1 + place}]" for place, k in enumerate(update.of_steps)}
    given = [f"{dtype.pointer}(table[row + {a}] + at{part})" for a in (PARAMETER, GRADIENT)]
    given += [
        f"{wide.pointer}(table[row + {STATE}] + at + {k} * slot)" for k in range(len(update.slots))
    ]
    given += ["pieces[3 * k + 2]", *(f"{real}({value_of[k]})" for k in range(len(numbers)))]
    lines += [
        "    for k in range(first, last):",
        f"        row, at = pieces[3 * k] * {ROW}, {size} * pieces[3 * k + 1]",
        f"        if table[row + {GRADIENT}] != 0:",
        f"            c, slot = f8_at(table[row + {COUNTERS}]), {size} * table[row + {SLOT}]",
        *_indented(3, scalars.lines),
        f"            update({', '.join(given)})",
    ]
    return "\n".join(lines) + "\n", tuple(sorted(includes))


class _Numbers:
    """Statements in float64 for some numbers of an Update. values: the text of each."""

    def __init__(self, update, chosen):
        symbols = [Operand(name, "f", None, False) for name in (*update.symbols, STEPS)]
        emitter = Emitter(symbols, "F8")
        self.values = [emitter.stored(update.numbers[k], float64) for k in chosen]
        self.includes = emitter.includes
        text = "\n".join([*emitter.row, *self.values])
        head = [f"h = f8_at(table[row + {HYPERPARAMETERS}])"]
        head += [f"{x} = h[{k}]" for k, x in enumerate(update.symbols) if x in text]
        self.lines = [*head, *emitter.row]


def _indented(deep, lines):
    return ["    " * deep + x for x in lines]
