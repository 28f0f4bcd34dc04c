"""Writes a kernel's loops over rows and their columns, for eager kernels and compiled steps.

Each nesting level of row reductions takes one pass over the columns. A last pass writes the
outputs. Their modes are `store` (one value per element), `row` (one per row), `columns` (reduced
over the rows), `all` (over all elements) and `total` (over all rows). Kernels override the methods
in which they differ: where sums over rows are kept, how sizes are written, how a maximum is found.
"""

from typing import Any, NamedTuple

from minigrad.array.dtypes import int64
from minigrad.formulas.expression import ROW_REDUCTIONS, Expression, walk

SUMS = ("sum", "mean")
START = {"sum": "0", "mean": "0", "prod": "1", "any": "False", "all": "True"}


def reduced_kind(how, kind):
    """Return the kind in which values of a kind are reduced."""
    if how in ("any", "all"):
        return "b"
    return "f" if how == "mean" else "i" if kind == "b" and how in START else kind


def combine(how, acc, value, real_kind):
    """Return the text of one reduction step: acc combined with value."""
    if how in SUMS:
        return f"{acc} + {value}"
    if how == "prod":
        return f"{acc} * {value}"
    if how in ("any", "all"):
        return f"{acc} {'|' if how == 'any' else '&'} {value}"
    sign = ">" if how == "max" else "<"
    nan = f" or {value} != {value}" if real_kind == "f" else ""
    return f"{value} if {value} {sign} {acc}{nan} else {acc}"


def gathered(how, acc, value, kind):
    """Like `combine`, but LLVM may reorder float sums and products to vectorize the loop."""
    if kind == "f" and how in (*SUMS, "prod"):
        return f"{'times' if how == 'prod' else 'plus'}({acc}, {value})"
    return combine(how, acc, value, kind)


def start_value(how, kind, real, integer=int64):
    """Return a reduction's initial value. integer: the dtype in which ints are reduced."""
    if how in ("any", "all"):
        return START[how]
    if how in START:
        return f"{real}({START[how]})" if kind == "f" else f"I8({START[how]})"
    if kind == "f":
        return f"{real}({'-' if how == 'max' else ''}math.inf)"
    if kind == "b":
        return "False" if how == "max" else "True"
    start = integer.limits[how == "min"]
    # Numba reads the digits of the smallest int64 as a uint64
    return f"I8({start})" if start != int64.limits[0] else f"I8({start + 1} - 1)"


def stored_as(text, dtype):
    """Return the text of a value as an element of a dtype."""
    if dtype.kind == "b":
        return f"U1(1) if ({text}) else U1(0)"
    return f"{dtype.text}({text})"


class Gathering(NamedTuple):
    """A named reduction of values of one kind.

    is_wide: whether sums of blocks, in the kernel's type, are added in float64.
    """

    name: str
    how: str
    value: str
    kind: str
    is_wide: bool


class Lines:
    """Collects the lines of a text."""

    def __init__(self):
        self.lines = []

    def line(self, indent, text):
        """Add one line."""
        self.lines.append("    " * indent + text)

    def all_lines(self, indent, texts):
        """Add lines."""
        for text in texts:
            self.line(indent, text)

    def heads(self, indent, loops):
        """Add heads of nested loops (index, begin, end); return the indent inside them."""
        for depth, (index, low, high) in enumerate(loops):
            span = high if low == "0" else f"{low}, {high}"
            self.line(indent + depth, f"for {index} in range({span}):")
        return indent + len(loops)


