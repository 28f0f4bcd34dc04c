"""Programs of formulas -> the text of one kernel: elementwise, reduce or rows.

Every kernel takes addresses of its arrays, its scalars, sizes, then strides (in elements). The
innermost stride class (0, 1, other) is part of the text: with a stride known only at run time
nothing would vectorise.
"""

from minigrad.kernels.emitter import POINTER_OF, TYPE_OF, Emitter, Operand, real_type
from minigrad.kernels.expression import ROW_REDUCTIONS, Expression, symbol

BLOCK = 4096  # elements summed in the kernel's type before the sum moves on to float64


class Kernel:
    """Collects arguments and lines, then prints the function."""

    def __init__(self):
        self.arguments, self.types, self.lines = [], [], []

    def argument(self, name, kind="i8"):
        """Adds an argument; 'i8' for addresses, sizes and strides, 'f8' for float scalars."""
        self.arguments.append(name)
        self.types.append(kind)
        return name

    def operands(self, names, kinds):
        """Arguments for arrays (addresses, turned into pointers) and scalars."""
        for name, kind in zip(names, kinds, strict=True):
            if isinstance(kind, str):
                self.argument(name, "f8" if kind == "f" else "i8")
            else:
                self.argument(f"{name}_at")
                self.line(1, f"{name} = {POINTER_OF[kind.name]}({name}_at)")

    def line(self, indent, text):
        """Adds one line."""
        self.lines.append("    " * indent + text)

    def loop(self, indent, index, size):
        """Adds the head of a loop."""
        self.line(indent, f"for {index} in range({size}):")

    def text(self, emitter):
        """(source text, source files it needs)."""
        head = f'@jit("void({", ".join(self.types)})")\ndef kernel({", ".join(self.arguments)}):'
        includes = tuple(sorted(emitter.includes))
        return "\n".join([head, *self.lines]) + "\n", includes


def _index(name, loops, inner, inner_class):
    """`i0 * x_0 + i1 * x_1 + j` for the loops an operand depends on."""
    parts = [f"{i} * {name}_{i}" for i in loops]
    if inner is not None and inner_class != 0:
        parts.append(inner if inner_class == 1 else f"{inner} * {name}_{inner}")
    return " + ".join(parts) or "0"


def _names(program, n_outputs):
    return [f"s_{n}" for n in program.inputs], [f"out{k}" for k in range(n_outputs)]


def _renamed(program):
    """Outputs with prefixed symbols, so that a formula's `n` or `j` never meets a loop's."""
    cache = {}

    def visit(e):
        if not isinstance(e, Expression):
            return e
        if e not in cache:
            cache[e] = (
                symbol(f"s_{e.args[0]}")
                if e.op == "symbol"
                else Expression(e.op, *map(visit, e.args))
                if e.op != "constant"
                else e
            )
        return cache[e]

    return [visit(e) for e in program.outputs]


def elementwise_text(program, kinds, rank, inner):
    """A loop nest over `rank` dimensions; rank 0: contiguous operands and one size.

    Args:
        kinds: per input and output its DType, or 'f' / 'i' for a scalar.
        inner: per array its innermost stride class, when rank > 0.
    """
    kernel, (names, outs) = Kernel(), _names(program, len(program.outputs))
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    flat = rank == 0
    outer = [f"i{d}" for d in range(rank - 1)] if not flat else []
    sizes = [kernel.argument(f"n_{i}") for i in (*outer, "j")]
    classes = dict.fromkeys(arrays, 1) if flat else dict(zip(arrays, inner, strict=True))
    if not flat:
        for name in arrays:
            for i in (*outer, "j"):
                kernel.argument(f"{name}_{i}")
    operands = [
        Operand(n, k, None, False)
        if isinstance(k, str)
        else Operand(n, k, _index(n, outer, "j", classes[n]), classes[n] != 0)
        for n, k in zip(everything, kinds, strict=True)
    ]
    emitter = Emitter(operands, real_type(kinds))
    emitter.start_pass()
    values = [
        emitter.stored(e, o.kind)
        for e, o in zip(_renamed(program), operands[len(names) :], strict=True)
    ]
    for depth, (i, size) in enumerate(zip(outer, sizes, strict=False)):
        kernel.loop(1 + depth, i, size)
    base = 1 + len(outer)
    for text in emitter.row:
        kernel.line(base, text)
    kernel.loop(base, "j", sizes[-1])
    for text in emitter.lines:
        kernel.line(base + 1, text)
    for o, value in zip(operands[len(names) :], values, strict=True):
        kernel.line(base + 1, f"{o.name}[{o.index}] = {value}")  # after all loads: may be in place
    return kernel.text(emitter)


