"""Writes calls as statements of a step's source, with holes for their arguments."""

from typing import NamedTuple

from minigrad.array.dtypes import float64
from minigrad.compiler.fuse.epilogue import rows_of_block, tile_text
from minigrad.compiler.program.program import Value
from minigrad.devices.cpu.kernel_calls import OwnPart
from minigrad.devices.gemm_plan import gemm_calls


class Address(NamedTuple):
    """A place in memory: a byte offset into a Value."""

    value: Value
    place: int


class Invocation(NamedTuple):
    """A statement with holes.

    template: text with {0}, {1}, ... for the arguments, and {b}, {e} for the range of the thread.
    arguments: Addresses and ints. extent, grain: the whole range, split at multiples of grain.
    """

    template: str
    arguments: list
    extent: int = 0
    grain: int = 1


class Writer:
    """Creates the Invocations of calls. functions: {source of a kernel: its name}."""

    def __init__(self, n_threads, owner):
        self.n_threads, self._owner = n_threads, owner
        self.functions, self.includes, self.checks = {}, set(), []
        self.tiles = {}  # text of a product with an epilogue -> name

    def of(self, call):
        """Return the Invocations of a ScheduledCall."""
        return getattr(self, f"_{call.kind}")(call)

    def address(self, value, offset=0):
        """Return the Address of an element of a Value."""
        return Address(self._owner.get(value, value), offset * value.dtype.itemsize)

    def _name(self, text):
        """Return the name of a kernel: equal texts share one function."""
        name = self.functions.get(text)
        if name is None:
            name = self.functions[text] = f"kernel{len(self.functions)}"
        return name

    def _loop(self, call):
        holes = self._kernel_holes(call)
        kernel = call.kernel
        text = f"{self._name(kernel.text)}({', '.join([*holes.texts, '{b}', '{e}'])})"
        return [Invocation(text, holes.values, kernel.extent, max(1, kernel.grain))]

    def _kernel_holes(self, call, first=0):
        """Return the arguments of a call's kernel, without its range."""
        kernel, holes = call.kernel, Holes(first)
        self.includes |= set(kernel.includes)
        for value, offset in kernel.pointers:
            holes.add(f"{value.dtype.pointer}({{}})", self.address(value, offset))
        for partial in call.partials:
            holes.add("f8_at({} + 64 * t)", self.address(partial))
        if call.scratch is not None:
            at, pointer = self.address(call.scratch), call.scratch.dtype.pointer
            if call.is_cut:
                step = self._scratch_step(call) * call.scratch.dtype.itemsize
                holes.add(f"{pointer}({{}} + {{}} * t)", at, step)
            else:
                holes.add(f"{pointer}({{}})", at)
        for n in kernel.numbers:
            holes.add("{}", n)
        return holes

    def _tile(self, call, plan):
        """Return the Invocation of a product in blocks of rows, each followed by its epilogue."""
        item, kernel = call.item, call.kernel
        (m, n, k, lda, ldb, ldc, ta, tb), _, ((i, j, o),) = plan
        self.includes.add(f"product.{item.out.dtype.code}")
        name = self._name(kernel.text)
        tile = tile_text(kernel, name, item.out.dtype, 1 if kernel.extent == m else n)
        tile = self.tiles.setdefault(tile, f"tile{len(self.tiles)}")
        holes = Holes()
        for x, offset in ((item.a, i), (item.b, j), (item.out, o)):
            holes.add("{}", self.address(x.value, x.offset + offset))
        for number in (n, k, lda, ldb, ldc, ta, tb, rows_of_block(n)):
            holes.add("{}", number)
        more = self._kernel_holes(call, len(holes.values))
        text = f"{tile}({', '.join([*holes.texts, *more.texts, '{b}', '{e}'])})"
        return Invocation(text, [*holes.values, *more.values], m, 16)

    def _scratch_step(self, call):
        return call.scratch.size // self.n_threads

    def _finish(self, call):
        """Return the Invocations that add up the partial sums of the threads."""
        if call.kernel is None:
            return [self._finish_opaque(call)]
        invocations, partials = [], iter(call.partials)
        for what, k, slot, count in call.kernel.partial:
            o, holes = call.item.outputs[k], Holes()
            if what == "all":
                kind, pointer = o.value.dtype.text, o.value.dtype.pointer
                holes.add(f"{pointer}({{}})[0]", self.address(o.value, o.offset))
                holes.add("{}", self.address(next(partials)))
                holes.add("{}", count)
                target, *rest = holes.texts
                text = f"{target} = {kind}(total({rest[0]}, T, {rest[1]}))"
                invocations.append(Invocation(text, holes.values))
                continue
            n, totals = call.kernel.columns, call.kernel.totals_at
            stride = next((s for s in reversed(o.strides) if s), 1)
            out = self.address(o.value, o.offset)
            size, sums = call.scratch.dtype.itemsize, call.scratch.dtype
            place = slot * n * size
            if totals is not None:
                place, sums = size * totals + 8 * slot * n, float64
            invocations.append(self._add_columns(call, (place, sums), out, stride, n, count))
        return invocations

    def _finish_opaque(self, call):
        """Sum the parts at the start of each thread's scratch into the only output."""
        (out,) = call.item.writes
        sums = 0, call.scratch.dtype
        return self._add_columns(call, sums, self.address(out.value, out.offset), 1, out.size, 1)

    def _add_columns(self, call, sums, out, stride, n, count):
        """Return the Invocation that sets out[j * stride] to the sum of column j over all threads.

        sums: (byte offset of a thread's sums in its scratch, their dtype).
        """
        holes, (place, dtype) = Holes(), sums
        pointer = call.scratch.dtype.pointer
        step = self._scratch_step(call) * call.scratch.dtype.itemsize
        holes.add(f"{dtype.pointer}({{}})", Address(call.scratch, place))
        holes.add("{}", step // dtype.itemsize)
        holes.texts.append("T")
        holes.add(f"{pointer}({{}})", out)
        for x in (stride, n, count):
            holes.add("{}", x)
        return Invocation(f"add_columns({', '.join(holes.texts)})", holes.values)

    def _product(self, call):
        item = call.item
        a, b, out = item.a, item.b, item.out
        plan = gemm_calls(a.shape, a.strides, b.shape, b.strides, out.shape, out.strides)
        assert plan is not None, "fusion copies what BLAS cannot read"
        numbers, inner, offsets = plan
        if call.kernel is not None:
            return [self._tile(call, plan)]
        part = "t, T" if call.is_cut else "0, 1"
        invocations = []
        for places in offsets:
            holes = Holes()
            for x, o in zip((a, b, out), places, strict=True):
                holes.add("{}", self.address(x.value, x.offset + o))
            for n in (*numbers, -1 if item.accumulate else 0, *inner):
                holes.add("{}", n)
            kind = out.dtype.code
            self.includes.add(f"product.{kind}")
            text = f"product_{kind}({part}, {', '.join(holes.texts)})"
            invocations.append(Invocation(text, holes.values))
        return invocations

    def _opaque(self, call):
        i = call.item.instruction
        if call.calls_back:
            self.checks.append(i)
            addresses = [self.address(r.value, r.offset) for r in (*i.inputs, *i.outputs)]
            return [Invocation(f"callback({len(self.checks)})", addresses)]
        kernel_call, holes = call.kernel_call, Holes()
        self.includes.add(kernel_call.include)
        for x in kernel_call.operands:
            holes.add(*self._operand(call, x))
        for x in kernel_call.numbers:
            holes.add(*x) if type(x) is tuple else holes.add("{}", x)
        if kernel_call.extent is None:
            self.checks.append(i)
            before = ", ".join(holes.texts)
            holes.add("{}", len(self.checks))
            text = f"if {kernel_call.function}({before}) >= 0: i8_at(status)[0] = {holes.texts[-1]}"
            return [Invocation(text, holes.values)]
        text = f"{kernel_call.function}({', '.join([*holes.texts, '{b}', '{e}'])})"
        return [Invocation(text, holes.values, kernel_call.extent)]

    def _operand(self, call, x):
        """Return (text, its values) of an operand of a KernelCall."""
        if type(x) is not OwnPart:
            return "{}", self.address(x.value, x.offset)
        if call.scratch is None:
            return "{}", x.address
        size = call.scratch.dtype.itemsize
        place, step = Address(call.scratch, x.begin * size), self._scratch_step(call) * size
        return ("{} + {} * t", place, step) if call.is_cut else ("{}", place)


class Holes:
    """Numbers the holes of a template."""

    def __init__(self, first=0):
        self.first, self.texts, self.values = first, [], []

    def add(self, text, *values):
        """Add a text with a hole {} for each value."""
        numbers = range(self.first + len(self.values), self.first + len(self.values) + len(values))
        self.texts.append(text.format(*(f"{{{n}}}" for n in numbers)))
        self.values += values
