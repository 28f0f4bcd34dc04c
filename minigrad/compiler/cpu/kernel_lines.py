"""Generates the kernel of a fused loop: its loop form, its accumulators, its lines."""

from minigrad.array.layout import size_of
from minigrad.formulas.kinds import OWN
from minigrad.formulas.row_loops import (
    SUMS,
    Gathering,
    Loops,
    combine,
    elements,
    gathered,
    reduced_kind,
    reductions,
    start_value,
    stored_as,
)
from minigrad.formulas.sums import BLOCK, DENSE

NARROW = 32  # columns; with fewer, LLVM makes vectors from several rows
SMALL = 64  # sizes and strides up to this value are literals in the text
TILE = 512  # columns that are summed over all rows at a time
ALL = ("all", "total")  # modes that reduce to one number: over all elements, over all rows


class Body(Loops):
    """One kernel. The constructor chooses its form; `emit` writes its lines.

    There are three forms. `flat` loops over single elements, and may reduce them to one number.
    `tile` sums columns, some columns at a time over all rows, without row reductions. `rows` works
    row by row: one pass for each nesting level of row reductions, then a pass for the outputs.
    """

    def __init__(self, nest, formulas, outputs, kinds, is_cut):
        self.nest, self.formulas, self.outputs, self.kinds = nest, formulas, outputs, kinds
        self.depth = max((e.depth for e in formulas), default=0)
        self.modes = [o.mode for o in outputs]
        self.row_names = [f"i{d}" for d in range(len(nest.rows))]
        self.column_names = [f"j{d}" for d in range(len(nest.columns) - 1)] + ["j"]
        self.n_columns = size_of(nest.columns)
        self.form = self._form()
        self.is_cut = is_cut and self._may_cut()
        # LLVM vectorizes loops whose strides are literals.
        is_dense = all(abs(s) <= SMALL for s in nest.column_steps[-1])
        self.block = DENSE if is_dense else BLOCK
        self.is_wide = self.n_columns > self.block
        self.is_long = self.cuts_columns or nest.columns[-1] > self.block
        self._slots()
        self._extent()

    # -- decisions -----------------------------------------------------------------------------

    def how_kind(self, k):
        """Return how a reduced output is reduced, and the kind to compute it in."""
        o, e = self.outputs[k], self.formulas[k]
        return o.how, self.kind(o.how, e)

    def kind(self, how, e):
        """Return the kind in which a formula is reduced."""
        return reduced_kind(how, self.kinds.of(e))

    def _is_float_sum(self, k):
        how, kind = self.how_kind(k)
        return how in SUMS and kind == "f"

    def _form(self):
        if not self.depth and "row" not in self.modes:
            if "columns" not in self.modes:
                return "flat"
            fits = len(self.nest.columns) == 1 and self.n_columns >= NARROW
            if fits and all(
                mode not in ALL and (mode != "columns" or self._is_float_sum(k))
                for k, mode in enumerate(self.modes)
            ):
                return "tile"
        return "rows"

    def _may_cut(self):
        for k, o in enumerate(self.outputs):
            if o.mode in ("columns", *ALL) and self.form != "tile":
                if not self._is_float_sum(k):
                    return False
                if o.mode == "columns" and len(self.nest.columns) > 1:
                    return False
        return self.form != "rows" or bool(self.nest.rows)

    def _slots(self):
        """Lay out the scratch memory: sums of columns, then values that later passes reuse.

        Sums over many rows also have float64 totals, from element `totals_at` on.
        """
        columns = [k for k, mode in enumerate(self.modes) if mode == "columns"]
        self.columns = [k for k in columns if self._is_float_sum(k)]
        self.kept = self._kept()
        self.width = self.tile if self.form == "tile" else self.n_columns
        self.scratch_elements = self.width * (len(self.columns) + len(self.kept))
        self.totals_at = None
        if self.columns and size_of(self.nest.rows) > self.row_block:
            self.totals_at = -(-self.scratch_elements // 16) * 16
            self.scratch_elements = self.totals_at + 2 * self.width * len(self.columns)
        self.partial = []
        if self.is_cut and self.form != "tile":
            rows = size_of(self.nest.rows)
            for k, o in enumerate(self.outputs):
                if k in self.columns:
                    count = rows if o.how == "mean" else 1
                    self.partial.append(("columns", k, self.columns.index(k), count))
                elif o.mode in ALL:
                    self.partial.append(("all", k, 0, self._count(k)))

    def _count(self, k):
        """Return the divisor of output k, reduced to one number: 1 unless it is a mean."""
        if self.outputs[k].how != "mean":
            return 1
        n = size_of(self.nest.rows)
        return n * self.n_columns if self.outputs[k].mode == "all" else n

    def _kept(self):
        """Return the costly values per element that several passes need; one pass computes them."""
        costly, seen = [], set()
        for level in range(1, self.depth + 2):
            roots = [e.args[0] for e in reductions(self.formulas, level)]
            roots = roots if level <= self.depth else self.formulas
            used = elements(roots)
            costly += [e for e in used if e.op in OWN and e in seen and e not in costly]
            seen |= set(used)
        return costly

    @property
    def row_block(self):
        """Return how many rows one accumulator adds; narrow rows have a vector of accumulators."""
        is_narrow = self.n_columns < NARROW and len(self.nest.rows) == 1
        return DENSE if is_narrow and not self.depth else BLOCK

    @property
    def tile(self):
        """Return the number of columns in a tile."""
        if not self.is_cut:
            return TILE
        return max(16, min(TILE, -(-self.n_columns // 32) * 16))

    def _extent(self):
        rows = self.nest.rows
        if self.form == "tile":
            self.extent, self.grain = -(-self.n_columns // self.tile), 1
        elif rows:
            self.extent, self.grain = rows[0], 1
        elif self.form == "flat" and len(self.nest.columns) == 1:
            self.extent, self.grain = self.nest.columns[0], 64
        else:
            self.extent, self.grain = 1, 0
        if not self.is_cut:
            self.grain = 0

    @property
    def cuts_columns(self):
        """Return whether the range [b, e) is a range of columns."""
        return self.form == "flat" and not self.nest.rows and len(self.nest.columns) == 1

    # -- lines ---------------------------------------------------------------------------------

    def index(self, numbers, name, steps, k, loops):
        """Return the text of operand k's index along some loops, such as `i0 * 512 + i1`."""
        parts = []
        for loop, step in zip(loops, steps, strict=True):
            s = step[k]
            if s:
                text = numbers.stride(f"{loop}_{name}", s)
                parts.append(loop if s == 1 else f"{loop} * {text}")
        return " + ".join(parts)

    def name_sizes(self, numbers):
        """Create the loops. Ends are literals or arguments; the split axis runs over [b, e)."""
        self.row_loops, self._columns = (
            [
                (i, "b", "e") if d == 0 and is_cut else (i, "0", numbers.size(f"n_{i}", n))
                for d, (i, n) in enumerate(zip(names, sizes, strict=True))
            ]
            for names, sizes, is_cut in (
                (self.row_names, self.nest.rows, self.form != "tile"),
                (self.column_names, self.nest.columns, self.cuts_columns),
            )
        )

    def column_loops(self):
        """Return the loops over all columns, or over the columns of a tile."""
        return [("j", "low", "high")] if self.form == "tile" else self._columns

    def flat_column(self):
        """Return the text of the flat index along the row."""
        text = self.column_names[0]
        for name, _, size in self._columns[1:]:
            text = f"({text}) * {size} + {name}"
        return text

    def emit(self, emitter, targets):
        """Return the kernel's lines. targets: the Operand of each output, None for partial sums."""
        self.emitter, self.targets, self.lines = emitter, targets, []
        self.real = emitter.real
        whole = [k for k, mode in enumerate(self.modes) if mode in ALL]
        for k in whole:
            start = start_value(*self.how_kind(k), self.real)
            self.line(1, f"acc{k} = {'F8(0)' if self._is_float_sum(k) else start}")
        if self.totals_at is not None:
            emitter.includes.add("sums")
            self.line(1, f"totals = doubles_at(scratch, I8({self.totals_at}))")
            self.has_totals = True
        self.sums = [("scratch", slot * self.width) for slot in range(len(self.columns))]
        if self.form == "tile":
            self._emit_tile()
        else:
            self._emit_rows()
        for k in whole:
            if self.is_cut:
                self.line(1, f"a{k}[0] = acc{k}")
            else:
                mean = f" / F8({self._count(k)})" if self.outputs[k].how == "mean" else ""
                self._store(1, self.targets[k], f"acc{k}{mean}")
        return self.lines

    def _store(self, indent, target, text):
        self.line(indent, f"{target.name}[{target.index}] = {stored_as(text, target.kind)}")

    def _emit_tile(self):
        """Emit the loop over tiles: clear the sums, add all rows, store the sums."""
        width, n = self.tile, self._columns[0][2]
        self.line(1, "for tile in range(b, e):")
        self.line(2, f"low = tile * {width}")
        self.line(2, f"high = min(low + {width}, {n})")
        self.clear(2, "high - low")
        self.output_pass(self._loop_rows(2, "high - low"))
        self.join_totals(2, "high - low")
        for slot, k in enumerate(self.columns):
            deep = self.heads(2, self.column_loops())
            self._store(deep, self.targets[k], self._summed(k, f"{slot * width} + j - low"))

    def _loop_rows(self, indent, count):
        """Emit the heads of the row loops; return the indent inside them."""
        if not self.has_totals:
            return self.heads(indent, self.row_loops)
        indent = self.blocks_of_rows(indent, self.row_loops, count)
        return self.heads(indent, [(self.row_names[-1], "start", "stop")])

    def _summed(self, k, place):
        """Return the text of column output k, a sum or mean over all rows."""
        name, kind = ("scratch", self.real) if self.totals_at is None else ("totals", "F8")
        text = f"{name}[{place}]"
        if self.outputs[k].how == "mean":
            text = f"{text} / {kind}({size_of(self.nest.rows)})"
        return text

    def _emit_rows(self):
        n = self.n_columns
        self.clear(1, n)
        for k, mode in enumerate(self.modes):  # all but float sums accumulate in the output
            if mode == "columns" and k not in self.columns:
                t = self.targets[k]
                start = start_value(*self.how_kind(k), self.real, t.kind)
                self._store(self.heads(1, self._columns), t, start)
        deep = self._loop_rows(1, n)
        for level in range(1, self.depth + 1):
            self.reduction_pass(deep, level)
        self.output_pass(deep)
        self.join_totals(1, n)
        if not self.is_cut:
            for slot, k in enumerate(self.columns):
                text = self._summed(k, f"{slot * n} + {self.flat_column()}")
                self._store(self.heads(1, self._columns), self.targets[k], text)

    def divided(self, e, kind):
        """Return the text that turns a sum into a mean."""
        return f" / {kind}({self.n_columns})"

    def keep(self):
        """Return lines that store the costly values of this pass for later passes."""
        lines = []
        for slot, e in enumerate(self.kept, len(self.columns)):
            if e in self.emitter.names and e not in self.emitter.saved:
                place = f"scratch[{slot * self.n_columns} + {self.flat_column()}]"
                lines.append(f"{place} = {self.emitter.names[e]}")
                self.emitter.saved[e] = place
        return lines

    def whole_step(self, k, e, sums, after):
        """Add output k's step: over all elements to `sums`, over all rows to `after`."""
        how, kind = self.how_kind(k)
        value, wide = self.emitter.value(e, kind), self._is_float_sum(k)
        if self.modes[k] == "all":
            sums.append(Gathering(f"acc{k}", how, value, kind, wide))
        else:
            value = f"F8({value})" if wide else value
            after.append(f"acc{k} = {self.step(how, f'acc{k}', value, kind)}")

    def column_step(self, k, e, target):
        """Return the line for one step of a reduction over the rows."""
        how, kind = self.how_kind(k)
        value = self.emitter.value(e, kind)
        if k in self.columns:
            column = "j - low" if self.form == "tile" else self.flat_column()
            place = f"scratch[{self.columns.index(k) * self.width} + {column}]"
            return f"{place} = {gathered('sum', place, value, 'f')}"
        place = f"{target.name}[{target.index}]"
        load = f"({place} != U1(0))" if target.kind.kind == "b" else place
        if not value.isidentifier():
            name = self.emitter.new_name()
            self.emitter.lines.append(f"{name} = {value}")
            value = name
        name = self.emitter.new_name()
        text = stored_as(self.step(how, name, value, kind, combine), target.kind)
        return f"{name} = {load}; {place} = {text}"
