"""The text of row kernels: passes over a row, one per nesting level of row reductions.

A team of threads processes a row: 1 to 32 threads (part of a warp) or a whole block. Neighbouring
threads take neighbouring elements. If the row is short, each thread keeps in registers what several
passes need (*kept*), such as inputs and exponentials, so memory is read once. Longer rows are read
again in every pass, from the caches.

Registers are written as local arrays with loops of constant length: the compiler unrolls the loops,
and the arrays disappear.
"""

from typing import NamedTuple

from minigrad.devices.gpu.kernel_text import LANES, GpuText, Space
from minigrad.devices.gpu.rows.analysis import analysed
from minigrad.devices.gpu.thread_reduction import Accumulator, meet_warps, shuffled

RUN = 64  # accesses of a thread along a row that go into one partial sum


class RowsForm(NamedTuple):
    """What decides the text of a row kernel.

    Attributes:
        kinds, layouts, narrow: see GpuText.
        modes: per output 'store', 'row' or 'columns'.
        layouts: as in GpuText, but -1 for arrays that are summed over rows.
        rows: (rank, classes) of the Space of the leading dimensions.
        columns: per layout its stride class along the row.
        team: threads per row, a power of two.
        units: accesses per thread and row whose values are kept; 0: rows are read again.
        vector: whether accesses have four elements.
        whole: whether every team always has a row, and every thread all its accesses.
        alias: whether an output with one value per row may share memory with an input.
    """

    modes: tuple
    kinds: tuple
    layouts: tuple
    rows: tuple
    columns: tuple
    team: int
    units: int
    vector: bool
    whole: bool
    alias: bool
    narrow: bool

    @property
    def threads(self):
        """Return the number of threads per block."""
        return self.team if self.team > 32 else 128

    @property
    def each(self):
        """Return the number of rows that a block processes at once."""
        return self.threads // self.team

    @property
    def guards_rows(self):
        """Return whether a team may have no row."""
        return self.each > 1 and not self.whole

    @property
    def width(self):
        """Return the number of elements per access."""
        return LANES if self.vector else 1


def row_text(program, form):
    """Return the GpuText of a row kernel; `at0` is where the row of layout 0 begins."""

    def place(number):
        kind = 1 if number < 0 else form.columns[number]
        along = ("", " + j", f" + j * j_step_{number}")[kind]
        return f"at{number}{along}", kind != 0

    return GpuText(program, form, place)


def rows_text(program, form):
    """Return the GpuKernel; arguments: (inputs, outputs, n_i rows, n_j columns, sizes, strides).

    The output of a sum over rows is a temporary array (teams of the launch, n_j).
    """
    text = row_text(program, form)
    text.argument("n_i", text.word)
    text.argument("n_j", text.word)
    space = Space("i", *form.rows)
    text.space(space)
    for number, kind in enumerate(form.columns):
        if kind == 2:
            text.argument(f"j_step_{number}", text.word)
    text.emitter.condition = "here" if form.guards_rows else None
    results = list(zip(text.formulas, text.outputs, form.modes, strict=True))
    _Writer(text, form, text.emitter, results).write(space)
    return text.made()


