"""The text of a row kernel: passes over a row, one per nesting level of row reductions."""

from minigrad.kernels.codegen import (
    Kernel,
    index_text,
    operand_names,
    renamed_outputs,
    step,
)
from minigrad.kernels.emitter import OWN, TYPE_OF, Emitter, Operand, real_type
from minigrad.kernels.expression import ROW_REDUCTIONS, Expression


def rows_text(program, modes, kinds, inner, in_place=False):
    """Formulas with row reductions: passes over a row, one per nesting level, then the outputs.

    Args:
        modes: per output 'store' (every element), 'row' (one value a row) or 'columns' (summed over
            the rows).
        inner: per array the class of its stride along the row; 0 also for 'row' outputs.
        in_place: whether the first output is the first input.
    """
    kernel, (names, outs) = Kernel(), operand_names(program, len(program.outputs))
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    for size in ("n_i", "n_j"):
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
            loops = [] if mode_of.get(n) == "columns" else ["i"]
            operands.append(Operand(n, k, index_text(n, loops, "j", classes[n]), classes[n] != 0))
    emitter = Emitter(operands, real_type(program, kinds))
    if in_place:
        operands[len(names)] = operands[0]
    results = [
        (e, o, mode)
        for e, o, mode in zip(renamed_outputs(program), operands[len(names) :], modes, strict=True)
    ]
    for _, o, mode in results:
        if mode == "columns":
            kernel.loop(1, "j", "n_j")
            kernel.line(2, f"{o.name}[{o.index}] = {TYPE_OF[o.kind.name]}(0)")
    kept = _kept(emitter, results, program.depth, operands[0] if in_place else None)
    kernel.loop(1, "i", "n_i")
    for level in range(1, program.depth + 1):
        is_last = level == program.depth
        _reduction_pass(kernel, emitter, reductions(results, level), kept if is_last else {})
    _output_pass(kernel, emitter, results, kept)
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


def _reduction_pass(kernel, emitter, wanted, kept):
    emitter.start_pass()
    real, starts, steps, ends = emitter.real, [], [], []
    code = real.lower()
    for e in wanted:
        name = emitter.new_name()
        value = emitter.value(e.args[0], "f")
        if e.op == "row_max":
            emitter.include_mathematics()
            key, best = emitter.new_name(), emitter.new_name()
            starts.append(f"{best} = order_{code}({real}(-math.inf))")
            steps.append(f"{key} = order_{code}({value})")
            steps.append(f"{best} = {key} if {key} > {best} else {best}")
            ends.append(f"{name} = unorder_{code}({best})")
        else:
            assert e.op in ("row_sum", "row_mean"), f"no code for {e.op}"
            starts.append(f"{name} = {real}(0)")
            steps.append(f"{name} = {name} + {value}")
            if e.op == "row_mean":
                ends.append(f"{name} = {name} / {real}(n_j)")
        emitter.row_names[e] = name
    for e, o in kept.items():
        steps.append(f"{o.name}[{o.index}] = {emitter.names[e]}")
    for text in (*emitter.row, *starts):
        kernel.line(2, text)
    kernel.loop(2, "j", "n_j")
    for text in (*emitter.lines, *steps):
        kernel.line(3, text)
    for text in ends:
        kernel.line(2, text)


def _output_pass(kernel, emitter, results, kept):
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
    for text in emitter.row:
        kernel.line(2, text)
    if stores:
        kernel.loop(2, "j", "n_j")
        for text in (*emitter.lines, *stores):
            kernel.line(3, text)
    for text in rows:
        kernel.line(2, text)
