"""Schedules a step: regions of calls that threads may run concurrently.

Threads meet at a barrier between two regions. Within a region, big calls are split into one range
per thread, and each small call goes to the thread with the least work.
"""

from typing import Any

from minigrad.array.dtypes import float32, float64
from minigrad.compiler.cpu.kernel_text import kernel_text
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.inplace import rooted
from minigrad.compiler.program.items import MatMul, Opaque, conflict
from minigrad.compiler.program.program import TEMPORARY, Value, whole
from minigrad.devices.cpu import kernel_calls

WORTH = 4000  # minimum nanoseconds on one core for a call to be split
FLOPS = 80  # per nanosecond on one core, roughly: products
SHARED = 300_000  # minimum nanoseconds of a step to wake threads, which takes 50,000 or more


class ScheduledCall:
    """One call of the step: what it reads and writes, and which threads run it.

    kind: 'loop', 'product', 'opaque' or 'finish' (adds up the sums of the threads).
    is_cut: whether each thread runs a range of it; owner: otherwise, the thread that runs it.
    """

    kernel: Any
    kernel_call: Any  # a KernelCall, of an opaque one
    scratch: Any
    table: Any  # in a GPU's plan: its TableCall

    def __init__(self, kind, item, reads, writes, ns):
        self.kind, self.item, self.ns = kind, item, ns
        self.reads, self.writes = list(reads), list(writes)
        self.is_cut, self.owner = False, 0
        self.stops = getattr(item, "stops", False)
        self.calls_back = getattr(item, "calls_back", False)
        self.kernel = self.scratch = None
        self.partials = []


def estimate(item):
    """Estimate the nanoseconds of an item on one core."""
    if type(item) is MatMul:
        more = estimate(item.epilogue) if item.epilogue else 0
        return item.flops / FLOPS + 300 + more
    if type(item) is Loop:
        return kernel_text(item, False).ns
    return 0 if item.calls_back else kernel_call(item.instruction).work + 50


def kernel_call(i, parts=1):
    """Return the KernelCall of an instruction; parts: how many threads share it."""
    more = dict(i.attributes)
    if i.op in ("scatter_add", "correlate"):  # whose scratch depends on it
        more["parts"] = parts
    if i.op == "random":  # names of the step: the run's counter plus the instruction's own
        more |= {"seed": ("seed",), "counter": ("counter + {}", more["counter"])}
    return getattr(kernel_calls, i.op)(*i.inputs, *i.outputs, **more)


def regions_of(items, owner, n_threads):
    """Return ([[ScheduledCall]], threads): 1 thread if the step is too small to wake more."""
    costs = [estimate(item) for item in items]
    if sum(costs) < SHARED or n_threads < 2:
        n_threads = 1
    regions, current = [], []
    for item, ns in zip(items, costs, strict=True):
        for call in _calls(item, ns, owner, n_threads):
            if current and (n_threads == 1 or any(conflict(x, call) for x in current)):
                regions.append(current)
                current = []
            current.append(call)
    if current:
        regions.append(current)
    for region in regions:
        _share(region, n_threads)
    return regions, n_threads


def _calls(item, ns, owner, n):
    reads, writes = ([rooted(r, owner) for r in refs] for refs in (item.reads, item.writes))
    if type(item) is Opaque:
        return _opaque_calls(item, ns, (reads, writes), n)
    if type(item) is MatMul:
        return _product_calls(item, ns, (reads, writes), owner, n)
    kernel = kernel_text(_rooted_loop(item, owner), n > 1 and ns > WORTH)
    call = ScheduledCall("loop", item, reads, writes, ns)
    call.kernel, call.is_cut = kernel, kernel.grain > 0
    calls = [call]
    _give_scratch(call, n)
    if kernel.partial:
        finish = ScheduledCall("finish", item, [], [], 50)
        finish.kernel, finish.scratch = kernel, call.scratch
        if call.scratch is not None:
            finish.reads.append(whole(call.scratch))
        for what, k, _, _ in kernel.partial:
            if what == "all":
                partial = Value(TEMPORARY, float64, 8 * n, name="partial")
                call.partials.append(partial)
                call.writes.append(whole(partial))
                finish.reads.append(whole(partial))
            o = item.outputs[k]
            finish.writes += [w for w in writes if w.value is owner.get(o.value, o.value)]
        finish.partials = call.partials
        calls.append(finish)
    return calls


def _product_calls(item, ns, refs, owner, n):
    """Return the calls of a product; fuse its epilogue if the kernel's range can be rows."""
    reads, writes = refs
    call = ScheduledCall("product", item, reads, writes, ns)
    call.is_cut = n > 1 and ns > WORTH
    if item.epilogue is None:
        return [call]
    kernel = kernel_text(_rooted_loop(item.epilogue, owner), True)
    rows, columns = item.out.shape
    if kernel.extent in (rows, rows * columns) and kernel.grain:
        call.kernel = kernel
        _give_scratch(call, n)
        return [call]
    alone = MatMul(item.instruction, item.a, item.b, item.out)
    return [x for part in (alone, item.epilogue) for x in _calls(part, estimate(part), owner, n)]


def _give_scratch(call, n):
    """Add scratch memory for each thread that runs the call's kernel."""
    kernel = call.kernel
    if kernel.scratch:
        size = -(-kernel.scratch // 16) * 16 * (n if call.is_cut else 1)
        call.scratch = Value(TEMPORARY, kernel.real, size, name="scratch")
        call.writes.append(whole(call.scratch))


def _opaque_calls(item, ns, refs, n):
    """Return the calls of a hand-written kernel: split into ranges, with its scratch memory."""
    (reads, writes), i = refs, item.instruction
    call = ScheduledCall("opaque", item, reads, writes, ns)
    if call.calls_back:
        return [call]
    parts = n if ns > WORTH and not call.stops else 1
    call.is_cut = parts > 1
    call.kernel_call = kernel_call(i, parts)
    if not call.kernel_call.scratch:
        return [call]
    call.scratch = Value(TEMPORARY, float32, call.kernel_call.scratch * parts, name="scratch")
    scratch = whole(call.scratch)
    call.writes.append(scratch)
    if i.op != "correlate" or not call.is_cut:
        return [call]
    call.writes = [scratch]  # each thread sums into its part
    finish = ScheduledCall("finish", item, [scratch], refs[1], 50)
    finish.scratch = call.scratch
    return [call, finish]


def _rooted_loop(loop, owner):
    """Return the loop with each Value replaced by the owner of its memory."""
    if not any(o.value in owner for o in loop.outputs) and not any(
        v in owner for v, _, _ in loop.loads
    ):
        return loop
    view = object.__new__(Loop)
    view.__dict__.update(loop.__dict__)
    view.loads = {(owner.get(v, v), o, s): e for (v, o, s), e in loop.loads.items()}
    view.outputs = [o._replace(value=owner.get(o.value, o.value)) for o in loop.outputs]
    return view


def _share(region, n):
    """Assign each call that is not split to the thread with the least work."""
    busy = [0.0] * n
    for call in region:
        if call.is_cut:
            busy = [b + call.ns / n for b in busy]
        else:
            call.owner = busy.index(min(busy))
            busy[call.owner] += call.ns
