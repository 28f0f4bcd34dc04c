"""Turns a Loop into the text of its kernel and a description of the call.

The kernel is a function of typed pointers. Small sizes and strides are literals, so that LLVM can
unroll; others are arguments, so that loops of one form share a function. Every kernel works on a
range [b, e) of its outermost axis.
"""

from typing import NamedTuple

from minigrad.array.layout import collapse, size_of
from minigrad.compiler.cpu.branchless_emitter import BranchlessEmitter
from minigrad.compiler.cpu.kernel_lines import SMALL, Body
from minigrad.formulas.emitter import Operand
from minigrad.formulas.expression import substitute, symbol, walk
from minigrad.formulas.kinds import Kinds, cost

CACHE = 1 << 20  # bytes, about what fits into a core's cache


class Nest:
    """The loops of a kernel: sizes of rows and columns, and each operand's strides along them."""

    def __init__(self, loop, places, first):
        strides = [s for _, _, s in places]
        n = loop.rows
        if n is None:
            dims, steps = collapse(loop.dims, strides)
            if is_ordered(loop):
                order = range(len(dims))
            else:  # the axis with the first output's smallest stride is innermost
                order = sorted(range(len(dims)), key=lambda d: -abs(steps[d][first]))
            dims, steps = [dims[d] for d in order], [steps[d] for d in order]
            self.rows, self.columns = dims[:-1], dims[-1:]
            self.row_steps, self.column_steps = steps[:-1], steps[-1:]
        else:
            self.rows, self.row_steps = collapse(loop.dims[:n], [s[:n] for s in strides])
            self.columns, self.column_steps = collapse(loop.dims[n:], [s[n:] for s in strides])
        if not self.columns:
            self.columns, self.column_steps = [1], [(0,) * len(places)]


def is_ordered(loop):
    """Return whether the order of the axes matters."""
    return any(o.mode != "store" for o in loop.outputs) or any(
        e.op == "column_of" for e in walk([o.formula for o in loop.outputs])
    )


class KernelText(NamedTuple):
    """A kernel: the text of a function, with `{name}` instead of its name, and how to call it.

    The arguments are, in order: the `pointers`, [(Value, offset)]; if the loop may be split, a
    pointer to the thread's partial result for each output that is reduced to one number; a pointer
    to `scratch` elements of the kernel's type, if there are any; the `numbers`; the range [b, e).

    extent: the size of the axis that may be split into ranges. grain: ranges begin at multiples of
    it; 0 means do not split. totals_at: the element of the scratch memory where float64 column sums
    begin, or None. partial: [(what, output, slot, count)], partial sums to add after a split run.
    ns: estimated nanoseconds on one core.
    """

    text: str
    pointers: list
    numbers: list
    partial: list
    includes: tuple
    extent: int
    grain: int
    scratch: int
    totals_at: int | None
    columns: int
    real: str
    ns: float


def kernel_text(loop, is_cut=True):
    """Return the KernelText of a Loop. is_cut: whether several threads may share it."""
    names, places = {}, []  # a place that is read and written has one pointer
    keys = {e: key for key, e in loop.loads.items()}
    renamed = {}
    for e in walk([o.formula for o in loop.outputs]):
        if e.op == "symbol":
            names[keys[e]] = f"{e.args[0][0]}{len(places)}"
            renamed[e.args[0]] = symbol(names[keys[e]])
            places.append(keys[e])
    targets = []
    for o in loop.outputs:
        place = o.value, o.offset, o.strides
        if place not in names:
            names[place] = f"o{len(places)}"
            places.append(place)
        targets.append(place)
    nest = Nest(loop, places, places.index(targets[0]))
    kinds, cache = Kinds(), {}
    for place in places:
        kinds.declare(symbol(names[place]), place[0].dtype)
    formulas = [substitute(o.formula, renamed, cache) for o in loop.outputs]
    body, sizes = Body(nest, formulas, loop.outputs, kinds, is_cut), LoopNumbers()
    body.name_sizes(sizes)
    gone = {targets[k] for _, k, _, _ in body.partial}
    operands, pointers = {}, []
    for k, place in enumerate(places):
        if place in gone:
            continue
        name = names[place]
        pointers.append((place[0], place[1]))
        row = body.index(sizes, name, nest.row_steps, k, body.row_names)
        column = body.index(sizes, name, nest.column_steps, k, body.column_names)
        text = " + ".join(x for x in (row, column) if x) or "0"
        operands[place] = Operand(name, place[0].dtype, text, bool(column))
    emitter = BranchlessEmitter(operands.values(), loop.real.text, kinds, body.flat_column())
    lines = body.emit(emitter, [operands.get(t) for t in targets])
    partials = [f"a{k}" for what, k, _, _ in body.partial if what == "all"]
    arguments = [*(o.name for o in operands.values()), *partials]
    arguments += ["scratch"] if body.scratch_elements else []
    arguments += [*sizes.names, "b", "e"]
    return KernelText(
        text="\n".join([f"def {{name}}({', '.join(arguments)}):", *lines]) + "\n",
        pointers=pointers,
        numbers=sizes.values,
        partial=body.partial,
        includes=tuple(sorted(emitter.includes)),
        extent=body.extent,
        grain=body.grain,
        scratch=body.scratch_elements,
        totals_at=body.totals_at,
        columns=body.n_columns,
        real=loop.real,
        ns=_estimate(loop, places, formulas),
    )


class LoopNumbers:
    """Writes sizes and strides: small ones as literals, others as arguments."""

    def __init__(self):
        self.names, self.values = [], []

    def size(self, name, n):
        """Return the text of a size."""
        return str(n) if n <= SMALL else self._argument(name, n)

    def stride(self, name, s):
        """Return the text of a stride."""
        return str(s) if abs(s) <= SMALL else self._argument(name, s)

    def _argument(self, name, n):
        self.names.append(name)
        self.values.append(n)
        return name


def _estimate(loop, places, formulas):
    """Estimate nanoseconds on one core: the larger of vector arithmetic and memory traffic.

    Memory traffic is slower if the operands do not fit into the cache.
    """
    moved = sum(
        place[0].dtype.itemsize * size_of(n for n, s in zip(loop.dims, place[2], strict=True) if s)
        for place in places
    )
    passes = 1 + (max((e.depth for e in formulas), default=0) > 0) * 0.5
    work = cost(formulas) * passes
    return max(loop.size * work / 48, moved / (64 if moved < CACHE else 20)) + 20
