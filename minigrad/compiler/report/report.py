"""step.report(): computes figures of a compiled step from its plan."""

import html
from typing import NamedTuple

from minigrad.compiler.program.items import MatMul, Opaque
from minigrad.compiler.program.labels import ValueNames, label, place_of, short_name
from minigrad.compiler.program.traffic import instruction_bytes, item_bytes
from minigrad.compiler.report.memory_plan import MemoryPlan
from minigrad.compiler.report.report_text import text_of
from minigrad.viz.units import format_shape, plural


class KernelForm(NamedTuple):
    """Calls of one form: a generated kernel, a product of one shape, or a hand-written kernel.

    Attributes:
        function: its name in the text.
        what: the operations it runs.
        kind: 'loop', 'product' or 'opaque'.
        calls, cut: the number of calls, and how many of them are split among all threads.
        read, written: bytes.
    """

    function: str
    what: str
    kind: str
    calls: int
    cut: int
    read: int
    written: int


class Alias(NamedTuple):
    """Outside memory that the step writes. how: 'in and out' if it is read first, else 'out'."""

    name: str
    how: str
    nbytes: int


class Refused(NamedTuple):
    """Memory that could have been reused but was not."""

    name: str
    other: str
    why: str


class ProgramReport:
    """One program of a compiled step.

    Attributes:
        traced: what was passed in, as text.
        instructions_before, instructions_after: recorded, and after the passes.
        passes: [(name, before, after)].
        kernels, calls: the number of generated functions, and of all calls of the step.
        products, opaque: the number of matrix products, and of hand-written kernel calls.
        epilogues: the number of products followed by formulas in blocks of rows.
        forms: [KernelForm].
        bytes_before: (read, written) by the recorded instructions one by one, as in eager
            execution.
        bytes_after: (read, written) by the calls.
        peak_before: the most bytes of temporaries and results alive at once, each freed after its
            last use.
        peak_after: bytes of the arena plus results that take over no donated memory.
        arena, separate: bytes of the arena, and of its temporaries without reuse.
        outside: bytes of parameters, state and arguments that the step touches.
        callbacks: [(custom Function and its method, or a sum over ranks, file:line)]: Python.
        aliases: [Alias].
        taken_over: [(temporary, whose memory it takes)].
        refused: [Refused].
        donated: [(argument, what became of its memory)].
        device, threads: the name of its device, and how many threads it may use.
        seconds: tracing and compiling, including planning_seconds and machine_code_seconds.
        planning_seconds: passes, fusion and memory planning.
        machine_code_seconds: Numba.
        from_cache: whether machine code came from the disk cache; None on a GPU, whose kernels are
            compiled when they first run.
    """

    def __init__(self, plan, trace=None, function=None):
        self.plan, self.device, self.threads = plan, plan.device, plan.threads
        self.names = ValueNames(
            [*plan.before.instructions, *plan.recording.instructions], trace, function
        )
        self.traced = _arguments(plan, trace, self.names)
        self.instructions_before = len(plan.before.instructions)
        self.instructions_after = len(plan.recording.instructions)
        self.passes = list(plan.passes)
        self._count(plan)
        memory = MemoryPlan(plan, self.names)
        self.arena, self.separate = plan.arena.size, plan.arena.separate
        self.results = sum(r.nbytes for k, r in enumerate(plan.results) if k not in plan.taken)
        self.peak_before, self.peak_after = memory.before.peak, self.arena + self.results
        self.outside = sum(
            v.nbytes for k in ("captured", "argument") for v in plan.before.values(k)
        )
        self._aliases(plan)
        self.donated = _donated(plan, trace, self.names)
        self.planning_seconds = plan.planning_seconds
        self.machine_code_seconds = plan.seconds - plan.planning_seconds
        self.seconds = trace.seconds if trace is not None else plan.seconds
        self.from_cache = plan.from_cache

    def _count(self, plan):
        moved = [instruction_bytes(i) for i in plan.before.instructions]
        self.bytes_before = sum(r for r, _ in moved), sum(w for _, w in moved)
        self.kernels = len(plan.kernels)
        by_form = {}
        for region in plan.regions:
            for call in region:
                if call.kind != "finish":  # a part of the call before it
                    by_form.setdefault(form_of(call, plan.kernels), []).append(call)
        self.forms = [_summed(key, calls) for key, calls in by_form.items()]
        self.calls = sum(f.calls for f in self.forms)
        self.products = sum(f.calls for f in self.forms if f.kind == "product")
        self.opaque = sum(f.calls for f in self.forms if f.kind == "opaque")
        instructions = plan.recording.instructions
        self.callbacks = [(i.name, place_of(i.line)) for i in instructions if i.op == "callback"]
        self.epilogues = sum(bool(getattr(item, "epilogue", None)) for item in plan.items)
        self.bytes_after = sum(f.read for f in self.forms), sum(f.written for f in self.forms)

    def _aliases(self, plan):
        is_read, how = set(), {}
        for item in plan.items:
            is_read |= {r.value for r in item.reads}
            for r in item.writes:
                if not r.value.is_temporary:
                    how.setdefault(r.value, "in and out" if r.value in is_read else "out")
        order = [v for kind in ("captured", "argument") for v in plan.before.values(kind)]
        self.aliases = [Alias(self.names(v), how[v], v.nbytes) for v in order if v in how]
        names = self.names.with_line
        self.taken_over = [(names(v), names(owner)) for v, owner in plan.owner.items()]
        self.refused = [Refused(names(v), names(x), why) for v, x, why in plan.refused]

    def __str__(self):
        return text_of(self)

    __repr__ = __str__


