"""Writes a row kernel: passes over a row, one for each nesting level of row reductions."""

from minigrad.formulas.codegen import EagerKernel
from minigrad.formulas.kinds import OWN
from minigrad.formulas.row_loops import Gathering, elements, reductions


def rows_text(program, modes, kinds, inner, in_place=False, block=0):
    """Return the kernel of formulas with row reductions: one pass per nesting level, then outputs.

    Args:
        modes: for each output 'store' (every element), 'row' (one value per row) or 'columns'
            (summed over blocks of `n_b` rows; the next block's sums are one row stride further).
        inner: for each array the class of its stride along the row; 0 also for 'row' outputs.
        in_place: whether the first output is the first input.
        block: the number of elements after which a row's sum moves to float64; 0: rows are shorter.
    """
    kernel = _RowKernel(program, modes, kinds, inner, in_place)
    kernel.block, kernel.is_wide, kernel.is_long = block, block > 0, block > 0
    kernel.write(program.depth)
    return kernel.text()


class _RowKernel(EagerKernel):
    """Writes a row kernel."""

    def __init__(self, program, modes, kinds, inner, in_place):
        more = ["b"] if "columns" in modes else []
        super().__init__(program, kinds, ["i"], "j", inner, more)
        self.modes = modes
        for k, mode in enumerate(modes):
            if mode == "columns":
                t = self.targets[k]
                self.targets[k] = t._replace(index=t.index.replace("i *", "b *", 1))
        if in_place:
            self.targets[0] = self.inputs[0]
        self.kept = self._kept(program.depth, self.inputs[0].name if in_place else None)

    def write(self, depth):
        """Write the whole kernel."""
        deep, rows = 1, ("i", "0", "n_i")
        sums = [
            f"{t.name}[{t.index}] = {t.kind.text}(0)"
            for t, mode in zip(self.targets, self.modes, strict=True)
            if mode == "columns"
        ]
        if sums:
            deep = self.heads(1, [("b", "0", "(n_i + n_b - 1) // n_b")])
            self.all_lines(self.heads(deep, self.column_loops()), sums)
            rows = "i", "b * n_b", "min(b * n_b + n_b, n_i)"
        deep = self.heads(deep, [rows])
        for level in range(1, depth + 1):
            self.is_last = level == depth
            self.reduction_pass(deep, level)
        self.output_pass(deep)

    def _kept(self, depth, overwritten):
        """Return {costly value: output} for values that the last reduction and the output need.

        They are kept in the output's row, because an exponential costs far more than a load.
        overwritten: the name of the operand that is also the first output, or None.
        """
        if not depth:
            return {}
        reduced = set(elements(e.args[0] for e in reductions(self.formulas, depth)))
        kept = {}
        for e, t, mode in zip(self.formulas, self.targets, self.modes, strict=True):
            if mode == "store" and t.kind.text == self.emitter.real:
                costly = (p for p in elements([e]) if p.op in OWN and p in reduced)
                first = next(filter(self.emitter.varies, costly), None)
                if first is not None:
                    kept.setdefault(first, t)
        if any(t.name == overwritten for t in kept.values()):
            read = set(elements(self.formulas, kept)) - set(kept)
            if any(p.op == "symbol" and p.args[0] == overwritten for p in read):
                return {p: t for p, t in kept.items() if t.name != overwritten}
        return kept

    def keep(self):
        """Return lines that store values of the last reduction."""
        kept = self.kept.items() if self.is_last else ()
        return [f"{t.name}[{t.index}] = {self.emitter.names[e]}" for e, t in kept]

    def recall(self):
        """Make the last pass load the kept values."""
        emitter = self.emitter
        for e, t in self.kept.items():
            emitter.names[e] = emitter.new_name()
            emitter.lines.append(f"{emitter.names[e]} = {t.name}[{t.index}]")

    def gathering(self, how, name, value, kind):
        """Like `Loops.gathering`, but find a maximum by ints: see `order_T` in mathematics.py."""
        if how != "max":
            return super().gathering(how, name, value, kind)
        emitter = self.emitter
        emitter.include_mathematics()
        real, code = emitter.real, emitter.real.lower()
        key, best = emitter.new_name(), emitter.new_name()
        emitter.lines.append(f"{key} = order_{code}({value})")
        gathering = Gathering(best, how, key, "i", False)
        return gathering, f"order_{code}({real}(-math.inf))", f"unorder_{code}({best})"

    def divided(self, e, kind):
        """Return the text that turns a sum into a mean.

        It is a quotient, although the next pass has to wait for it: then the mean of equal numbers
        is that number, and a row of them has no deviations. A mean of products needs no such care,
        and 1 / n is computed once for all rows.
        """
        n = f"{kind}(n_j)"
        return f" * ({kind}(1) / {n})" if e.args[0].op == "mul" else f" / {n}"

    def column_step(self, k, e, target):
        """Return the line that adds to the sum over rows, which is kept in its output."""
        return f"{target.name}[{target.index}] += {self.emitter.stored(e, target.kind)}"
