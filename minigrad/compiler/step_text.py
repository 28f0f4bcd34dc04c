"""The text of a whole step: kernels, each once, and one function that calls them in order.

`step(t, T, table)` runs the part of thread t of T. The table holds addresses, in the order of
`slots`. It returns 0, or the number of the check that failed: nothing was run after it.
"""

import platform

from minigrad.compiler.opaque_text import opaque_text
from minigrad.compiler.program import Ref
from minigrad.kernels.blas import plan as product_plan
from minigrad.kernels.emitter import POINTER_OF, TYPE_OF

FLUSHES = platform.machine() in ("x86_64", "AMD64")
# Moments and gradients of a trained model become denormal numbers, many times slower than zeros:
# steps flush them (flush to zero, denormals are zero), as XLA's do, and restore the mode.
FLUSH = 0x8040


class StepText:
    """Builds the text. slots: what the table holds; checks: instructions that may stop the step."""

    def __init__(self, regions, arena, n_threads, result_values, owner):
        self.regions, self.arena, self.n_threads = regions, arena, n_threads
        self.slots, self.checks, self.functions = [], [], {}
        self.includes, self._names, self._results = set(), {}, result_values
        self._owner = owner
        self.barriers, self.lines = 0, []
        self.slots.append(("sync",))
        self.slots.append(("arena", arena.size))
        self.is_random = any(
            c.kind == "opaque" and c.item.instruction.op == "random" for r in regions for c in r
        )
        self.has_products = any(c.kind == "product" for r in regions for c in r)
        for region in regions:
            self._region(region)
        self.text = self._whole()

    # -- addresses -----------------------------------------------------------------------------

    def slot(self, what):
        """The name of a slot of the table."""
        found = self._names.get(what)
        if found is None:
            found = self._names[what] = f"p{len(self.slots)}"
            self.slots.append(what)
        return found

    def address(self, value, offset=0):
        """The text of an address inside a Value."""
        value = self._owner.get(value, value)
        place = offset * value.dtype.itemsize
        at = self.arena.offsets.get(value)
        if at is not None:
            return f"arena + {at + place}" if at + place else "arena"
        if value in self._results:
            name = self.slot(("result", self._results[value]))
        else:
            name = self.slot((value.kind, value))
        return f"{name} + {place}" if place else name

    def at(self, ref: Ref):
        """The text of a Ref's address."""
        return self.address(ref.value, ref.offset)

    def pointer(self, value, offset=0):
        """The text of a typed pointer."""
        return f"{POINTER_OF[value.dtype.name]}({self.address(value, offset)})"

    # -- calls ---------------------------------------------------------------------------------

    def _region(self, region):
        start = len(self.lines)
        for call in region:
            texts = getattr(self, f"_{call.kind}")(call)
            if not call.is_cut and self.n_threads > 1:
                self.lines.append(f"if {call.owner} % T == t:")
                texts = ["    " + text for text in texts]
            self.lines += texts
        if self.n_threads > 1 and len(self.lines) > start:
            self.barriers += 1
            self.lines.append(f"if T > 1: meet(sync, T * {self.barriers})")
        for call in region:
            if call.kind == "opaque" and call.item.instruction.stops:
                number = len(self.checks) + 1
                self.checks.append(call.item.instruction)
                self.lines.append(f"if i8_at(status)[0] == {number}:")
                self.lines += [f"    {x}" for x in self._leave(str(number))]

    def _leave(self, status):
        restore = ["write_modes(modes)"] if FLUSHES else []
        return [*restore, f"return I8({status})"]

    def _range(self, call, extent, grain):
        if not call.is_cut:
            return f"0, {extent}"
        return f"first({extent}, {grain}, t, T), first({extent}, {grain}, t + 1, T)"

    def _function(self, text):
        """The name of a kernel: equal texts are one function."""
        name = self.functions.get(text)
        if name is None:
            name = self.functions[text] = f"kernel{len(self.functions)}"
        return name

    def _loop(self, call):
        kernel = call.kernel
        self.includes |= set(kernel.includes)
        arguments = [self.pointer(value, offset) for value, offset in kernel.pointers]
        arguments += [f"f8_at({self.address(p)} + 64 * t)" for p in call.partials]
        if call.scratch is not None:
            at = self.address(call.scratch)
            if call.is_cut:
                at += f" + {self._scratch_step(call) * call.scratch.dtype.itemsize} * t"
            arguments.append(f"{POINTER_OF[call.scratch.dtype.name]}({at})")
        arguments += [str(n) for n in kernel.numbers]
        span = self._range(call, kernel.extent, kernel.grain)
        return [f"{self._function(kernel.text)}({', '.join(arguments)}, {span})"]

    def _scratch_step(self, call):
        return call.scratch.size // self.n_threads

    def _finish(self, call):
        """What threads have summed, added up."""
        lines, partials = [], iter(call.partials)
        for what, k, slot, count in call.kernel.partial:
            o = call.item.outputs[k]
            if what == "all":
                value = f"total({self.address(next(partials))}, T, {count})"
                kind = TYPE_OF[o.value.dtype.name]
                lines.append(f"{self.pointer(o.value, o.offset)}[0] = {kind}({value})")
                continue
            n, size = call.kernel.columns, call.scratch.dtype.itemsize
            kind = "f4" if size == 4 else "f8"
            stride = next((s for s in reversed(o.strides) if s), 1)
            at = f"{self.address(call.scratch)} + {slot * n * size}"
            lines.append(
                f"add_columns_{kind}({at}, {self._scratch_step(call)}, T, "
                f"{self.address(o.value, o.offset)}, {stride}, {n}, {count})"
            )
        return lines

    def _product(self, call):
        item = call.item
        a, b, out = item.a, item.b, item.out
        numbers, inner, offsets = product_plan(
            a.shape, a.strides, b.shape, b.strides, out.shape, out.strides
        )
        kind = TYPE_OF[out.dtype.name].lower()
        more = -1 if item.accumulate else 0
        t, n = ("t", "T") if call.is_cut else ("0", "1")
        lines = []
        for i, j, k in offsets:
            places = ", ".join(
                self.address(x.value, x.offset + o) for x, o in ((a, i), (b, j), (out, k))
            )
            rest = ", ".join(map(str, (*numbers, more, *inner)))
            lines.append(f"product_{kind}({t}, {n}, {places}, {rest})")
        return lines

    def _opaque(self, call):
        found = opaque_text(call.item.instruction, self.at)
        self.includes |= set(found.includes) - {"step"}
        before = ", ".join(map(str, found.before))
        if found.is_check:
            number = len(self.checks) + 1
            return [f"if {found.function}({before}) >= 0: i8_at(status)[0] = {number}"]
        after = "".join(f", {x}" for x in found.after)
        return [f"{found.function}({before}, 0, {found.extent}{after})"]

    # -- the whole -----------------------------------------------------------------------------

    def _whole(self):
        kernels = [
            f"@restrict_jit\n{text.replace('{name}', name)}"
            for text, name in self.functions.items()
        ]
        head = ["table = i8_at(table_at)", "sync, arena = table[0], table[1]"]
        head.append("status = sync + 64")
        if self.is_random:
            seed, counter = self.slot(("seed",)), self.slot(("counter",))
            head.append(f"seed, counter = {seed}, {counter}")
        for k in range(2, len(self.slots)):
            head.insert(2, f"p{k} = table[{k}]")
        if FLUSHES:
            head += ["modes = read_modes(I4(0))", f"write_modes(modes | I4({FLUSH}))"]
        lines = [*head, *self.lines, *self._leave("0")]
        body = "\n".join(f"    {x}" for x in lines)
        return "\n\n".join([*kernels, f'@jit("i8(i8,i8,i8)")\ndef step(t, T, table_at):\n{body}\n'])

    def ordered_includes(self):
        """The source files that the text needs, each after those that it needs itself."""
        order = (
            "mathematics_f4", "mathematics_f8", "powers", "random", "checks", "lazy", "gather",
            "scan", "windows",
        )  # fmt: skip
        found = [name for name in order if name in self.includes]
        return (*found, *(["blas"] if self.has_products else []), "step")