START = {"sum": "0", "mean": "0", "prod": "1", "any": "False", "all": "True"}


def _combine(how, acc, value, real_kind):
    if how in ("sum", "mean"):
        return f"{acc} + {value}"
    if how == "prod":
        return f"{acc} * {value}"
    if how in ("any", "all"):
        return f"{acc} {'|' if how == 'any' else '&'} {value}"
    sign = ">" if how == "max" else "<"
    nan = f" or {value} != {value}" if real_kind == "f" else ""
    return f"{value} if {value} {sign} {acc}{nan} else {acc}"


def reduce_text(program, how, kinds, n_kept, n_reduced, keeps_inner, inner):
    """Reduces one formula: kept outer loops, reduced loops, and perhaps one kept loop innermost.

    With a kept innermost loop partial results live in the output row; otherwise in a register, and
    sums of float32 go over to float64 every BLOCK elements.
    """
    kernel, (names, outs) = Kernel(), _names(program, 1)
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    kept, reduced = [f"i{d}" for d in range(n_kept)], [f"r{d}" for d in range(n_reduced)]
    if keeps_inner:
        loops, innermost = [*kept, *reduced], "j"
    else:
        loops, innermost = [*kept, *reduced[:-1]], reduced[-1]
    for i in (*loops, innermost):
        kernel.argument(f"n_{i}")
    classes = dict(zip(arrays, inner, strict=True))
    for name in arrays:
        mine = [*kept, "j"] if name == "out0" and keeps_inner else kept
        for i in mine if name == "out0" else (*loops, innermost):
            kernel.argument(f"{name}_{i}")
    where = {
        n: _index(n, loops, innermost, classes[n])
        if n != "out0"
        else _index(n, kept, "j" if keeps_inner else None, classes[n])
        for n in arrays
    }
    operands = [
        Operand(n, k, None, False)
        if isinstance(k, str)
        else Operand(n, k, where[n], n == "out0" or classes[n] != 0)
        for n, k in zip(everything, kinds, strict=True)
    ]
    emitter = Emitter(operands, real_type(kinds))
    emitter.start_pass()
    expression, out = _renamed(program)[0], operands[-1]
    kind = "b" if how in ("any", "all") else emitter.kind(expression)
    if kind == "b" and how in ("sum", "mean", "prod"):
        kind = "i"
    if how == "mean":
        kind = "f"
    value = emitter.value(expression, kind)
    start = _start(how, kind, emitter.real)
    finish = _finisher(how, kind, out.kind, emitter.real, reduced)
    for depth, i in enumerate(kept):
        kernel.loop(1 + depth, i, f"n_{i}")
    base = 1 + len(kept)
    target = f"out0[{out.index}]"
    if keeps_inner:
        load = f"{target} != U1(0)" if out.kind.kind == "b" else target
        kernel.loop(base, "j", "n_j")
        kernel.line(base + 1, f"{target} = {_as(start, out.kind, kind)}")
        for depth, i in enumerate(reduced):
            kernel.loop(base + depth, i, f"n_{i}")
        deep = base + len(reduced)
        for text in emitter.row:
            kernel.line(deep, text)
        kernel.loop(deep, "j", "n_j")
        for text in emitter.lines:
            kernel.line(deep + 1, text)
        if not value.isidentifier():
            kernel.line(deep + 1, f"value = {value}")
            value = "value"
        kernel.line(deep + 1, f"before = {load}")
        combined = _combine(how, "before", value, kind)
        kernel.line(deep + 1, f"{target} = {_as(combined, out.kind, kind)}")
        if how == "mean":
            kernel.loop(base, "j", "n_j")
            kernel.line(base + 1, f"{target} = {finish(target)}")
        return kernel.text(emitter)
    wide = how in ("sum", "mean") and kind == "f"
    kernel.line(base, f"total = {'F8(0)' if wide else start}")
    for depth, i in enumerate(reduced[:-1]):
        kernel.loop(base + depth, i, f"n_{i}")
    deep = base + len(reduced) - 1
    for text in emitter.row:
        kernel.line(deep, text)
    last = reduced[-1]
    accumulator = "total"
    if wide:
        accumulator = "part"
        kernel.line(deep, f"for start in range(0, n_{last}, {BLOCK}):")
        kernel.line(deep + 1, f"part = {start}")
        kernel.line(deep + 1, f"for {last} in range(start, min(start + {BLOCK}, n_{last})):")
        deep += 1
    else:
        kernel.loop(deep, last, f"n_{last}")
    for text in emitter.lines:
        kernel.line(deep + 1, text)
    if not value.isidentifier():
        kernel.line(deep + 1, f"value = {value}")
        value = "value"
    kernel.line(deep + 1, f"{accumulator} = {_combine(how, accumulator, value, kind)}")
    if wide:
        kernel.line(deep, "total += part")
    kernel.line(base, f"{target} = {finish('total')}")
    return kernel.text(emitter)


