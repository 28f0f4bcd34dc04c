"""The loops of a kernel: passes over the columns of each row, sums over rows, ranges."""

from minigrad.array.layout import size_of
from minigrad.compiler.emit import reductions, visible
from minigrad.kernels.codegen import START, combine, start_value, stored_as
from minigrad.kernels.emitter import OWN

BLOCK = 4096  # elements summed in the kernel's type before a sum moves on to float64
TILE = 512  # columns that are summed over all rows at once
SUMS = ("sum", "mean")
ALL = ("all", "total")  # of elements, of rows: one number for the whole domain


class Body:
    """Lines of one kernel.

    Three forms: `flat` (every element on its own, and sums of everything), `tile` (sums of columns
    and nothing along the rows: a few columns at a time over all rows) and `rows` (row by row, one
    pass for each nesting level of row reductions, then the outputs).
    """

    def __init__(self, nest, formulas, outputs, kinds, is_cut):
        self.nest, self.formulas, self.outputs, self.kinds = nest, formulas, outputs, kinds
        self.depth = max((e.depth for e in formulas), default=0)
        self.modes = {o.mode for o in outputs}
        self.row_names = [f"i{d}" for d in range(len(nest.rows))]
        self.column_names = [f"j{d}" for d in range(len(nest.columns) - 1)] + ["j"]
        self.n_columns = size_of(nest.columns)
        self.form = self._form()
        self.is_cut = is_cut and self._may_cut()
        self._slots()
        self._extent()

    # -- decisions -----------------------------------------------------------------------------

    def how_kind(self, k):
        """(how, kind in which it is computed) of a reduced output."""
        o, e = self.outputs[k], self.formulas[k]
        return o.how, _kind(self.kinds, o.how, e)

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
                self._scratched(k) for k, o in enumerate(self.outputs) if o.mode == "columns"
            )
            fits = len(self.nest.columns) == 1 and self.n_columns >= 32
            if scratched and fits and not self.modes & {*ALL}:
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
        """Places in the scratch memory: sums of columns, then values kept from pass to pass."""
        self.columns = [k for k in range(len(self.outputs)) if self._scratched(k)]
        self.kept = self._kept()
        width = self.tile if self.form == "tile" else self.n_columns
        self.scratch_elements = width * (len(self.columns) + len(self.kept))
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
            for e in visible(roots, level):
                if e.op in OWN and e not in found and e in seen:
                    found.append(e)
            seen |= set(visible(roots, level))
        return found

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

    # -- text ----------------------------------------------------------------------------------

    def index(self, numbers, name, steps, k, loops):
        """`i0 * 512 + i1` for one operand along some loops."""
        parts = []
        for loop, step in zip(loops, steps, strict=True):
            s = step[k]
            if s:
                text = numbers.stride(f"{loop}_{name}", s)
                parts.append(loop if s == 1 else f"{loop} * {text}")
        return " + ".join(parts)

    def name_sizes(self, numbers):
        """Texts of the sizes: literals or arguments; of the axis that is cut, none."""
        rows, columns = self.nest.rows, self.nest.columns
        is_first = self.form != "tile"
        self.row_sizes = [
            "" if is_first and d == 0 else numbers.size(f"n_{i}", n)
            for d, (i, n) in enumerate(zip(self.row_names, rows, strict=True))
        ]
        self.column_sizes = [
            "" if d == 0 and self.cuts_columns else numbers.size(f"n_{j}", n)
            for d, (j, n) in enumerate(zip(self.column_names, columns, strict=True))
        ]

    def flat_column(self):
        """The index along the row as one number."""
        text = self.column_names[0]
        for name, size in zip(self.column_names[1:], self.column_sizes[1:], strict=True):
            text = f"({text}) * {size} + {name}"
        return text

    def emit(self, emitter, targets):
        """The lines of the kernel; targets: per output its Operand, or None if it is partial."""
        self.emitter, self.targets, self.lines = emitter, targets, []
        self.real = emitter.real
        self._start_accumulators()
        if self.form == "tile":
            self._emit_tile()
        else:
            self._emit_rows()
        self._finish_accumulators()
        return self.lines

    def line(self, indent, text):
        """Adds a line."""
        self.lines.append("    " * indent + text)

    def _start_accumulators(self):
        for k, o in enumerate(self.outputs):
            if o.mode in ALL:
                how, kind = self.how_kind(k)
                wide = how in SUMS and kind == "f"
                self.line(1, f"acc{k} = {'F8(0)' if wide else start_value(how, kind, self.real)}")

    def _finish_accumulators(self):
        for k, o in enumerate(self.outputs):
            if o.mode not in ALL:
                continue
            how, kind = self.how_kind(k)
            if self.is_cut:
                self.line(1, f"a{k}[0] = acc{k}")
                continue
            text = f"acc{k}"
            if how == "mean":
                text = f"acc{k} / F8({self._count(k)})"
            t = self.targets[k]
            self.line(1, f"{t.name}[{t.index}] = {stored_as(text, t.kind, kind)}")

    def _emit_tile(self):
        """For each tile: sums start at 0, all rows are added, the sums are stored."""
        width, n = self.tile, self.column_sizes[0]
        self.line(1, "for tile in range(b, e):")
        self.line(2, f"low = tile * {width}")
        self.line(2, f"high = min(low + {width}, {n})")
        for slot in range(len(self.columns)):
            self.line(
                2, f"for j in range(high - low): scratch[{slot * width} + j] = {self.real}(0)"
            )
        deep = 2
        for name, size in zip(self.row_names, self.row_sizes, strict=True):
            self.line(deep, f"for {name} in range({size}):")
            deep += 1
        self._outputs(deep, lambda indent: self._loop_tile(indent), width)
        for slot, k in enumerate(self.columns):
            self._store_column(2, slot, k, "range(low, high)", f"{slot * width} + j - low")

    def _loop_tile(self, indent):
        self.line(indent, "for j in range(low, high):")
        return indent + 1

    def _store_column(self, indent, slot, k, span, place):
        t, count = self.targets[k], size_of(self.nest.rows)
        text = f"scratch[{place}]"
        if self.outputs[k].how == "mean":
            text = f"{text} / {self.real}({count})"
        self.line(indent, f"for j in {span}:")
        self.line(indent + 1, f"{t.name}[{t.index}] = {stored_as(text, t.kind, 'f')}")

    def _emit_rows(self):
        n = self.n_columns
        for slot in range(len(self.columns)):
            self.line(1, f"for j in range({n}): scratch[{slot * n} + j] = {self.real}(0)")
        self._start_direct_columns()
        deep = 1
        for d, (name, size) in enumerate(zip(self.row_names, self.row_sizes, strict=True)):
            self.line(deep, f"for {name} in range({'b, e' if d == 0 else size}):")
            deep += 1
        for level in range(1, self.depth + 1):
            self._reduce(deep, level)
        self._outputs(deep, lambda indent: self._loop_columns(indent), n)
        if not self.is_cut:
            for slot, k in enumerate(self.columns):
                self._store_columns(slot, k)

    def _start_direct_columns(self):
        """Reductions over rows that are no float sums gather in the output itself."""
        for k, o in enumerate(self.outputs):
            if o.mode == "columns" and k not in self.columns:
                how, kind = self.how_kind(k)
                t = self.targets[k]
                deep = self._loop_columns(1)
                start = start_value(how, kind, self.real)
                self.line(deep, f"{t.name}[{t.index}] = {stored_as(start, t.kind, kind)}")

    def _store_columns(self, slot, k):
        t = self.targets[k]
        deep = self._loop_columns(1)
        text = f"scratch[{slot * self.n_columns} + {self.flat_column()}]"
        if self.outputs[k].how == "mean":
            text = f"{text} / {self.real}({size_of(self.nest.rows)})"
        self.line(deep, f"{t.name}[{t.index}] = {stored_as(text, t.kind, 'f')}")

    def _loop_columns(self, indent):
        """Heads of the loops over the columns."""
        for d, (name, size) in enumerate(zip(self.column_names, self.column_sizes, strict=True)):
            span = "b, e" if d == 0 and self.cuts_columns else size
            self.line(indent, f"for {name} in range({span}):")
            indent += 1
        return indent

    def _summed_loop(self, indent, lines, sums, width):
        """A loop over the columns that also reduces: sums = [(name, how, value, kind, wide)].

        Wide sums add up in the kernel's type for BLOCK elements at most, then in float64.
        """
        wide = [s for s in sums if s[4]]
        *outer, last = zip(self.column_names, self.column_sizes, strict=True)
        for name, size in outer:
            self.line(indent, f"for {name} in range({size}):")
            indent += 1
        name, size = last
        low, high = ("b", "e") if self.cuts_columns else ("0", size)
        if self.form == "tile":
            low, high = "low", "high"
        base = indent
        is_long = self.cuts_columns or self.nest.columns[-1] > BLOCK
        if wide and is_long:
            self.line(indent, f"for block in range({low}, {high}, {BLOCK}):")
            low, high = "block", f"min(block + {BLOCK}, {high})"
            indent += 1
            base = indent
        for s in wide:
            self.line(base, f"part_{s[0]} = {start_value('sum', 'f', self.real)}")
        self.line(base, f"for {name} in range({low}, {high}):")
        for text in lines:
            self.line(base + 1, text)
        for total, how, value, kind, is_wide in sums:
            target = f"part_{total}" if is_wide else total
            self.line(base + 1, f"{target} = {_combined(how, target, value, kind, self.real)}")
        for s in wide:
            self.line(base, f"{s[0]} += F8(part_{s[0]})")
        return base + 1

    def _reduce(self, indent, level):
        """One pass over the columns: the row reductions of a nesting level."""
        emitter = self.emitter
        emitter.start_pass()
        sums, ends, starts = [], [], []
        for e in reductions(self.formulas, level):
            how, name = e.op[4:], emitter.new_name()
            kind = _kind(self.kinds, how, e.args[0])
            value = emitter.value(e.args[0], kind)
            wide = how in SUMS and kind == "f" and self.n_columns > BLOCK
            starts.append(f"{name} = {'F8(0)' if wide else start_value(how, kind, self.real)}")
            sums.append((name, how, value, kind, wide))
            if how == "mean":
                ends.append(f"{name} = {name} / {'F8' if wide else self.real}({self.n_columns})")
            if wide:
                ends.append(f"{name} = {self.real}({name})")
            emitter.row_names[e] = name
        keeps = self._keep(self.n_columns)
        for text in (*emitter.row, *starts):
            self.line(indent, text)
        self._summed_loop(indent, [*emitter.lines, *keeps], sums, self.n_columns)
        for text in ends:
            self.line(indent, text)

    def _keep(self, width):
        """Stores costly values of this pass for those to come."""
        found = []
        for slot, e in enumerate(self.kept, len(self.columns)):
            if e in self.emitter.names and e not in self.emitter.saved:
                place = f"scratch[{slot * width} + {self.flat_column()}]"
                found.append(f"{place} = {self.emitter.names[e]}")
                self.emitter.saved[e] = place
        return found

    def _outputs(self, indent, head, width):
        """The last pass: what is stored, and what is added up over rows."""
        emitter = self.emitter
        emitter.start_pass()
        stores, rows, sums, after = [], [], [], []
        for k, (o, e) in enumerate(zip(self.outputs, self.formulas, strict=True)):
            t = self.targets[k]
            if o.mode == "store":
                stores.append(f"{t.name}[{t.index}] = {emitter.stored(e, t.kind)}")
            elif o.mode == "row":
                rows.append(f"{t.name}[{t.index}] = {emitter.stored(e, t.kind)}")
            elif o.mode == "columns":
                stores.append(self._column_step(k, o, e, t, width))
            else:
                how, kind = self.how_kind(k)
                value = emitter.value(e, kind)
                wide = how in SUMS and kind == "f"
                if o.mode == "all":
                    sums.append((f"acc{k}", how, value, kind, wide))
                else:
                    value = f"F8({value})" if wide else value
                    after.append(f"acc{k} = {_combined(how, f'acc{k}', value, kind, 'F8')}")
        for text in emitter.row:
            self.line(indent, text)
        if sums:
            self._summed_loop(indent, [*emitter.lines, *stores], sums, width)
        elif stores:
            deep = head(indent)
            for text in (*emitter.lines, *stores):
                self.line(deep, text)
        for text in (*rows, *after):
            self.line(indent, text)

    def _column_step(self, k, o, e, t, width):
        """One step of a reduction over the rows."""
        how, kind = self.how_kind(k)
        value = self.emitter.value(e, kind)
        if k in self.columns:
            column = "j - low" if self.form == "tile" else self.flat_column()
            place = f"scratch[{self.columns.index(k) * width} + {column}]"
            return f"{place} = {place} + {value}"
        place = f"{t.name}[{t.index}]"
        load = f"({place} != U1(0))" if t.kind.kind == "b" else place
        if not value.isidentifier():
            name = self.emitter.new_name()
            self.emitter.lines.append(f"{name} = {value}")
            value = name
        name = self.emitter.new_name()
        text = stored_as(combine(how, name, value, kind), t.kind, kind)
        return f"{name} = {load}; {place} = {text}"


def _kind(kinds, how, e):
    """The kind in which a formula is reduced."""
    if how in ("any", "all"):
        return "b"
    if how == "mean":
        return "f"
    kind = kinds.of(e)
    return "i" if kind == "b" and how in START else kind


def _combined(how, total, value, kind, real):
    """One step of a reduction; the largest and smallest by an instruction that keeps NaN."""
    if kind == "f" and how in ("max", "min"):
        return f"{'largest_of' if how == 'max' else 'smallest_of'}({total}, {value})"
    return combine(how, total, value, kind)
