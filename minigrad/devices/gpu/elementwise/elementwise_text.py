"""The text of elementwise kernels.

Few elements: one per thread, so that as many threads as possible hide the latency of memory. Many:
a block takes chunks of THREADS * copies elements, one after the other: all loads first, then the
formulas, then the stores. So a thread has several accesses in flight, and an output may be an
input. If all operands allow it, an access has four elements. The rest, less than a chunk, goes
element by element: neighbouring threads take neighbouring elements.
"""

from typing import NamedTuple

from minigrad.devices.gpu.kernel_text import (
    DENSE,
    LANES,
    GpuText,
    Space,
    inputs_read,
    zero,
)

THREADS = 256


class ElementwiseForm(NamedTuple):
    """What decides the text of a program's kernel.

    Attributes:
        kinds, layouts, narrow: see GpuText.
        classes: per layout its stride class: see `kernel_text.Space`.
        rank: the number of dimensions after merging neighbours.
        vector: whether accesses have four elements.
        copies: elements per thread in a chunk, a multiple of 4 for vectors; 1: no chunks, one
            element at a time.
    """

    kinds: tuple
    layouts: tuple
    classes: tuple
    rank: int
    vector: bool
    copies: int
    narrow: bool


def elementwise_text(program, form):
    """Return the GpuKernel of a program; arguments: (inputs, outputs, n, sizes and strides)."""
    writer = _Writer(program, form)
    writer.text.argument("n")
    writer.space = Space("e", form.rank, form.classes)
    if form.rank > 1 or any(kind == 2 for kind in form.classes):
        writer.text.space(writer.space)
    if form.copies == 1:
        writer.single()
    else:
        writer.chunks(form)
    return writer.text.made()


class ElementWriter:
    """The base of writers of kernels that compute outputs element by element.

    form: has `kinds`, `layouts` and `classes` as ElementwiseForm, and `narrow`.

    Attributes:
        text, emitter: those of the kernel, with inputs and outputs declared.
        layout: {name of an array: number of its layout}.
        read: Operands of the inputs that formulas read and that vary.
        results: the outputs' [(formula, Operand)].
        constants: lines before the loop, for values that are the same for all elements.
    """

    def __init__(self, program, form):
        text = GpuText(program, form, lambda k: ("0", form.classes[k] is not None))
        self.text, self.layout, self.emitter, self.constants = text, text.layout, text.emitter, []
        read = inputs_read(text.formulas)
        self.read = [o for o in text.inputs if o.name in read and o.varies]
        self.results = list(zip(text.formulas, text.outputs, strict=True))

    def values(self, registers):
        """Return (lines, texts of the outputs) for one element whose inputs are in registers."""
        emitter = self.emitter
        emitter.start_pass()
        emitter.registers = registers
        texts = [emitter.stored(e, o.kind) for e, o in self.results]
        self.constants += emitter.row
        return emitter.lines, texts


class _Writer(ElementWriter):
    """Writes the code of a thread for its elements of a chunk."""

    space: Space

    def _offset(self, offsets, name):
        return offsets[self.layout[name]]

    def single(self):
        """Write one element at a time, for all threads of the launch side by side."""
        text, emitter = self.text, self.emitter
        body = len(text.lines)
        text.line(1, "while i < n:")
        offsets = text.coordinates(2, self.space, "i")
        for name, o in emitter.operands.items():
            if o.varies:
                emitter.operands[name] = o._replace(index=self._offset(offsets, name))
        lines, texts = self.values({})
        text.all_lines(2, lines)
        for (_, o), value in zip(self.results, texts, strict=True):
            text.line(2, f"{o.name}[{self._offset(offsets, o.name)}] = {value}")
        text.line(2, "i += cuda.gridsize(1)")
        text.lines[body:body] = ["    " + x for x in ("i = cuda.grid(1)", *self.constants)]

    def chunks(self, form):
        """Write chunk after chunk; an incomplete last one element by element."""
        text, chunk = self.text, THREADS * form.copies
        body = len(text.lines)
        text.line(1, "while first < n:")
        if form.vector:
            text.line(2, f"if first + {chunk} <= n:")
            self.vectors(3, form.copies // LANES)
            text.line(2, "else:")
            self.elements(3, form.copies)
        else:
            self.elements(2, form.copies)
        text.line(2, f"first += I8(cuda.gridDim.x) * I8({chunk})")
        begin = ["t = U4(cuda.threadIdx.x)", f"first = I8(cuda.blockIdx.x) * I8({chunk})"]
        text.lines[body:body] = ["    " + x for x in (*begin, *self.constants)]

    def vectors(self, indent, units):
        """Write four elements per access, for a complete chunk."""
        text, offsets = self.text, []
        for u in range(units):
            text.line(indent, f"i{u} = first + {LANES} * (t + {u * THREADS})")
            offsets.append(text.coordinates(indent, self.space, f"i{u}", f"_{u}"))
        for u in range(units):
            for o in self.read:
                place = self._offset(offsets[u], o.name)
                if self.space.classes[self.layout[o.name]] in DENSE:
                    parts = ", ".join(f"v{u}_{lane}_{o.name}" for lane in range(LANES))
                    text.line(indent, f"{parts} = load4({o.name}, {place})")
                else:  # all four are one element
                    text.line(indent, f"v{u}_{o.name} = {o.name}[{place}]")
        stores = []
        for u in range(units):
            columns = []
            for lane in range(LANES):
                registers = {
                    o.name: f"v{u}_{lane}_{o.name}"
                    if self.space.classes[self.layout[o.name]] in DENSE
                    else f"v{u}_{o.name}"
                    for o in self.read
                }
                lines, texts = self.values(registers)
                text.all_lines(indent, lines)
                columns.append(texts)
            for k, (_, o) in enumerate(self.results):
                values = ", ".join(texts[k] for texts in columns)
                place = self._offset(offsets[u], o.name)
                stores.append(f"store4({o.name}, {place}, {values})")
        text.all_lines(indent, stores)

    def elements(self, indent, copies):
        """Write one element per access; skip those from n on."""
        text, offsets = self.text, []
        for c in range(copies):
            text.line(indent, f"i{c} = first + t + {c * THREADS}")
            text.line(indent, f"here{c} = i{c} < n")
            offsets.append(text.coordinates(indent, self.space, f"i{c}", f"_{c}"))
        for c in range(copies):
            for o in self.read:
                place = self._offset(offsets[c], o.name)
                text.line(
                    indent, f"v{c}_{o.name} = {o.name}[{place}] if here{c} else {zero(o.kind)}"
                )
        stores = []
        for c in range(copies):
            lines, texts = self.values({o.name: f"v{c}_{o.name}" for o in self.read})
            text.all_lines(indent, lines)
            stores.append(f"if here{c}:")
            for (_, o), value in zip(self.results, texts, strict=True):
                place = self._offset(offsets[c], o.name)
                stores.append(f"    {o.name}[{place}] = {value}")
        text.all_lines(indent, stores)
