"""The text of a row kernel: passes over a row, one per nesting level of row reductions."""

from minigrad.formulas.codegen import (
    Kernel,
    gathered,
    index_text,
    operand_names,
    renamed_outputs,
    step,
)
from minigrad.formulas.emitter import TYPE_OF, Emitter, Operand, real_type
from minigrad.formulas.expression import ROW_REDUCTIONS, Expression
from minigrad.formulas.kinds import OWN


def rows_text(program, modes, kinds, inner, in_place=False, block=0):
    """Formulas with row reductions: passes over a row, one per nesting level, then the outputs.

    Args:
        modes: per output 'store' (every element), 'row' (one value a row) or 'columns' (summed over
            the rows: one sum for every `n_b` of them, a step of the rows' loop apart).
        inner: per array the class of its stride along the row; 0 also for 'row' outputs.
        in_place: whether the first output is the first input.
        block: elements of a row after which a sum goes over to float64; 0: rows are shorter.
    """
    kernel, (names, outs) = Kernel(), operand_names(program, len(program.outputs))
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    has_columns = "columns" in modes
    for size in ("n_i", "n_j", *(["n_b"] if has_columns else [])):
        kernel.argument(size)
    classes = dict(zip(arrays, inner, strict=True))
    for name in arrays:
        for loop in "ij":
            kernel.argument(step(loop, name))
    mode_of = dict(zip(outs, modes, strict=True))
    operands = []
    for n, k in zip(everything, kinds, strict=True):
        if isinstance(k, str):
            operands.append(Operand(n, k, None, False))
        else:
            place = index_text(n, ["i"], "j", classes[n])
            if mode_of.get(n) == "columns":
                place = place.replace("i *", "b *", 1)
            operands.append(Operand(n, k, place, classes[n] != 0))
    emitter = Emitter(operands, real_type(program, kinds))
    if in_place:
        operands[len(names)] = operands[0]
    results = [
        (e, o, mode)
        for e, o, mode in zip(renamed_outputs(program), operands[len(names) :], modes, strict=True)
    ]
    kept = _kept(emitter, results, program.depth, operands[0] if in_place else None)
    deep = 1
    if has_columns:
        kernel.line(1, "for b in range((n_i + n_b - 1) // n_b):")
        kernel.loop(2, "j", "n_j")
        for _, o, mode in results:
            if mode == "columns":
                kernel.line(3, f"{o.name}[{o.index}] = {TYPE_OF[o.kind.name]}(0)")
        kernel.line(2, "for i in range(b * n_b, min(b * n_b + n_b, n_i)):")
        deep = 2
    else:
        kernel.loop(1, "i", "n_i")
    writer = _Passes(kernel, emitter, deep + 1, block)
    for level in range(1, program.depth + 1):
        is_last = level == program.depth
        writer.reduction_pass(reductions(results, level), kept if is_last else {})
    writer.output_pass(results, kept)
    return kernel.text(emitter)


def parts(e, stop=()):
    """e and all parts of it that are computed element by element, outermost first."""
    found, stack = [], [e]
    while stack:
        e = stack.pop()
        if e not in found:
            found.append(e)
            if e.op not in ROW_REDUCTIONS and e not in stop:
                stack += [a for a in reversed(e.args) if isinstance(a, Expression)]
    return found


def _kept(emitter, results, depth, overwritten):
    """{costly value: output} of values that the last reduction and the output both need.

    They wait in the output's row: an exponential costs far more than a load.

    overwritten: the operand that is the first output too, or None.
    """
    reduced = {p for e in reductions(results, depth) for p in parts(e.args[0])}
    kept = {}
    for e, o, mode in results:
        if mode == "store" and TYPE_OF[o.kind.name] == emitter.real:
            costly = [p for p in parts(e) if p.op in OWN and p in reduced and emitter.varies(p)]
            if costly and costly[0] not in kept:
                kept[costly[0]] = o
    if overwritten is not None and overwritten in kept.values():
        read = {p for e, _, _ in results for p in parts(e, kept)} - set(kept)
        if any(p.op == "symbol" and p.args[0] == overwritten.name for p in read):
            return {p: o for p, o in kept.items() if o is not overwritten}
    return kept