class _Writer:
    """Writes a row kernel."""

    def __init__(self, text, form, emitter, results):
        self.text, self.form, self.emitter, self.results = text, form, emitter, results
        self.passes, self.kept_inputs = analysed(emitter, results, form.units > 0)
        self.summed = [o for _, o, mode in results if mode == "columns"]
        self.kept = {}  # {value kept in registers: text of its element}
        self.shared = 0  # count of arrays in shared memory
        self.local = {}  # {array: line that declares it}

    def array(self, name, size, kind):
        """Declare an array of registers."""
        self.local[name] = f"    {name} = cuda.local.array({size}, {kind})"

    def write(self, space):
        """Write the whole kernel."""
        text, form = self.text, self.form
        body, size = len(text.lines), form.units * form.width
        text.line(1, "t = U4(cuda.threadIdx.x)")
        text.line(1, f"lane = t % {form.team}")
        text.line(1, f"mine = t // {form.team}")
        self.begin_columns(size)
        text.line(1, f"base = {text.index}(cuda.blockIdx.x * {form.each})")
        text.line(1, "while base < n_i:")
        text.line(2, f"i = {text.index}(base + mine)")
        if form.guards_rows:
            text.line(2, "here = i < n_i")
            text.line(2, "n = n_j if here else 0")
        elif not form.whole:
            text.line(2, "n = n_j")
        for number, place in text.coordinates(2, space, "i").items():
            text.line(2, f"at{number} = {place}")
        if size:
            self._load_kept(size)
        for used in self.passes[:-1]:
            self._reduce(used)
        self._store(self.passes[-1])
        if self.shared:
            text.line(2, "cuda.syncthreads()")  # before the next row writes there
        text.line(2, f"base = {text.index}(base + cuda.gridDim.x * {form.each})")
        self.end_columns(size)
        text.lines[body:body] = self.local.values()

    # -- loops over the row ----------------------------------------------------------------------

    def over(self, indent, write, limit="n", block=None):
        """Emit a loop over this thread's accesses of a row; write(indent) adds the body, for c.

        block: lines before and after every RUN accesses, for rows that are too long to be kept.
        """
        text, form = self.text, self.form
        first, step = "lane", form.team
        if form.vector:
            first, step = f"{LANES} * lane", LANES * form.team
        if not form.units:
            text.line(indent, f"c = {first}")
            before, after = block or ((), ())
            if block:
                text.line(indent, f"while c < {limit}:")
                indent += 1
                text.line(indent, f"stop = min(c + {RUN * step}, {limit})")
                text.all_lines(indent, before)
                limit = "stop"
            text.line(indent, f"while c < {limit}:")
            write(indent + 1)
            text.line(indent + 1, f"c += {step}")
            text.all_lines(indent, after)
            return
        text.line(indent, f"for u in range({form.units}):")
        text.line(indent + 1, f"c = {first} + {step} * u")
        if form.whole:
            write(indent + 1)
        else:
            text.line(indent + 1, f"if c < {limit}:")
            write(indent + 2)

    def _elements(self, indent, lines):
        """Emit a loop over the elements of one access: j is the column, e the register index."""
        text, form = self.text, self.form
        if form.vector:
            text.line(indent, f"for v in range({LANES}):")
            text.line(indent + 1, "j = c + v")
            if form.units:
                text.line(indent + 1, f"e = {LANES} * u + v")
            text.all_lines(indent + 1, lines)
        else:
            text.line(indent, "j = c")
            if form.units:
                text.line(indent, "e = u")
            text.all_lines(indent, lines)

    def _load(self, indent, name, array, place):
        """Emit the load of one access of an input at c into an array, starting at `place`."""
        text, o = self.text, self.emitter.operands[name]
        if not self.form.vector:
            text.line(indent, "j = c")
            text.line(indent, f"{array}[{place}] = {name}[{o.index}]")
            return
        parts = [f"part{lane}" for lane in range(LANES)]
        text.line(indent, f"{', '.join(parts)} = load4({name}, {o.index.replace(' + j', ' + c')})")
        for lane, part in enumerate(parts):
            begin = f"{place} + {lane}" if place else str(lane)
            text.line(indent, f"{array}[{begin}] = {part}")

    def _load_kept(self, size):
        """Load the inputs that several passes need, with all accesses before any use."""
        names = self.kept_inputs
        for name in names:
            kind = self.emitter.operands[name].kind
            self.array(f"kept_{name}", size, kind.text)
            self.emitter.registers[name] = f"kept_{name}[e]"

        def write(indent):
            place = f"{LANES} * u" if self.form.vector else "u"
            for name in names:
                self._load(indent, name, f"kept_{name}", place)

        if names:
            self.over(2, write)

    def _near(self, used):
        """Return the inputs that only this pass reads as vectors; empty without vectors."""
        if not self.form.vector:
            return []
        return [n for n in used.inputs if n not in self.emitter.registers]

    def _pass(self, used, steps, after=(), block=None):
        """Emit one loop over the row: loads, formulas, the lines of `steps()`, then `after`.

        block: see `over`.
        """
        text, emitter = self.text, self.emitter
        near = self._near(used)
        for name in near:
            kind = emitter.operands[name].kind
            self.array(f"near_{name}", LANES, kind.text)
            emitter.registers[name] = f"near_{name}[v]"
        emitter.start_pass()
        emitter.names.update(self.kept)
        closing = steps()
        for e in used.first_kept:
            name = f"kept{len(self.kept)}"
            self.array(name, self.form.units * self.form.width, emitter.real)
            closing.insert(0, f"{name}[e] = {emitter.value(e)}")
            self.kept[e] = f"{name}[e]"
        lines = [*emitter.lines, *closing]
        text.all_lines(2, emitter.row)

        def write(indent):
            for name in near:
                self._load(indent, name, f"near_{name}", "")
            self._elements(indent, lines)
            text.all_lines(indent, after)

        if lines:
            self.over(2, write, block=block)
        for name in near:
            del emitter.registers[name]

    # -- passes ----------------------------------------------------------------------------------

    def _reduce(self, used):
        """Emit the row reductions of one level."""
        text, emitter, names, gatherings = self.text, self.emitter, [], []
        real = emitter.real
        for e in used.reductions:
            how = {"row_max": "max", "row_sum": "sum", "row_mean": "sum"}[e.op]
            start = f"{real}(-math.inf)" if how == "max" else f"{real}(0)"
            names.append(emitter.new_name())
            gatherings.append(Accumulator(how, "f", real, start))
            text.line(2, f"{names[-1]} = {start}")
        parts = names
        block = None
        if not self.form.units:  # a long row: add up the sums of blocks
            parts = [emitter.new_name() for _ in names]
            pairs = list(zip(names, parts, gatherings, strict=True))
            block = (
                [f"{part} = {gathering.start}" for _, part, gathering in pairs],
                [f"{name} = {g.combined(name, part)}" for name, part, g in pairs],
            )

        def steps():
            lines = []
            for e, name, gathering in zip(used.reductions, parts, gatherings, strict=True):
                value = emitter.value(e.args[0], "f")
                if not value.isidentifier():
                    fresh = emitter.new_name()
                    lines.append(f"{fresh} = {value}")
                    value = fresh
                lines.append(f"{name} = {gathering.combined(name, value)}")
            return lines

        self._pass(used, steps, block=block)
        shuffled(2, text, names, gatherings, min(self.form.team, 32))
        if self.form.team > 32:
            self._meet_warps(names, gatherings)
        for e, name in zip(used.reductions, names, strict=True):
            if e.op == "row_mean":
                text.line(2, f"{name} = {name} / {real}(n_j)")
            emitter.row_names[e] = name

    def _meet_warps(self, names, gatherings):
        """Reduce the results of a block's warps to one, available in every thread."""
        text, warps = self.text, self.form.team // 32
        arrays = [f"shared{self.shared + k}" for k in range(len(names))]
        self.shared += len(names)
        for array in arrays:
            self.local[array] = f"    {array} = cuda.shared.array({warps}, {self.emitter.real})"
        meet_warps(2, text, names, gatherings, arrays, warps)

    def _store(self, used):
        """Emit the last pass, which stores the outputs."""
        text, form, emitter = self.text, self.form, self.emitter
        rows, after = [], []

        def steps():
            lines = []
            for k, (e, o, mode) in enumerate(self.results):
                if mode == "columns":
                    self.add_to_columns(o, emitter.value(e, "f"), lines, after)
                    continue
                value = emitter.stored(e, o.kind)
                if mode == "row":
                    rows.append(f"{o.name}[{o.index}] = {value}")
                elif form.vector:
                    self.array(f"near_{o.name}", LANES, o.kind.text)
                    lines.append(f"near_{o.name}[v] = {value}")
                    four = ", ".join(f"near_{o.name}[{lane}]" for lane in range(LANES))
                    after.append(f"store4({o.name}, {o.index.replace(' + j', ' + c')}, {four})")
                else:
                    lines.append(f"value{k} = {value}")
                    after.append(f"{o.name}[{o.index}] = value{k}")
            return lines

        self._pass(used, steps, after)
        if rows:
            if form.alias:  # other threads may still read what this overwrites
                text.line(2, "cuda.syncthreads()" if form.team > 32 else "cuda.syncwarp()")
            text.line(2, "if lane == 0 and here:" if form.guards_rows else "if lane == 0:")
            text.all_lines(3, rows)

    # -- sums over rows: each team of threads has one per column. The sums are in registers if the
    # row's values are; otherwise in the output, a temporary array with one row per team. Another
    # launch adds these rows.

    def add_to_columns(self, o, value, lines, after):
        """Add one element to the sum of its column."""
        text = "sum_{}[e]" if self.form.units else "{}[team * n_j + j]"
        if self.form.units or not self.form.vector:
            lines.append(f"{text.format(o.name)} += {value}")
            return
        self.array(f"near_{o.name}", LANES, self.emitter.real)
        lines.append(f"near_{o.name}[v] = {value}")
        parts = [f"part{lane}" for lane in range(LANES)]
        after.append(f"{', '.join(parts)} = load4({o.name}, team * n_j + c)")
        sums = [f"{part} + near_{o.name}[{lane}]" for lane, part in enumerate(parts)]
        after.append(f"store4({o.name}, team * n_j + c, {', '.join(sums)})")

    def begin_columns(self, size):
        """Set the column sums to 0. size: elements of a row that a thread keeps."""
        text, real = self.text, self.emitter.real
        if not self.summed:
            return
        text.line(1, f"team = cuda.blockIdx.x * {self.form.each} + mine")
        if size:
            for o in self.summed:
                self.array(f"sum_{o.name}", size, real)
            text.line(1, f"for e in range({size}):")
            for o in self.summed:
                text.line(2, f"sum_{o.name}[e] = {real}(0)")
            return
        self._columns_store({o.name: [f"{real}(0)"] * LANES for o in self.summed})

    def end_columns(self, size):
        """Write the sums held in registers to the output."""
        if self.summed and size:
            places = [f"{LANES} * u + {lane}" for lane in range(LANES)]
            if not self.form.vector:
                places = ["u"]
            self._columns_store(
                {o.name: [f"sum_{o.name}[{p}]" for p in places] for o in self.summed}
            )

    def _columns_store(self, values):
        """Have every thread write its columns' sums. values: {output: texts of one access}."""

        def write(indent):
            for name, texts in values.items():
                if self.form.vector:
                    self.text.line(indent, f"store4({name}, team * n_j + c, {', '.join(texts)})")
                else:
                    self.text.line(indent, f"{name}[team * n_j + c] = {texts[0]}")

        self.over(1, write, "n_j")
