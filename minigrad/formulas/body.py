"""The loops of a kernel: passes over the columns of each row, sums over rows, ranges."""

from minigrad.array.layout import size_of
from minigrad.formulas.codegen import combine, gathered, start_value, stored_as
from minigrad.formulas.emit import reductions
from minigrad.formulas.form import ALL, SUMS, Form, kind_of


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
        if self.totals_at is not None:
            emitter.includes.add("sums")
            self.line(1, f"totals = doubles_at(scratch, I8({self.totals_at}))")
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
            how, _ = self.how_kind(k)
            if self.is_cut:
                self.line(1, f"a{k}[0] = acc{k}")
                continue
            text = f"acc{k}"
            if how == "mean":
                text = f"acc{k} / F8({self._count(k)})"
            t = self.targets[k]
            self.line(1, f"{t.name}[{t.index}] = {stored_as(text, t.kind)}")

    def _emit_tile(self):
        """For each tile: sums start at 0, all rows are added, the sums are stored."""
        width, n = self.tile, self.column_sizes[0]
        self.line(1, "for tile in range(b, e):")
        self.line(2, f"low = tile * {width}")
        self.line(2, f"high = min(low + {width}, {n})")
        self._clear(2, "high - low")
        deep = self._loop_rows(2, "high - low")
        self._outputs(deep, lambda indent: self._loop_tile(indent), width)
        self._add_to_totals(2, "high - low")
        for slot, k in enumerate(self.columns):
            self._store_column(2, k, "range(low, high)", f"{slot * width} + j - low")

    def _clear(self, indent, count):
        """Sums over rows begin with 0, in the first `count` columns."""
        names = ["scratch"] if self.totals_at is None else ["scratch", "totals"]
        for slot in range(len(self.columns)):
            for name in names:
                kind = self.real if name == "scratch" else "F8"
                place = f"{name}[{slot * self.width} + j]"
                self.line(indent, f"for j in range({count}): {place} = {kind}(0)")
        if self.totals_at is not None:
            self.line(indent, f"left = {self.row_block}")

    def _loop_rows(self, indent, count):
        """Heads of the loops over the rows; the indent within.

        With totals the last one goes over blocks of at most `row_block` rows. Before more than that
        have come together, the sums of `count` columns join their totals.
        """
        spans = ["0, " + size for size in self.row_sizes]
        if self.form != "tile" and spans:
            spans[0] = "b, e"
        for d, (name, span) in enumerate(zip(self.row_names, spans, strict=True)):
            if d == len(spans) - 1 and self.totals_at is not None:
                self.line(indent, f"for start in range({span}, {self.row_block}):")
                indent += 1
                self.line(indent, f"stop = min(start + {self.row_block}, {span.split(', ')[1]})")
                self.line(indent, "if left < stop - start:")
                self._add_to_totals(indent + 1, count)
                self.line(indent + 1, f"left = {self.row_block}")
                self.line(indent, "left -= stop - start")
                span = "start, stop"
            self.line(indent, f"for {name} in range({span.removeprefix('0, ')}):")
            indent += 1
        return indent

    def _add_to_totals(self, indent, count):
        """The sums of so many columns join their totals and begin anew."""
        if self.totals_at is None:
            return
        for slot in range(len(self.columns)):
            place = f"[{slot * self.width} + j]"
            self.line(indent, f"for j in range({count}):")
            self.line(indent + 1, f"totals{place} += F8(scratch{place})")
            self.line(indent + 1, f"scratch{place} = {self.real}(0)")

    def _loop_tile(self, indent):
        self.line(indent, "for j in range(low, high):")
        return indent + 1

    def _store_column(self, indent, k, span, place):
        t = self.targets[k]
        self.line(indent, f"for j in {span}:")
        text = stored_as(self._summed(k, place), t.kind)
        self.line(indent + 1, f"{t.name}[{t.index}] = {text}")

    def _summed(self, k, place):
        """A sum over all rows, or their mean."""
        name, kind = ("scratch", self.real) if self.totals_at is None else ("totals", "F8")
        text = f"{name}[{place}]"
        if self.outputs[k].how == "mean":
            text = f"{text} / {kind}({size_of(self.nest.rows)})"
        return text

    def _emit_rows(self):
        n = self.n_columns
        self._clear(1, n)
        self._start_direct_columns()
        deep = self._loop_rows(1, n)
        for level in range(1, self.depth + 1):
            self._reduce(deep, level)
        self._outputs(deep, lambda indent: self._loop_columns(indent), n)
        self._add_to_totals(1, n)
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
                start = start_value(how, kind, self.real, t.kind.name)
                self.line(deep, f"{t.name}[{t.index}] = {stored_as(start, t.kind)}")

    def _store_columns(self, slot, k):
        t = self.targets[k]
        deep = self._loop_columns(1)
        text = self._summed(k, f"{slot * self.n_columns} + {self.flat_column()}")
        self.line(deep, f"{t.name}[{t.index}] = {stored_as(text, t.kind)}")

    def _loop_columns(self, indent):
        """Heads of the loops over the columns."""
        for d, (name, size) in enumerate(zip(self.column_names, self.column_sizes, strict=True)):
            span = "b, e" if d == 0 and self.cuts_columns else size
            self.line(indent, f"for {name} in range({span}):")
            indent += 1
        return indent

    def _summed_loop(self, indent, lines, sums):
        """A loop over the columns that also reduces: sums = [(name, how, value, kind, wide)].

        Wide sums add up in the kernel's type for a block of elements at most, then in float64.
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
        is_long = self.cuts_columns or self.nest.columns[-1] > self.block
        if wide and is_long:
            self.line(indent, f"for block in range({low}, {high}, {self.block}):")
            low, high = "block", f"min(block + {self.block}, {high})"
            indent += 1
            base = indent
        for s in wide:
            self.line(base, f"part_{s[0]} = {start_value('sum', 'f', self.real)}")
        self.line(base, f"for {name} in range({low}, {high}):")
        for text in lines:
            self.line(base + 1, text)
        for total, how, value, kind, is_wide in sums:
            target = f"part_{total}" if is_wide else total
            self.line(base + 1, f"{target} = {_combined(how, target, value, kind)}")
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
            kind = kind_of(self.kinds, how, e.args[0])
            value = emitter.value(e.args[0], kind)
            wide = how in SUMS and kind == "f" and self.n_columns > self.block
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
        self._summed_loop(indent, [*emitter.lines, *keeps], sums)
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
                stores.append(self._column_step(k, e, t, width))
            else:
                how, kind = self.how_kind(k)
                value = emitter.value(e, kind)
                wide = how in SUMS and kind == "f"
                if o.mode == "all":
                    sums.append((f"acc{k}", how, value, kind, wide))
                else:
                    value = f"F8({value})" if wide else value
                    after.append(f"acc{k} = {_combined(how, f'acc{k}', value, kind)}")
        for text in emitter.row:
            self.line(indent, text)
        if sums:
            self._summed_loop(indent, [*emitter.lines, *stores], sums)
        elif stores:
            deep = head(indent)
            for text in (*emitter.lines, *stores):
                self.line(deep, text)
        for text in (*rows, *after):
            self.line(indent, text)

    def _column_step(self, k, e, t, width):
        """One step of a reduction over the rows."""
        how, kind = self.how_kind(k)
        value = self.emitter.value(e, kind)
        if k in self.columns:
            column = "j - low" if self.form == "tile" else self.flat_column()
            place = f"scratch[{self.columns.index(k) * width} + {column}]"
            return f"{place} = {gathered('sum', place, value, 'f')}"
        place = f"{t.name}[{t.index}]"
        load = f"({place} != U1(0))" if t.kind.kind == "b" else place
        if not value.isidentifier():
            name = self.emitter.new_name()
            self.emitter.lines.append(f"{name} = {value}")
            value = name
        name = self.emitter.new_name()
        text = stored_as(combine(how, name, value, kind), t.kind)
        return f"{name} = {load}; {place} = {text}"


def _combined(how, total, value, kind):
    """One step of a reduction; the largest and smallest by an instruction that keeps NaN."""
    if kind == "f" and how in ("max", "min"):
        return f"{'largest_of' if how == 'max' else 'smallest_of'}({total}, {value})"
    return gathered(how, total, value, kind)
