"""The text of reductions: each element of the output reduces a row of elements.

*along*: neighbouring threads take neighbouring elements of a row. A team of 1 to 32 threads (part
of a warp) or a whole block reduces a row: each thread its own elements, then the team by shuffles,
then the warps of a block through shared memory.

*across*: neighbouring threads take neighbouring rows, if these are adjacent in memory. The
`team` threads of a row combine their results in shared memory.

Few rows leave a GPU idle, so they are cut into parts (the second axis of the grid). Their
results go to a temporary array that another launch reduces. Each thread sums a bounded number of
elements, and trees add the threads' sums: float32 is enough, and every run has the same result.
"""

from typing import NamedTuple

from minigrad.devices.gpu.kernel_text import (
    DENSE,
    LANES,
    GpuText,
    Space,
    inputs_read,
)
from minigrad.devices.gpu.thread_reduction import accumulator, meet_warps, shuffled
from minigrad.formulas.row_loops import stored_as

THREADS = 256


class ReduceForm(NamedTuple):
    """What decides the text of a reduction.

    Attributes:
        kinds, layouts, narrow: see GpuText.
        how: sum, mean, prod, max, min, any or all.
        kept, reduced: (rank, classes) of the Spaces of the kept and the reduced dimensions.
        across: whether neighbouring threads take neighbouring rows.
        team: threads that share a row: a power of two up to 32, or THREADS; across, any up to it.
        vector: whether rows are read four elements at a time (along only).
        ragged: with vector, whether a row may end with fewer than four elements.
        units: accesses of a thread in flight at once.
        partial: whether the output is a temporary array of parts.
    """

    how: str
    kinds: tuple
    layouts: tuple
    kept: tuple
    reduced: tuple
    across: bool
    team: int
    vector: bool
    ragged: bool
    units: int
    partial: bool
    narrow: bool


def reduce_text(program, form):
    """Return the GpuKernel; arguments: (inputs, output, rows, length, part, count, sizes, strides).

    part: elements of a row per index of the grid's second axis. count: the divisor of a mean.
    """
    text = GpuText(program, form, lambda k: (f"at{k}", form.reduced[1][k] is not None))
    for name in ("rows", "length", "part"):
        text.argument(name, text.word)
    text.argument("count", text.real.lower())
    (formula,), (out,) = text.formulas, text.outputs
    gathered = accumulator(form.how, text.emitter.kind(formula), out.kind, text.real)
    _Writer(text, form).write(formula, out, gathered)
    return text.made()