def _start(how, kind, real):
    if how in ("any", "all"):
        return START[how]
    if how in START:
        return f"{real}({START[how]})" if kind == "f" else f"I8({START[how]})"
    if kind == "f":
        return f"{real}({'-' if how == 'max' else ''}math.inf)"
    if kind == "b":
        return "False" if how == "max" else "True"
    return "I8(-9223372036854775807 - 1)" if how == "max" else "I8(9223372036854775807)"


def _as(text, dtype, kind):
    if dtype.kind == "b":
        return f"U1(1) if ({text}) else U1(0)"
    return f"{TYPE_OF[dtype.name]}({text})"


def _finisher(how, kind, dtype, real, reduced):
    def finish(text):
        if how == "mean":
            text = f"{text} / F8({' * '.join(f'n_{i}' for i in reduced) or '1'})"
        return _as(text, dtype, kind)

    return finish


def rows_text(program, modes, kinds, inner):
    """Formulas with row reductions: passes over a row, one per nesting level, then the outputs.

    Args:
        modes: per output 'store' (every element), 'row' (one value a row) or 'columns' (summed over
            the rows).
        inner: per array the class of its stride along the row; 0 also for 'row' outputs.
    """
    kernel, (names, outs) = Kernel(), _names(program, len(program.outputs))
    everything = [*names, *outs]
    kernel.operands(everything, kinds)
    arrays = [n for n, k in zip(everything, kinds, strict=True) if not isinstance(k, str)]
    kernel.argument("n_i"), kernel.argument("n_j")
    classes = dict(zip(arrays, inner, strict=True))
    for name in arrays:
        kernel.argument(f"{name}_i"), kernel.argument(f"{name}_j")
    mode_of = dict(zip(outs, modes, strict=True))
    operands = []
    for n, k in zip(everything, kinds, strict=True):
        if isinstance(k, str):
            operands.append(Operand(n, k, None, False))
        else:
            loops = [] if mode_of.get(n) == "columns" else ["i"]
            operands.append(Operand(n, k, _index(n, loops, "j", classes[n]), classes[n] != 0))
    emitter = Emitter(operands, real_type(kinds))
    results = [
        (e, o, mode_of[o.name])
        for e, o in zip(_renamed(program), operands[len(names) :], strict=True)
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
        steps.append((name, _start(how, "f", real), _combine(how, name, value, "i")))
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
