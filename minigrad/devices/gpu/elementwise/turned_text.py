"""The text of elementwise kernels with a turned (transposed) input: its rows are output columns.

Neighbouring threads write neighbouring elements of the outputs, which are far apart in a turned
input. So a block takes a tile of SIDE x SIDE elements: its threads read turned inputs along *their*
rows, store them in shared memory, meet at a barrier, and continue along the outputs' rows. A shared
row is one bank longer than needed, so that neither direction has bank conflicts.
"""

from typing import NamedTuple

from minigrad.devices.gpu.elementwise.elementwise_text import THREADS, ElementWriter
from minigrad.devices.gpu.kernel_text import Space, zero

SIDE = 32  # rows and columns of a tile: a warp takes one of them
COPIES = SIDE * SIDE // THREADS  # elements per thread in a tile
TURNED = 4  # a stride class: 1 along the rows, anything along the columns
MOST_TURNED = 4  # inputs: four tiles of float64 are 33 KiB of shared memory, of at most 48


class TurnedForm(NamedTuple):
    """What decides the text of a program's kernel.

    Attributes:
        kinds, layouts, narrow: see GpuText.
        classes: per layout None if all strides are 0, TURNED, or its stride class along the
            columns.
        rank: the number of dimensions after merging neighbours, at least two; the last two are the
            rows and the columns of tiles.
    """

    kinds: tuple
    layouts: tuple
    classes: tuple
    rank: int
    narrow: bool


def turned_text(program, form):
    """Return the GpuKernel of (inputs, outputs, tiles, rows, columns, sizes and strides, steps).

    sizes and strides: those of tiles. steps: per layout its strides along rows and columns,
    except those that its class implies.
    """
    writer = _Writer(program, form)
    writer.write()
    return writer.text.made()


def _pitch(o):
    """Return the elements between rows of an input's shared tile; a bank has four bytes."""
    return SIDE + max(1, 4 // o.kind.itemsize)


def _shared(o):
    """Return the line that declares an input's shared tile."""
    return f"tile_{o.name} = cuda.shared.array({SIDE * _pitch(o)}, {o.kind.text})"


def _deep(c):
    """Return the text of the row (or column) in the tile of a thread's c-th element."""
    return f"(deep + {c * SIDE // COPIES})" if c else "deep"


class _Writer(ElementWriter):
    """Writes the code of a block for its tiles."""

    def __init__(self, program, form):
        super().__init__(program, form)
        text, self.form = self.text, form
        for name in ("tiles", "rows", "columns"):
            text.argument(name, text.word)
        moving = [None if kind is None else 2 for kind in form.classes]
        self.space = Space("b", form.rank, tuple(moving))  # of tiles
        text.space(self.space)
        self.turned = [o for o in self.read if form.classes[self.layout[o.name]] == TURNED]
        for k, kind in enumerate(form.classes):
            if kind not in (None, TURNED):
                text.argument(f"row_{k}", text.word)
            if kind in (2, TURNED):
                text.argument(f"column_{k}", text.word)

    def write(self):
        """Write the whole kernel."""
        text, last = self.text, self.form.rank - 1
        body = len(text.lines)
        text.line(1, "while tile < tiles:")
        for k, place in text.coordinates(2, self.space, "tile").items():
            text.line(2, f"at{k} = {place}")
        text.line(2, f"tall = rows - b{last - 1} * {SIDE}")  # the remaining rows and columns
        text.line(2, f"wide = columns - b{last} * {SIDE}")
        self._load()
        for c in range(COPIES):
            for o in self.turned:  # rows of the shared tile are columns of the outputs
                place = f"{_deep(c)} * {_pitch(o)} + lane"
                text.line(2, f"tile_{o.name}[{place}] = v{c}_{o.name}")
        text.line(2, "cuda.syncthreads()")
        self._results()
        text.line(2, "cuda.syncthreads()")  # before storing the next tile there
        text.line(2, f"tile = {text.index}(tile + cuda.gridDim.x)")
        begin = [
            *map(_shared, self.turned),
            "t = I4(cuda.threadIdx.x)",
            f"lane, deep = I4(t & {SIDE - 1}), I4(t // {SIDE})",
            f"tile = {text.index}(cuda.blockIdx.x)",
        ]
        text.lines[body:body] = ["    " + x for x in (*begin, *self.constants)]

    def _place(self, o, c):
        """Return the text of the place of a thread's c-th element of an operand."""
        k = self.layout[o.name]
        kind, deep = self.form.classes[k], _deep(c)
        if kind == TURNED:
            return f"at{k} + lane + {deep} * column_{k}"
        column = ("", " + lane", f" + lane * column_{k}")[kind]
        return f"at{k} + {deep} * row_{k}{column}"

    def _load(self):
        """Load all elements of the thread before using any; 0 where the tile overhangs."""
        text = self.text
        for c in range(COPIES):
            deep = _deep(c)
            text.line(2, f"here{c} = lane < wide and {deep} < tall")
            text.line(2, f"turned{c} = lane < tall and {deep} < wide")
            for o in self.read:
                here = "turned" if o in self.turned else "here"
                value = f"{o.name}[{self._place(o, c)}]"
                text.line(2, f"v{c}_{o.name} = {value} if {here}{c} else {zero(o.kind)}")

    def _results(self):
        """Write the formulas and the stores."""
        text, stores = self.text, []
        for c in range(COPIES):
            for o in self.turned:
                place = f"lane * {_pitch(o)} + {_deep(c)}"
                text.line(2, f"v{c}_{o.name} = tile_{o.name}[{place}]")
            lines, texts = self.values({o.name: f"v{c}_{o.name}" for o in self.read})
            text.all_lines(2, lines)
            stores.append(f"if here{c}:")
            for (_, o), value in zip(self.results, texts, strict=True):
                stores.append(f"    {o.name}[{self._place(o, c)}] = {value}")
        text.all_lines(2, stores)