class Loops(Lines):
    """Writes the passes over a row.

    formulas, modes, targets: one per output; targets are Operands. is_wide: whether row sums are
    completed in float64. block: the number of elements that one accumulator of the kernel's type
    then adds. is_long: whether the innermost loop has more elements than a block.

    sums: (array, place) of sums over rows, one element per column. has_totals: whether these sums
    are flushed to float64 `totals` at the same places after row_block rows.
    """

    emitter: Any
    formulas: list
    modes: list
    targets: list
    block: int
    is_wide: bool
    is_long: bool
    sums: list
    has_totals = False
    row_block: Any

    def divided(self, e, kind):
        """Return the text that turns the sum of e into a mean. kind: the type of the sum."""
        raise NotImplementedError

    def column_step(self, k, e, target):
        """Return the line that reduces output k over the rows."""
        raise NotImplementedError

    def whole_step(self, k, e, sums, after):
        """Add a step of output k over all elements to `sums`, or over all rows to `after`."""
        raise NotImplementedError

    def column_loops(self):
        """Return the loops over the columns as [(index, begin, end)], all texts."""
        return [("j", "0", "n_j")]

    def kind(self, how, e):
        """Return the kind in which a formula is reduced."""
        return "f"

    def step(self, how, total, value, kind, otherwise=gathered):
        """Return one step of a reduction; float max and min use an instruction that keeps NaN.

        otherwise: writes the others; `combine` keeps the order of float sums and products.
        """
        if kind == "f" and how in ("max", "min"):
            self.emitter.includes.add("extremes")
            return f"{'largest_of' if how == 'max' else 'smallest_of'}({value}, {total})"
        return otherwise(how, total, value, kind)

    def keep(self):
        """Return lines that store values of this pass for later passes."""
        return []

    def recall(self):
        """Make the last pass load the stored values."""

    def gather(self, indent, lines, sums):
        """Emit a loop over the columns with `lines` and a step of each Gathering in `sums`."""
        *outer, (index, low, high) = self.column_loops()
        indent = self.heads(indent, outer)
        wide = [s for s in sums if s.is_wide]
        if wide and self.is_long:
            self.line(indent, f"for block in range({low}, {high}, {self.block}):")
            low, high = "block", f"min(block + {self.block}, {high})"
            indent += 1
        self.all_lines(indent, [f"part_{s.name} = {self.emitter.real}(0)" for s in wide])
        deep = self.heads(indent, [(index, low, high)])
        self.all_lines(deep, lines)
        for s in sums:
            target = f"part_{s.name}" if s.is_wide else s.name
            self.line(deep, f"{target} = {self.step(s.how, target, s.value, s.kind)}")
        self.all_lines(indent, [f"{s.name} += F8(part_{s.name})" for s in wide])

    def clear(self, indent, count):
        """Emit lines that zero the sums over rows in the first `count` columns."""
        for name, place in self.sums:
            kinds = {name: self.emitter.real} | ({"totals": "F8"} if self.has_totals else {})
            for x, kind in kinds.items():
                self.line(indent, f"for j in range({count}): {x}[{place} + j] = {kind}(0)")
        if self.has_totals:
            self.line(indent, f"left = {self.row_block}")

    def blocks_of_rows(self, indent, loops, count):
        """Emit heads of row loops, the last over blocks of rows; return the indent inside.

        Flush the sums of `count` columns into totals before they exceed `row_block` rows.
        """
        *outer, (_, low, high) = loops
        indent = self.block_heads(self.heads(indent, outer), low, high, self.row_block)
        self.line(indent, "if left < stop - start:")
        self.join_totals(indent + 1, count)
        self.line(indent + 1, f"left = {self.row_block}")
        self.line(indent, "left -= stop - start")
        return indent

    def block_heads(self, indent, low, high, size):
        """Emit the head of a loop over blocks [start, stop); return the indent inside it."""
        self.line(indent, f"for start in range({low}, {high}, {size}):")
        self.line(indent + 1, f"stop = min(start + {size}, {high})")
        return indent + 1

    def join_totals(self, indent, count):
        """Flush `count` column sums into their totals and reset them."""
        for name, place in self.sums if self.has_totals else ():
            self.line(indent, f"for j in range({count}):")
            self.line(indent + 1, f"totals[{place} + j] += F8({name}[{place} + j])")
            self.line(indent + 1, f"{name}[{place} + j] = {self.emitter.real}(0)")

    def gathering(self, how, name, value, kind):
        """Return (Gathering of a row reduction, text of its start, text of its result)."""
        is_wide = self.is_wide and how in SUMS and kind == "f"
        start = "F8(0)" if is_wide else start_value(how, kind, self.emitter.real)
        return Gathering(name, how, value, kind, is_wide), start, name

    def reduction_pass(self, indent, level):
        """Emit the row reductions of one nesting level."""
        emitter = self.emitter
        emitter.start_pass()
        sums, starts, ends = [], [], []
        for e in reductions(self.formulas, level):
            how, name = e.op[4:], emitter.new_name()
            kind = self.kind(how, e.args[0])
            gathering, start, text = self.gathering(how, name, emitter.value(e.args[0], kind), kind)
            sums.append(gathering)
            starts.append(f"{gathering.name} = {start}")
            if how == "mean":
                text += self.divided(e, "F8" if gathering.is_wide else emitter.real)
            if gathering.is_wide:
                text = f"{emitter.real}({text})"
            if text != name:
                ends.append(f"{name} = {text}")
            emitter.row_names[e] = name
        keeps = self.keep()
        self.all_lines(indent, [*emitter.row, *starts])
        self.gather(indent, [*emitter.lines, *keeps], sums)
        self.all_lines(indent, ends)

    def output_pass(self, indent):
        """Emit the last pass: stores, and reductions over rows."""
        emitter = self.emitter
        emitter.start_pass()
        self.recall()
        stores, rows, sums, after = [], [], [], []
        for k, (e, mode, t) in enumerate(zip(self.formulas, self.modes, self.targets, strict=True)):
            if mode in ("store", "row"):
                text = f"{t.name}[{t.index}] = {emitter.stored(e, t.kind)}"
                (stores if mode == "store" else rows).append(text)
            elif mode == "columns":
                stores.append(self.column_step(k, e, t))
            else:
                self.whole_step(k, e, sums, after)
        self.all_lines(indent, emitter.row)
        if sums:
            self.gather(indent, [*emitter.lines, *stores], sums)
        elif stores:
            deep = self.heads(indent, self.column_loops())
            self.all_lines(deep, [*emitter.lines, *stores])
        self.all_lines(indent, [*rows, *after])


def elements(roots, stop=()):
    """Return the expressions that a pass evaluates per element for its roots, outermost first.

    It omits the operands of row reductions and of `stop`, whose values already exist.
    """
    seen, stack = {}, list(roots)[::-1]
    while stack:
        e = stack.pop()
        if e not in seen:
            seen[e] = None
            if e.op not in ROW_REDUCTIONS and e not in stop:
                stack += [a for a in reversed(e.args) if isinstance(a, Expression)]
    return list(seen)


def reductions(outputs, level):
    """Return the row reductions of one nesting level, in order of appearance."""
    return [e for e in walk(outputs) if e.op in ROW_REDUCTIONS and e.depth == level]
