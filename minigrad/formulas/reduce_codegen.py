"""Writes the kernel of a reduction: kept loops, reduced loops, perhaps a kept loop innermost."""

import re

from minigrad.array.dtypes import int64
from minigrad.formulas.codegen import EagerKernel
from minigrad.formulas.row_loops import (
    SUMS,
    Gathering,
    combine,
    reduced_kind,
    start_value,
    stored_as,
)
from minigrad.formulas.sums import BLOCK, COLUMNS, DENSE

FOUR = 4  # rows that are added before their sum is added to a longer one


def reduce_text(program, how, kinds, n_kept, n_reduced, form, inner):
    """Return the kernel of a reduction: kept loops, reduced loops, perhaps one kept innermost.

    form: where partial results are kept. 'register': in a variable; no kept loop is innermost. In
    the other forms one is. 'output': in the row of outputs. 'columns': on the stack, some columns
    at a time, for sums of many floats. Sums of many floats move to float64 block by block
    (sums.py).
    """
    kernel = _Reduction(program, how, kinds, n_kept, n_reduced, form, inner)
    kernel.write(form)
    return kernel.text()


class _Reduction(EagerKernel):
    """Writes one reduction."""

    def __init__(self, program, how, kinds, n_kept, n_reduced, form, inner):
        self.how = how
        self.kept, self.reduced = (
            [f"{letter}{d}" for d in range(n)] for letter, n in (("i", n_kept), ("r", n_reduced))
        )
        last = "j" if form != "register" else None
        loops = [*self.kept, *self.reduced, *([last] if last else [])]
        along = {"out0": (self.kept, last)}
        super().__init__(program, kinds, loops[:-1], loops[-1], inner, along=along)
        is_dense = 2 not in inner[:-1]
        self.emitter.start_pass()
        (expression,), (out,) = self.formulas, self.targets
        kind = reduced_kind(how, self.emitter.kind(expression))
        self.result, self.dtype, self.reduced_kind = f"out0[{out.index}]", out.kind, kind
        self.value = self.emitter.value(expression, kind)
        self.is_wide = self.is_long = how in SUMS and kind == "f"
        self.block = DENSE if is_dense else BLOCK

    def write(self, form):
        """Write the whole kernel."""
        if form == "columns":
            self.emitter.includes.add("sums")
            own = f"columns_{self.emitter.real.lower()}()"
            self.line(1, f"parts, totals = {own}, columns_f8()")
        base = self._over(1, self.kept)
        {"register": self._register, "output": self._output, "columns": self._columns}[form](base)

    def _over(self, indent, names):
        """Emit heads of full loops over some axes; return the indent inside them."""
        return self.heads(indent, [(i, "0", f"n_{i}") for i in names])

    def column_loops(self):
        """Return the innermost reduced loop."""
        last = self.reduced[-1]
        return [(last, "0", f"n_{last}")]

    def _stored(self, text):
        """Return the text of a combined value as an element of the output."""
        if self.how == "mean":
            text = f"{text} / F8({' * '.join(f'n_{i}' for i in self.reduced) or '1'})"
        return stored_as(text, self.dtype)

    def _element(self):
        """Return (lines for one element, a name for its value)."""
        if self.value.isidentifier():
            return self.emitter.lines, self.value
        return [*self.emitter.lines, f"value = {self.value}"], "value"

    def _fours(self, deep, lines, write):
        """Emit a block of the last reduced loop, FOUR steps at a time, then the rest.

        lines: the lines of one element; each step gets its own copies of the names that they
        assign. write(deep, steps) writes the body; a step maps the text of an element to its own.
        """
        last, names = self.reduced[-1], [line.split(" = ")[0] for line in lines]

        def step_ahead(k):
            def text_of(text):
                text = re.sub(rf"\b({'|'.join(names) or '$.'})\b", rf"\1_{k}", text)
                return re.sub(rf"\b{last}\b", f"({last} + {k})", text) if k else text

            return text_of

        self.line(deep, f"{last} = start")
        for count in (FOUR, 1):
            self.line(deep, f"while {last} + {count} <= stop:")
            write(deep + 1, [step_ahead(k) for k in range(count)])
            self.line(deep + 1, f"{last} += {count}")

    def _register(self, base):
        emitter = self.emitter
        start = start_value(self.how, self.reduced_kind, emitter.real)
        self.line(base, f"total = {'F8(0)' if self.is_wide else start}")
        deep = self._over(base, self.reduced[:-1])
        self.all_lines(deep, emitter.row)
        if self.block == DENSE or not self.is_wide:
            lines, value = self._element()
            self.gather(
                deep, lines, [Gathering("total", self.how, value, self.reduced_kind, self.is_wide)]
            )
        else:  # LLVM would chain the additions, and each would wait for the one before
            parts = [f"part{k}" for k in range(FOUR)]

            def write(deep, steps):
                for part, text_of in zip(parts, steps, strict=False):
                    self.all_lines(deep, map(text_of, emitter.lines))
                    self.line(deep, f"{part} += {text_of(self.value)}")

            _, low, high = self.column_loops()[0]
            deep = self.block_heads(deep, low, high, BLOCK)
            self.line(deep, f"{' = '.join(parts)} = {start}")
            self._fours(deep, emitter.lines, write)
            self.line(deep, f"total += {' + '.join(parts)}")
        self.line(base, f"{self.result} = {self._stored('total')}")

    def _output(self, base):
        kind, dtype = self.reduced_kind, self.dtype
        small = dtype if kind == "i" and dtype.kind == "i" else int64
        start = start_value(self.how, kind, self.emitter.real, small)
        self.line(self._over(base, "j"), f"{self.result} = {stored_as(start, dtype)}")
        load = f"{self.result} != U1(0)" if dtype.kind == "b" else self.result
        lines, value = self._element()

        def write(deep, steps):
            for text_of in steps:
                self.all_lines(deep, map(text_of, self.emitter.row))
            deep = self._over(deep, "j")
            self.line(deep, f"before = {load}")
            for text_of in steps:
                self.all_lines(deep, map(text_of, lines))
                joined = self.step(self.how, "before", text_of(value), kind, combine)
                self.line(deep, f"before = {joined}")
            self.line(deep, f"{self.result} = {stored_as('before', dtype)}")

        deep = self._over(base, self.reduced[:-1])
        self.line(deep, f"start, stop = 0, n_{self.reduced[-1]}")
        self._fours(deep, [*self.emitter.row, *lines], write)
        if self.how == "mean":
            self.line(self._over(base, "j"), f"{self.result} = {self._stored(self.result)}")

    def _columns(self, base):
        emitter = self.emitter
        self.sums, self.has_totals, self.row_block = [("parts", 0)], True, BLOCK
        self.line(base, f"for low in range(0, n_j, {COLUMNS}):")
        base += 1
        self.line(base, f"high = min(low + {COLUMNS}, n_j)")
        self.clear(base, "high - low")
        loops = [(i, "0", f"n_{i}") for i in self.reduced]
        deep = self.blocks_of_rows(base, loops, "high - low")
        head = ("j", "low", "high")

        def write(deep, steps):
            for text_of in steps:
                self.all_lines(deep, map(text_of, emitter.row))
            deep = self.heads(deep, [head])
            for text_of in steps:
                self.all_lines(deep, map(text_of, emitter.lines))
            value = " + ".join(text_of(self.value) for text_of in steps)
            self.line(deep, f"parts[j - low] += {value}")

        self._fours(deep, [*emitter.row, *emitter.lines], write)
        self.join_totals(base, "high - low")
        self.line(self.heads(base, [head]), f"{self.result} = {self._stored('totals[j - low]')}")