class Report:
    """All programs of a compiled step, most recently used first; prints as text.

    programs: [ProgramReport]. The attributes of the first are also attributes of the report:
    report.kernels, report.bytes_before, report.aliases, ...
    """

    def __init__(self, name, programs):
        self.name, self.programs = name, programs

    def __getattr__(self, attribute):
        if attribute.startswith("_") or attribute == "programs":
            raise AttributeError(attribute)
        return getattr(self.programs[0], attribute)

    def __str__(self):
        many = len(self.programs)
        head = f"compiled step '{self.name}'" + (f": {many} programs" if many > 1 else "")
        return "\n\n".join([head, *map(str, self.programs)])

    __repr__ = __str__

    def _repr_html_(self):
        style = "margin:0;font-size:12px;line-height:1.3;overflow-x:auto;white-space:pre"
        return f'<pre style="{style}">{html.escape(str(self))}</pre>'


# -- parts -------------------------------------------------------------------------------------


def _arguments(plan, trace, names):
    """Describe the arguments in words, from the facts of the trace or from the recording."""
    if trace is None:
        return [f"{names(v)} {v.dtype}[{v.size}]" for v in plan.before.arguments]
    texts = []
    for (where, what), value in trace.facts.items():
        if what == "shape":
            dtype = trace.facts[where, "dtype"]
            texts.append(f"{short_name(where)} {format_shape(value, dtype)}")
        elif what == "value":
            texts.append(f"{short_name(where)} = {value!r:.30}")
        elif what == "size":
            texts.append(f"{where} {value}")
    return texts


def form_of(call, kernels):
    """Return a key that is equal for calls of one form: (function, kind, more)."""
    item = call.item
    if type(item) is MatMul:
        (*_, m, k), n = item.a.shape, item.b.shape[-1]
        sign = "+=" if item.accumulate else ""
        batch = "x".join(map(str, item.out.shape[:-2]))
        more = label(item) if item.epilogue else ""
        name = f"product {batch + ': ' if batch else ''}{m}x{k} . {k}x{n} {sign}".strip()
        return name, "product", more
    if type(item) is Opaque:
        return item.instruction.op, "opaque", label(item)
    return kernels[call.kernel.text], "loop"


def _summed(key, calls):
    labels = list(dict.fromkeys(label(call.item) for call in calls))
    what = labels[0] if len(labels) == 1 else f"{labels[0]}; {'; '.join(labels[1:3])}"
    moved = [item_bytes(call.item) for call in calls]
    return KernelForm(
        key[0],
        what if len(labels) <= 3 else f"{what}; ...",
        key[1],
        len(calls),
        sum(call.is_cut for call in calls),
        sum(r for r, _ in moved),
        sum(w for _, w in moved),
    )


def _donated(plan, trace, names):
    """Return [(argument, what became of its memory)]."""
    if trace is None:
        return []
    takes, unused = {v.index: k for k, v in plan.taken.items()}, [m.where for m in trace.unused]
    rows = []
    for k in trace.donated:
        value = trace.capture.recording.arguments[k]
        if k in takes:
            text = f"result {takes[k]} is written over it"
        elif value.name in unused:
            text = "fits no result: its memory goes back to the pool"
        else:
            text = "written in place and returned"
        if trace.copies.get(k):
            calls = plural(trace.copies[k], "call")
            text += f"; in {calls} over a copy, as a clone or NumPy had the memory, too"
        rows.append((names(value), text))
    return rows
