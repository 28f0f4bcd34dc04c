"""The text of a reduction: kept loops, reduced loops, and perhaps one kept loop innermost."""

import re

import numpy as np

from minigrad.formulas.codegen import (
    Kernel,
    combine,
    gathered,
    index_text,
    operand_names,
    renamed_outputs,
    start_value,
    step,
    stored_as,
)
from minigrad.formulas.emitter import Emitter, Operand, real_type
from minigrad.formulas.sums import BLOCK, COLUMNS, DENSE


def limits(dtype):
    """The smallest and the largest number of an integer dtype."""
    found = np.iinfo(dtype.numpy)
    return int(found.min), int(found.max)


FOUR = 4  # rows that are added at once: their sum joins a longer one


def reduce_text(program, how, kinds, n_kept, n_reduced, form, inner):
    """Reduces one formula: kept outer loops, reduced loops, and perhaps one kept loop innermost.

    form: where partial results live. 'register': no kept loop is innermost. Else there is one, and
    they live in the row of outputs ('output'), or, for sums of many floats, some columns at a time
    on the stack ('columns'). Sums of many floats go over to float64 block by block (sums.py).
    """
    return _Reduction(program, how, kinds, n_kept, n_reduced, form, inner).text()


class _Reduction:
    """Writes one reduction."""

    def __init__(self, program, how, kinds, n_kept, n_reduced, form, inner):
        self.kernel, self.how, self.form = Kernel(), how, form
        kernel, (names, outs) = self.kernel, operand_names(program, 1)
        everything = [*names, *outs]
        kernel.operands(everything, kinds)
        arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
        self.kept, self.reduced = (
            [f"{letter}{d}" for d in range(n)] for letter, n in (("i", n_kept), ("r", n_reduced))
        )
        keeps_inner = form != "register"
        if keeps_inner:
            loops, innermost = [*self.kept, *self.reduced], "j"
        else:
            loops, innermost = [*self.kept, *self.reduced[:-1]], self.reduced[-1]
        for i in (*loops, innermost):
            kernel.argument(f"n_{i}")
        classes = dict(zip(arrays, inner, strict=True))
        for name in arrays:
            mine = [*self.kept, "j"] if name == "out0" and keeps_inner else self.kept
            for i in mine if name == "out0" else (*loops, innermost):
                kernel.argument(step(i, name))
        where = {
            n: index_text(n, loops, innermost, classes[n])
            if n != "out0"
            else index_text(n, self.kept, "j" if keeps_inner else None, classes[n])
            for n in arrays
        }
        operands = [
            Operand(n, k, None, False)
            if isinstance(k, str)
            else Operand(n, k, where[n], n == "out0" or classes[n] != 0)
            for n, k in zip(everything, kinds, strict=True)
        ]
        self.is_dense = all(classes[n] != 2 for n in arrays if n != "out0")
        emitter = self.emitter = Emitter(operands, real_type(program, kinds))
        emitter.start_pass()
        expression, self.out = renamed_outputs(program)[0], operands[-1]
        assert not isinstance(self.out.kind, str)
        self.dtype = self.out.kind
        kind = "b" if how in ("any", "all") else emitter.kind(expression)
        if kind == "b" and how in ("sum", "mean", "prod"):
            kind = "i"
        if how == "mean":
            kind = "f"
        self.kind, self.value = kind, emitter.value(expression, kind)
        self.target = f"out0[{self.out.index}]"
        self.start = start_value(how, kind, emitter.real)

    def text(self):
        """(source text, source files it needs)."""
        if self.form == "columns":
            self.emitter.includes.add("sums")
            own = f"columns_{self.emitter.real.lower()}()"
            self.kernel.line(1, f"parts, totals = {own}, columns_f8()")
        base = self._loops(1, self.kept)
        write = {"register": self._register, "output": self._output, "columns": self._columns}
        write[self.form](base)
        return self.kernel.text(self.emitter)

    def _stored(self, text):
        """A combined value as an element of the output."""
        if self.how == "mean":
            text = f"{text} / F8({' * '.join(f'n_{i}' for i in self.reduced) or '1'})"
        return stored_as(text, self.dtype)

    def _lines(self, deep, texts):
        for text in texts:
            self.kernel.line(deep, text)

    def _loops(self, deep, names):
        """Heads of loops one within the other; the indent within."""
        for depth, i in enumerate(names):
            self.kernel.loop(deep + depth, i, f"n_{i}")
        return deep + len(names)

    def _element(self, deep, accumulator, join=gathered):
        """One element joins an accumulator."""
        self._lines(deep, self.emitter.lines)
        value = self.value
        if not value.isidentifier():
            self.kernel.line(deep, f"value = {value}")
            value = "value"
        text = join(self.how, accumulator, value, self.kind)
        self.kernel.line(deep, f"{accumulator} = {text}")

    def _blocks(self, deep, size):
        """The head of a loop over blocks [start, stop) of the last reduced loop; the indent."""
        last = self.reduced[-1]
        self.kernel.line(deep, f"for start in range(0, n_{last}, {size}):")
        self.kernel.line(deep + 1, f"stop = min(start + {size}, n_{last})")
        return deep + 1

    def _fours(self, deep, lines, write):
        """A block of the last reduced loop, FOUR steps at a time, then what is left.

        lines: those whose names each step has for itself. write(deep, steps): the body; a step is
        a function that makes its text of the text for one element.
        """
        last, names = self.reduced[-1], [line.split(" = ")[0] for line in lines]

        def step_ahead(k):
            def text_of(text):
                text = re.sub(rf"\b({'|'.join(names) or '$.'})\b", rf"\1_{k}", text)
                return re.sub(rf"\b{last}\b", f"({last} + {k})", text) if k else text

            return text_of

        self.kernel.line(deep, f"{last} = start")
        for count in (FOUR, 1):
            self.kernel.line(deep, f"while {last} + {count} <= stop:")
            write(deep + 1, [step_ahead(k) for k in range(count)])
            self.kernel.line(deep + 1, f"{last} += {count}")

    def _register(self, base):
        kernel, emitter, last = self.kernel, self.emitter, self.reduced[-1]
        wide = self.how in ("sum", "mean") and self.kind == "f"
        kernel.line(base, f"total = {'F8(0)' if wide else self.start}")
        deep = self._loops(base, self.reduced[:-1])
        self._lines(deep, emitter.row)
        if not wide:
            kernel.loop(deep, last, f"n_{last}")
            self._element(deep + 1, "total")
        elif self.is_dense:
            deep = self._blocks(deep, DENSE)
            kernel.line(deep, f"part = {self.start}")
            kernel.line(deep, f"for {last} in range(start, stop):")
            self._element(deep + 1, "part")
            kernel.line(deep, "total += part")
        else:  # LLVM would make one chain of additions, each of which waits for the one before
            parts = [f"part{k}" for k in range(FOUR)]

            def write(deep, steps):
                for part, text_of in zip(parts, steps, strict=False):
                    self._lines(deep, map(text_of, emitter.lines))
                    kernel.line(deep, f"{part} += {text_of(self.value)}")

            deep = self._blocks(deep, BLOCK)
            kernel.line(deep, f"{' = '.join(parts)} = {self.start}")
            self._fours(deep, emitter.lines, write)
            kernel.line(deep, f"total += {' + '.join(parts)}")
        kernel.line(base, f"{self.target} = {self._stored('total')}")

    def _output(self, base):
        kernel, dtype, start = self.kernel, self.dtype, self.start
        if self.kind == "i" and self.how in ("max", "min") and dtype.itemsize < 8:
            least, most = limits(dtype)  # it is stored in the output, which may be a small int
            start = f"I8({least if self.how == 'max' else most})"
        kernel.loop(base, "j", "n_j")
        kernel.line(base + 1, f"{self.target} = {stored_as(start, dtype)}")
        deep = self._loops(base, self.reduced)
        self._lines(deep, self.emitter.row)
        kernel.loop(deep, "j", "n_j")
        load = f"{self.target} != U1(0)" if dtype.kind == "b" else self.target
        kernel.line(deep + 1, f"before = {load}")
        self._element(deep + 1, "before", combine)
        kernel.line(deep + 1, f"{self.target} = {stored_as('before', dtype)}")
        if self.how == "mean":
            kernel.loop(base, "j", "n_j")
            kernel.line(base + 1, f"{self.target} = {self._stored(self.target)}")

    def _columns(self, base):
        kernel, emitter = self.kernel, self.emitter
        kernel.line(base, f"for low in range(0, n_j, {COLUMNS}):")
        base += 1
        head = "for j in range(low, high):"
        kernel.line(base, f"high = min(low + {COLUMNS}, n_j)")
        kernel.line(base, f"{head} totals[j - low] = F8(0)")
        kernel.line(base, f"{head} parts[j - low] = {self.start}")
        kernel.line(base, f"left = {BLOCK}")
        deep = self._blocks(self._loops(base, self.reduced[:-1]), BLOCK)
        kernel.line(deep, "if left < stop - start:")
        kernel.line(deep + 1, f"{head} totals[j - low] += F8(parts[j - low])")
        kernel.line(deep + 1, f"{head} parts[j - low] = {self.start}")
        kernel.line(deep + 1, f"left = {BLOCK}")
        kernel.line(deep, "left -= stop - start")

        def write(deep, steps):
            for text_of in steps:
                self._lines(deep, map(text_of, emitter.row))
            kernel.line(deep, head)
            for text_of in steps:
                self._lines(deep + 1, map(text_of, emitter.lines))
            value = " + ".join(text_of(self.value) for text_of in steps)
            kernel.line(deep + 1, f"parts[j - low] += {value}")

        self._fours(deep, [*emitter.row, *emitter.lines], write)
        kernel.line(base, f"{head} totals[j - low] += F8(parts[j - low])")
        kernel.line(base, head)
        kernel.line(base + 1, f"{self.target} = {self._stored('totals[j - low]')}")