def reductions(results, level):
    """The row reductions of one nesting level, in order of appearance."""
    found, seen, stack = [], set(), [e for e, _, _ in reversed(results)]
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if e.op in ROW_REDUCTIONS and e.depth == level:
            found.append(e)
        stack += [a for a in reversed(e.args) if isinstance(a, Expression) and a.depth >= level - 1]
    return found


def _count(e, n, kind):
    """What makes a sum a mean.

    The mean of equal numbers is that number, so that a row of them has no deviations: a quotient,
    for which the next pass has to wait. The mean of products needs no such care, and 1 / n is
    computed once for all rows.
    """
    if e.op != "row_mean":
        return ""
    return f" * ({kind}(1) / {n})" if e.args[0].op == "mul" else f" / {n}"


class _Passes:
    """Writes the passes over a row. block: see rows_text."""

    def __init__(self, kernel, emitter, deep, block):
        self.kernel, self.emitter, self.deep, self.block = kernel, emitter, deep, block

    def reduction_pass(self, wanted, kept):
        """The row reductions of one nesting level."""
        emitter, deep, block = self.emitter, self.deep, self.block
        emitter.start_pass()
        real = emitter.real
        starts, steps, ends, blocks, joins = [], [], [], [], []
        for e in wanted:
            name = emitter.new_name()
            value = emitter.value(e.args[0], "f")
            if e.op == "row_max":
                self._largest(name, value, starts, steps, ends)
            else:
                assert e.op in ("row_sum", "row_mean"), f"no code for {e.op}"
                part = f"{name}_part" if block else name
                (blocks if block else starts).append(f"{part} = {real}(0)")
                steps.append(f"{part} = {gathered('sum', part, value, 'f')}")
                if block:
                    starts.append(f"{name} = F8(0)")
                    joins.append(f"{name} += F8({part})")
                if block or e.op == "row_mean":
                    kind = "F8" if block else real
                    ends.append(f"{name} = {real}({name}{_count(e, f'{kind}(n_j)', kind)})")
            emitter.row_names[e] = name
        for e, o in kept.items():
            steps.append(f"{o.name}[{o.index}] = {emitter.names[e]}")
        self._lines(deep, [*emitter.row, *starts])
        if block:
            self.kernel.line(deep, f"for start in range(0, n_j, {block}):")
            self._lines(deep + 1, blocks)
            self.kernel.line(deep + 1, f"for j in range(start, min(start + {block}, n_j)):")
            self._lines(deep + 2, [*emitter.lines, *steps])
            self._lines(deep + 1, joins)
        else:
            self.kernel.loop(deep, "j", "n_j")
            self._lines(deep + 1, [*emitter.lines, *steps])
        self._lines(deep, ends)

    def _largest(self, name, value, starts, steps, ends):
        emitter = self.emitter
        real, code = emitter.real, emitter.real.lower()
        emitter.include_mathematics()
        key, best = emitter.new_name(), emitter.new_name()
        starts.append(f"{best} = order_{code}({real}(-math.inf))")
        steps.append(f"{key} = order_{code}({value})")
        steps.append(f"{best} = {key} if {key} > {best} else {best}")
        ends.append(f"{name} = unorder_{code}({best})")

    def output_pass(self, results, kept):
        """The last pass: what is stored, and what is added up over rows."""
        emitter, deep = self.emitter, self.deep
        emitter.start_pass()
        for e, o in kept.items():
            emitter.names[e] = emitter.new_name()
            emitter.lines.append(f"{emitter.names[e]} = {o.name}[{o.index}]")
        stores, rows = [], []
        for e, o, mode in results:
            target = f"{o.name}[{o.index}]"
            value = emitter.stored(e, o.kind)
            if mode == "row":
                rows.append(f"{target} = {value}")
            else:
                stores.append(f"{target} {'=' if mode == 'store' else '+='} {value}")
        self._lines(deep, emitter.row)
        if stores:
            self.kernel.loop(deep, "j", "n_j")
            self._lines(deep + 1, [*emitter.lines, *stores])
        self._lines(deep, rows)

    def _lines(self, deep, texts):
        for text in texts:
            self.kernel.line(deep, text)
