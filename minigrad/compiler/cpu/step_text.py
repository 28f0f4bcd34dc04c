"""Writes the source of a whole step: each kernel once, and a function that calls them in order.

`step(thread, T, table_at, ...)` runs part `thread` of T, or all T parts if it is -1: the results
are the same. The table holds addresses, in the order of `slots`. The function returns 0, or the
number of the check that failed and ended it.

A short step is written out, call by call. A long one, such as an unrolled loop, would take Numba
minutes to compile: it becomes a loop over a list of numbers, `code`, which holds the kernel and the
arguments of each call. The source then contains each form of call once.
"""

from array import array

from minigrad.compiler.cpu.invocation import Address, Writer

WRITTEN_OUT = 24  # the most calls that are written out
HEAD = 5  # numbers before the arguments of a call: form, next, who, extent, grain
MEET = 0  # the form of a barrier; its grain: the number of the last check before it


class StepText:
    """text: the source. slots: the entries of the table. code: the list of calls, or empty.

    checks: the instructions that can stop the step. functions: {text of a kernel: name}.
    """

    def __init__(self, regions, arena, n_threads, results, owner, has_blas=True):
        self.arena, self.n_threads, self._results = arena, n_threads, results
        self.slots, self._index = [("sync",), ("arena", arena.size)], {}
        writer = self.writer = Writer(n_threads, owner)
        self.regions = [[(call, writer.of(call)) for call in region] for region in regions]
        self.functions, self.checks, self.includes = (
            writer.functions,
            writer.checks,
            writer.includes,
        )
        calls = [call for region in regions for call in region]
        self.is_random = any(
            c.kind == "opaque" and c.item.instruction.op == "random" for c in calls
        )
        self.has_products = any(c.kind == "product" for c in calls)
        self.code, self.kinds = array("q"), set()  # kinds: as for `read` of source/step.py
        if self.is_random:
            self.slot(("seed",))
            self.slot(("counter",))
        # without BLAS, or with callbacks: runs of `code`, and what Python does between them
        self.pieces, self.has_blas = [], has_blas
        calls_back = any(c.calls_back for c in calls)
        self.in_pieces = calls_back or (self.has_products and not has_blas)
        is_short = len(calls) <= WRITTEN_OUT and not self.in_pieces
        lines = self._written_out() if is_short else self._listed()
        self.text = self._whole(lines)

    # -- addresses -----------------------------------------------------------------------------

    def slot(self, what):
        """Return the index of an entry in the table; add it if it is new."""
        index = self._index.get(what)
        if index is None:
            index = self._index[what] = len(self.slots)
            self.slots.append(what)
        return index

    def place(self, address):
        """Return (index in the table, byte offset from there)."""
        value, place = address
        at = self.arena.offsets.get(value)
        if at is not None:
            return 1, at + place
        if value in self._results:
            return self.slot(("result", self._results[value])), place
        return self.slot((value.kind, value)), place

    # -- written out ---------------------------------------------------------------------------

    def _written_out(self):
        lines, barriers, checks = [], 0, 0
        for region in self.regions:
            pad = ""
            if self.n_threads > 1:
                pad = "    "
                lines.append("for t in range(low, high):")
            for call, invocations in region:
                texts = [self._filled(call, x) for x in invocations]
                if not call.is_cut and self.n_threads > 1:
                    lines.append(f"{pad}if {call.owner} % T == t:")
                    texts = [pad + text for text in texts]
                lines += [pad + text for text in texts]
            if self.n_threads > 1:
                barriers += 1
                lines.append(f"if thread >= 0: meet(sync, T * {barriers})")
            stops = sum(call.stops for call, _ in region)
            if stops:
                checks += stops
                lines += self._leave_if_failed(str(checks))
        return lines

    def _filled(self, call, x):
        values = []
        for a in x.arguments:
            if isinstance(a, Address):
                slot, place = self.place(a)
                base = {0: "sync", 1: "arena"}.get(slot, f"p{slot}")
                values.append(f"{base} + {place}" if place else base)
            else:
                values.append(str(a))
        b, e = "0", str(x.extent)
        if call.is_cut:
            b, e = (f"first({x.extent}, {x.grain}, {t}, T)" for t in ("t", "t + 1"))
        return x.template.format(*values, b=b, e=e)

    # -- listed --------------------------------------------------------------------------------

    def _listed(self):
        forms, start, checks = {}, 0, 0
        for region in self.regions:
            for call, invocations in region:
                by_python = call.kind == "product" and not self.has_blas
                if by_python or call.calls_back:
                    kind = "callback" if call.calls_back else "product"
                    self.pieces += [("code", start, len(self.code)), (kind, call.item)]
                    start = len(self.code)
                    continue
                for x in invocations:
                    key = (x.template, *(isinstance(a, Address) for a in x.arguments))
                    number = forms.setdefault(key, len(forms) + 1)
                    numbers = []
                    for a in x.arguments:
                        numbers += self.place(a) if isinstance(a, Address) else (a,)
                    self._append(number, -1 if call.is_cut else call.owner, x.extent, x.grain,
                                 numbers)  # fmt: skip
            stops = sum(call.stops for call, _ in region)
            checks += stops
            if self.n_threads > 1 or stops:
                self._append(MEET, -1, 0, checks, ())
        self.pieces.append(("code", start, len(self.code)))
        return self._loop_over(forms)

    def _append(self, form, who, extent, grain, numbers):
        self.code.extend((form, len(self.code) + HEAD + len(numbers), who, extent, grain))
        self.code.extend(numbers)

    def _loop_over(self, forms):
        lines = [
            "code, meetings = i8_at(code_at), 0",
            "while at < stop:",
            "    form, following, who = code[at], code[at + 1], code[at + 2]",
            "    extent, grain = code[at + 3], code[at + 4]",
            f"    if form == {MEET}:",
            "        if thread >= 0 and T > 1:",
            "            meetings += 1",
            "            meet(sync, T * meetings)",
            *(f"        {x}" for x in self._leave_if_failed("grain")),
            "    else:",
            "        for t in range(low, high):",
            "            if 0 <= who and who % T != t:",
            "                continue",
            "            b, e = I8(0), extent",
            "            if who < 0:",
            "                b, e = first(extent, grain, t, T), first(extent, grain, t + 1, T)",
        ]
        lines += self._choose(list(forms.items()), 3)
        return [*lines, "    at = following"]

    def _choose(self, forms, indent):
        """Return a nest of ifs that selects the call of a form by bisection."""
        pad = "    " * indent
        if not forms:
            return [pad + "pass"]
        if len(forms) == 1:
            (template, *kinds), _ = forms[0]
            cells = [f"x{k}" for k in range(len(kinds))]
            call = pad + template.format(*cells, b="b", e="e")
            if not cells:
                return [call]
            kinds = "".join("a" if is_address else "n" for is_address in kinds)
            self.kinds.add(kinds)
            return [f"{pad}{', '.join(cells)}, = read_{kinds}(table, code, at + {HEAD})", call]
        half = len(forms) // 2
        return [
            f"{pad}if form < {forms[half][1]}:",
            *self._choose(forms[:half], indent + 1),
            f"{pad}else:",
            *self._choose(forms[half:], indent + 1),
        ]

    # -- assembly ------------------------------------------------------------------------------

    def _leave_if_failed(self, last):
        """Return lines that end the step if a check up to number `last` has failed.

        A thread that is ahead may have failed a later check: then all threads leave after that.
        """
        return [f"if 0 < i8_at(status)[0] <= {last}:", "    return i8_at(status)[0]"]

    def _whole(self, lines):
        kernels = [
            f"@restrict_jit\n{text.replace('{name}', name)}"
            for text, name in self.functions.items()
        ]
        tiles = self.writer.tiles.items()
        kernels += [f"@step_jit\n{text.replace('{name}', name)}" for text, name in tiles]
        head = ["table = i8_at(table_at)", "sync, arena = table[0], table[1]"]
        head.append("status = sync + 64")
        if self.n_threads > 1 or self.code:
            head.append("low, high = (0, T) if thread < 0 else (thread, thread + 1)")
        else:
            head.append("t = thread")
        if self.is_random:
            head.append("seed, counter = table[2], table[3]")
        if not self.code:
            first = 4 if self.is_random else 2
            head += [f"p{k} = table[{k}]" for k in range(first, len(self.slots))]
        body = "\n".join(f"    {x}" for x in (*head, *lines, "return I8(0)"))
        arguments = ["thread", "T", "table_at", "code_at", *(["at", "stop"] if self.code else [])]
        types = ",".join(["i8"] * len(arguments))
        step = f'@jit("i8({types})")\ndef step({", ".join(arguments)}):\n{body}\n'
        reads = "\n".join(f'read_{kinds} = read("{kinds}")' for kinds in sorted(self.kinds))
        return "\n\n".join([*kernels, *([reads] if reads else []), step])

    def ordered_includes(self):
        """Return the source files that the text needs, 'step' last."""
        wanted = {x for x in self.includes if self.has_blas or not x.startswith("product.")}
        return (*sorted(wanted - {"step"}), "step")
