"""The text of a row kernel: passes over a row, one per nesting level of row reductions."""

from minigrad.kernels.codegen import (
    Kernel,
    combine,
    index_text,
    operand_names,
    renamed_outputs,
    start_value,
    step,
)
from minigrad.kernels.emitter import TYPE_OF, Emitter, Operand, real_type
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
    emitter = Emitter(operands, real_type(kinds))
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
    kernel.loop(1, "i", "n_i")
    for level in range(1, program.depth + 1):
        _reduction_pass(kernel, emitter, _reductions(results, level))
    _output_pass(kernel, emitter, results)
    return kernel.text(emitter)


def _reductions(results, level):
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


def _reduction_pass(kernel, emitter, reductions):
    emitter.start_pass()
    real, steps, ends = emitter.real, [], []
    for e in reductions:
        name = emitter.new_name()
        how = "max" if e.op == "row_max" else "sum"
        value = emitter.value(e.args[0], "f")
        steps.append((name, start_value(how, "f", real), combine(how, name, value, "i")))
        if e.op == "row_mean":
            ends.append(f"{name} = {name} / {real}(n_j)")
        emitter.row_names[e] = name
    for text in emitter.row:
        kernel.line(2, text)
    for name, start, _ in steps:
        kernel.line(2, f"{name} = {start}")
    kernel.loop(2, "j", "n_j")
    for text in emitter.lines:
        kernel.line(3, text)
    for name, _, combined in steps:
        kernel.line(3, f"{name} = {combined}")
    for text in ends:
        kernel.line(2, text)


def _output_pass(kernel, emitter, results):
    emitter.start_pass()
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