class _Writer:
    """Writes a reduction."""

    def __init__(self, text, form):
        self.text, self.form, self.layout = text, form, text.layout
        self.kept, self.reduced = Space("k", *form.kept), Space("r", *form.reduced)
        text.space(self.kept)
        text.space(self.reduced)
        self.emitter = text.emitter
        self.emitter.condition = "length > 0"  # an empty row has no element to read early
        self.constants = []  # lines of values that are constant along a row

    def write(self, formula, out, gathered):
        """Write the whole kernel."""
        text, form = self.text, self.form
        each = THREADS // form.team  # rows of a block
        if form.team == THREADS or form.across:
            text.line(1, f"shared = cuda.shared.array({self._shared()}, {gathered.type})")
        text.line(1, "t = U4(cuda.threadIdx.x)")
        if form.across:
            text.line(1, f"lane = t // {each}")
            text.line(1, f"mine = t % {each}")
        else:
            text.line(1, f"lane = t % {form.team}")
            text.line(1, f"mine = t // {form.team}")
        text.line(1, f"begin = {text.index}(cuda.blockIdx.y * part)")
        text.line(1, f"end = {text.index}(min(begin + part, length))")
        text.line(1, f"base = {text.index}(cuda.blockIdx.x * {each})")
        text.line(1, "while base < rows:")
        text.line(2, f"k = {text.index}(base + mine)")
        text.line(2, "inside = k < rows")
        text.line(2, f"k = k if inside else {text.index}(rows - 1)")  # warps stay whole
        offsets = text.coordinates(2, self.kept, "k")
        for number, place in offsets.items():
            text.line(2, f"at{number} = {place}")
        total = self._gather(formula, gathered)
        if form.across:
            self._meet(total, gathered, each)
        else:
            shuffled(2, text, [total], [gathered], min(form.team, 32))
            if form.team == THREADS:
                meet_warps(2, text, [total], [gathered], ["shared"], THREADS // 32)
                text.line(2, "cuda.syncthreads()")  # before the next row writes there
        text.line(2, "if inside and lane == 0:")
        place = f"at{self.layout['out0']}"
        if form.partial:
            place = "cuda.blockIdx.y * rows + k"
        text.line(3, f"out0[{place}] = {self._finished(total, out.kind, gathered)}")
        text.line(2, f"base = {text.index}(base + cuda.gridDim.x * {each})")

    def _shared(self):
        return THREADS if self.form.across else THREADS // 32

    def _finished(self, total, dtype, gathered):
        """Return the text of the result, converted to an element of the output."""
        if gathered.kind == "b":
            one = dtype.text
            return f"{one}(1) if {total} != I4(0) else {one}(0)"
        if self.form.how == "mean":
            total = f"{total} / count"
        return stored_as(total, dtype)

    def _gather(self, formula, gathered):
        """Emit the loops over a row; return the name of this thread's result."""
        text, form = self.text, self.form
        width = LANES if form.vector else 1
        parts = [f"total{c}" for c in range(form.units * width)]
        step = form.team * width
        body = len(text.lines)
        for name in parts:
            text.line(2, f"{name} = {gathered.start}")
        first = f"begin + lane * {width}" if width > 1 else "begin + lane"
        text.line(2, f"r = {text.index}({first})")
        if form.units > 1:
            text.line(2, f"while r + {(form.units - 1) * step + width - 1} < end:")
            self._units(3, formula, gathered, parts, form.units, form.vector)
            text.line(3, f"r = {text.index}(r + {form.units * step})")
        text.line(2, f"while r + {width - 1} < end:" if width > 1 else "while r < end:")
        self._units(3, formula, gathered, parts[:width], 1, form.vector)
        text.line(3, f"r = {text.index}(r + {step})")
        if form.ragged:
            text.line(2, f"r = {text.index}(end - end % {LANES} + lane)")
            text.line(2, "while r < end:")
            self._units(3, formula, gathered, parts[:1], 1, False)
            text.line(3, f"r = {text.index}(r + {form.team})")
        text.lines[body:body] = ["        " + line for line in self.constants]
        while len(parts) > 1:
            half = len(parts) // 2
            for a, b in zip(parts[:half], parts[half:], strict=True):
                text.line(2, f"{a} = {gathered.combined(a, b)}")
            parts = parts[:half]
        return parts[0]

    def _units(self, indent, formula, gathered, parts, units, vector):
        """Emit all loads, then the lines that add each element to a partial result."""
        text, emitter = self.text, self.emitter
        read = [emitter.operands[n] for n in inputs_read([formula])]
        read = [o for o in read if o.index is not None and o.varies]
        loaded = []
        for u in range(units):
            index = "r"
            if u:
                index = f"r_{u}"
                step = self.form.team * (LANES if vector else 1) * u
                text.line(indent, f"{index} = {text.index}(r + {step})")
            offsets = text.coordinates(indent, self.reduced, index, f"_{u}")
            for o in read:
                number = self.layout[o.name]
                place = f"at{number} + {offsets[number]}"
                if vector and self.reduced.classes[number] in DENSE:
                    names = [f"v{u}_{lane}_{o.name}" for lane in range(LANES)]
                    text.line(indent, f"{', '.join(names)} = load4({o.name}, {place})")
                else:
                    names = [f"v{u}_{o.name}"] * LANES
                    text.line(indent, f"{names[0]} = {o.name}[{place}]")
                loaded.append((u, o.name, names))
        each = LANES if vector else 1
        for c, part in enumerate(parts):
            registers = {n: names[c % each] for u, n, names in loaded if u == c // each}
            emitter.start_pass()
            emitter.registers = registers
            value = emitter.value(formula, gathered.kind)
            self.constants += emitter.row
            text.all_lines(indent, emitter.lines)
            if gathered.kind == "b":
                value = f"(I4(1) if {value} else I4(0))"
            if not value.isidentifier():
                text.line(indent, f"value = {value}")
                value = "value"
            text.line(indent, f"{part} = {gathered.combined(part, value)}")

    def _meet(self, total, gathered, each):
        """Reduce the results of a row's threads to one in shared memory, halving them each step."""
        text, half = self.text, THREADS // 2
        if each == THREADS:
            return
        text.line(2, f"shared[t] = {total}")
        text.line(2, "cuda.syncthreads()")
        while half >= each:
            text.line(2, f"if t < {half}:")
            text.line(3, f"mate = shared[t + {half}]")
            text.line(3, f"{total} = {gathered.combined(total, 'mate')}")
            text.line(3, f"shared[t] = {total}")
            text.line(2, "cuda.syncthreads()")
            half //= 2
