"""How a kernel loops: which of three forms, what it keeps in scratch memory, how it is cut."""

from minigrad.array.layout import size_of
from minigrad.formulas.emit import elements, reductions
from minigrad.formulas.kinds import OWN
from minigrad.formulas.loop import SUMS, Loops, reduced_kind
from minigrad.formulas.sums import BLOCK, DENSE

NARROW = 32  # columns below which LLVM makes vectors of several rows
SMALL = 64  # sizes and strides up to this stand in the text
TILE = 512  # columns that are summed over all rows at once
ALL = ("all", "total")  # of elements, of rows: one number for the whole domain


class Form(Loops):
    """What is decided before a kernel is written.

    Three forms: `flat` (every element on its own, and sums of everything), `tile` (sums of columns
    and nothing along the rows: a few columns at a time over all rows) and `rows` (row by row, one
    pass for each nesting level of row reductions, then the outputs).
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
        # LLVM makes vectors of loops with strides that stand in the text.
        is_dense = all(abs(s) <= SMALL for s in nest.column_steps[-1])
        self.block = DENSE if is_dense else BLOCK
        self.is_wide = self.n_columns > self.block
        self.is_long = self.cuts_columns or nest.columns[-1] > self.block
        self._slots()
        self._extent()

    # -- decisions -----------------------------------------------------------------------------

    def how_kind(self, k):
        """(how, kind in which it is computed) of a reduced output."""
        o, e = self.outputs[k], self.formulas[k]
        return o.how, self.kind(o.how, e)

    def kind(self, how, e):
        """The kind in which a formula is reduced."""
        return reduced_kind(how, self.kinds.of(e))

    def _scratched(self, k):
        """Whether an output is a sum of columns that is kept in scratch memory."""
        if self.outputs[k].mode != "columns":
            return False
        how, kind = self.how_kind(k)
        return how in SUMS and kind == "f"

    def _form(self):
        if not self.depth and "row" not in self.modes:
            if "columns" not in self.modes:
                return "flat"
            scratched = all(
                self._scratched(k) for k, mode in enumerate(self.modes) if mode == "columns"
            )
            fits = len(self.nest.columns) == 1 and self.n_columns >= NARROW
            if scratched and fits and not any(mode in ALL for mode in self.modes):
                return "tile"
        return "rows"

    def _may_cut(self):
        for k, o in enumerate(self.outputs):
            if o.mode in ("columns", *ALL) and self.form != "tile":
                how, kind = self.how_kind(k)
                if how not in SUMS or kind != "f":
                    return False
                if o.mode == "columns" and len(self.nest.columns) > 1:
                    return False
        return self.form != "rows" or bool(self.nest.rows)

    def _slots(self):
        """Places in the scratch memory: sums of columns, then values kept from pass to pass.

        Behind them, for sums of many rows, float64 totals: at element `totals_at`, else None.
        """
        self.columns = [k for k in range(len(self.outputs)) if self._scratched(k)]
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
        """What the sum of everything is divided by."""
        if self.outputs[k].how != "mean":
            return 1
        n = size_of(self.nest.rows)
        return n * self.n_columns if self.outputs[k].mode == "all" else n

    def _kept(self):
        """Costly functions of an element that two passes need: computed once."""
        found, seen = [], set()
        for level in range(1, self.depth + 2):
            roots = [e.args[0] for e in reductions(self.formulas, level)]
            roots = roots if level <= self.depth else self.formulas
            used = elements(roots)
            found += [e for e in used if e.op in OWN and e in seen and e not in found]
            seen |= set(used)
        return found

    @property
    def row_block(self):
        """Rows that one accumulator of the kernel's type takes; of few columns, its vector."""
        is_narrow = self.n_columns < NARROW and len(self.nest.rows) == 1
        return DENSE if is_narrow and not self.depth else BLOCK

    @property
    def tile(self):
        """Columns of a tile."""
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
        """Whether the range [b, e) is one of columns."""
        return self.form == "flat" and not self.nest.rows and len(self.nest.columns) == 1
