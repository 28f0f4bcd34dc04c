"""The loops of a compiled step's kernel: ranges, and where sums over rows wait."""

from minigrad.array.layout import size_of
from minigrad.formulas.form import ALL, Form
from minigrad.formulas.loop import SUMS, Gathering, combine, gathered, start_value, stored_as


class Body(Form):
    """The lines of one kernel, by its form."""

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
        """The loops, with sizes as literals or arguments; of the axis that is cut the range."""
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
        """The loops over the columns, within a tile over its own."""
        return [("j", "low", "high")] if self.form == "tile" else self._columns

    def flat_column(self):
        """The index along the row as one number."""
        text = self.column_names[0]
        for name, _, size in self._columns[1:]:
            text = f"({text}) * {size} + {name}"
        return text

    def emit(self, emitter, targets):
        """The lines of the kernel; targets: per output its Operand, or None if it is partial."""
        self.emitter, self.targets, self.lines = emitter, targets, []
        self.real = emitter.real
        whole = [k for k, mode in enumerate(self.modes) if mode in ALL]
        for k in whole:
            how, kind = self.how_kind(k)
            wide = how in SUMS and kind == "f"
            self.line(1, f"acc{k} = {'F8(0)' if wide else start_value(how, kind, self.real)}")
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
        """For each tile: sums start at 0, all rows are added, the sums are stored."""
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
        """Heads of the loops over the rows; the indent within."""
        if not self.has_totals:
            return self.heads(indent, self.row_loops)
        indent = self.blocks_of_rows(indent, self.row_loops, count)
        return self.heads(indent, [(self.row_names[-1], "start", "stop")])

    def _summed(self, k, place):
        """A sum over all rows, or their mean."""
        name, kind = ("scratch", self.real) if self.totals_at is None else ("totals", "F8")
        text = f"{name}[{place}]"
        if self.outputs[k].how == "mean":
            text = f"{text} / {kind}({size_of(self.nest.rows)})"
        return text

    def _emit_rows(self):
        n = self.n_columns
        self.clear(1, n)
        for k, mode in enumerate(self.modes):  # what is no float sum gathers in the output itself
            if mode == "columns" and k not in self.columns:
                t = self.targets[k]
                start = start_value(*self.how_kind(k), self.real, t.kind.name)
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
        """What makes a mean of a sum."""
        return f" / {kind}({self.n_columns})"

    def keep(self):
        """Stores costly values of this pass for those to come."""
        found = []
        for slot, e in enumerate(self.kept, len(self.columns)):
            if e in self.emitter.names and e not in self.emitter.saved:
                place = f"scratch[{slot * self.n_columns} + {self.flat_column()}]"
                found.append(f"{place} = {self.emitter.names[e]}")
                self.emitter.saved[e] = place
        return found

    def whole_step(self, k, e, sums, after):
        """A step of a reduction over everything, or over all rows."""
        how, kind = self.how_kind(k)
        value, wide = self.emitter.value(e, kind), how in SUMS and kind == "f"
        if self.modes[k] == "all":
            sums.append(Gathering(f"acc{k}", how, value, kind, wide))
        else:
            value = f"F8({value})" if wide else value
            after.append(f"acc{k} = {self.step(how, f'acc{k}', value, kind)}")

    def column_step(self, k, e, target):
        """One step of a reduction over the rows."""
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
        text = stored_as(combine(how, name, value, kind), target.kind)
        return f"{name} = {load}; {place} = {text}"

    def step(self, how, total, value, kind):
        """One step of a reduction; the largest and smallest by an instruction that keeps NaN."""
        if kind == "f" and how in ("max", "min"):
            return f"{'largest_of' if how == 'max' else 'smallest_of'}({total}, {value})"
        return gathered(how, total, value, kind)
