"""Recording -> GpuPlan: passes, fusion and memory, as for the CPU; calls of the device table.

Planning needs no GPU; `bound.Bound` gives the calls memory.
"""

import time
from typing import Any

from minigrad.compiler.cpu.outline import Outline
from minigrad.compiler.cpu.schedule import ScheduledCall
from minigrad.compiler.fuse.arena import Arena, lives_of
from minigrad.compiler.fuse.inplace import Sharing, rooted
from minigrad.compiler.fuse.loop import Loop
from minigrad.compiler.gpu.bound import Bound
from minigrad.compiler.gpu.bundle import Bundle, bundled
from minigrad.compiler.gpu.calls import call_of
from minigrad.compiler.gpu.fuse import fuse_for_gpu, without_wraps
from minigrad.compiler.gpu.refusals import check_host_values
from minigrad.compiler.passes import simplify
from minigrad.compiler.program.items import MatMul
from minigrad.compiler.program.program import ARGUMENT, CAPTURED
from minigrad.compiler.trace.functions import weakly


class GpuPlan(Outline):
    """A compiled step of a GPU.

    device: its name. regions: lists of one ScheduledCall each, in the order of the launches.
    kernels: {text of a TableCall that is a Loop: name}. segments: [(first region, beyond the last,
    numbers of the checks that end it)].

    staged: Values whose memory can differ at the next call (arguments, gradients found through
    their leaf) or lies on the host (the numbers of optimizers): each call copies them to their
    place in the arena. returned: the staged Values that are copied back. The arena also holds
    results and temporaries.
    """

    threads, has_products, code = 1, False, ()

    def __init__(self, recording, dead_slices, device, moving=()):
        began = time.perf_counter()
        self.before, self.device = recording, device
        recording, self.passes = simplify(recording, dead_slices)
        recording = without_wraps(recording)
        super().__init__(recording)
        self.items = bundled(fuse_for_gpu(recording))
        sharing = GpuSharing(self.items, self.results, recording.donated)
        self.owner, self.refused, self.taken = sharing.owner, sharing.refused, sharing.taken
        self.kernels = {}
        for item in self.items:
            self.regions.append([self._call(item)])
        self.segments = list(self._segments())
        self.staged, self.returned = self._staged(moving)
        self.arena = GpuArena(self.regions, self)
        self.slots = []
        self.bound: Any = None
        self.planning_seconds = self.seconds = time.perf_counter() - began
        self.machine_code = weakly(self.step), ()

    def _call(self, item):
        kind = {Loop: "loop", Bundle: "loop", MatMul: "product"}.get(type(item), "opaque")
        reads, writes = (
            [rooted(r, self.owner) for r in refs] for refs in (item.reads, item.writes)
        )
        call = ScheduledCall(kind, item, reads, writes, 0)
        if call.stops:
            self.checks.append(item.instruction)
        call.table = call_of(item, len(self.checks))
        if kind == "loop":
            call.kernel = call.table
            self.kernels.setdefault(call.table.text, f"kernel{len(self.kernels)}")
        return call

    def _segments(self):
        """A run of checks ends a segment: the host reads them before anything else is launched."""
        first, number, ending = 0, 0, []
        for t, (call,) in enumerate(self.regions):
            if ending and not call.stops:
                yield first, t, ending
                first, ending = t, []
            if call.stops:
                number += 1
                ending = [*ending, number]
        yield first, len(self.regions), ending

    def _staged(self, moving):
        """(Values that each call copies in, those of them that it copies back)."""
        touched, written = {}, set(self.written)
        for item in self.items:
            touched |= {r.value: None for r in (*item.reads, *item.writes)}
        for r in self.results:
            touched[r.value] = None
        staged = [v for v in touched if v.kind == ARGUMENT or v in moving or self.is_on_host(v)]
        check_host_values([v for v in staged if self.is_on_host(v)], written, self.device)
        return staged, [v for v in staged if v in written]

    @staticmethod
    def is_on_host(value):
        """Whether captured memory lies on the CPU: numbers that an optimizer reads there."""
        return (
            value.kind == CAPTURED and value.storage is not None and value.storage.device == "cpu"
        )

    @property
    def from_cache(self):
        """None: the program has no machine code of its own; kernels are compiled when first run."""

    def bind(self):
        """Gives the program memory and records its launches; see `bound.Bound`."""
        if self.bound is None:
            self.bound = Bound(self)
        self.bound.bind()

    def step(self, *operands):
        """Runs the program, which has been bound: see `bound.Bound.run`."""
        return self.bound.run(*operands)


class GpuSharing(Sharing):
    """Results are copied into donated memory after the step: size and dtype alone must fit."""

    refuses_masks = False

    def _cannot_take(self, value, argument):
        if value.size != argument.size or value.dtype is not argument.dtype:
            return "its size or dtype differs"
        return "the step writes to it" if argument in self.first else None

    def _donate(self, k, result):
        super()._donate(k, result)
        self.owner.pop(result.value, None)


class GpuArena(Arena):
    """Temporaries, results and what is staged, each at an offset of one Buffer.

    Every launch is a region: launches follow one another on one stream.
    """

    def __init__(self, regions, plan):
        self.plan = plan
        super().__init__(regions, ())
        del self.plan  # it holds this object: no cycle

    def find_lives(self, regions, outside):
        """{Value: (first, last region)}; results live to the end, staged Values from before it."""
        end, found, last = len(regions), lives_of(regions, outside), {}
        for t, (call,) in enumerate(regions):
            last |= {r.value: t for r in call.reads}
        for r in self.plan.results:
            if r.value.is_temporary:
                value = self.plan.owner.get(r.value, r.value)
                found[value] = found.get(value, (0, 0))[0], end
        for value in self.plan.staged:
            stays = value in self.plan.returned or self.plan.is_on_host(value)  # from call to call
            found[value] = -1, end if stays else last.get(value, end)
        return found


def build_for_gpu(recording, dead_slices, device, moving=()):
    """The GpuPlan of a recording. Raises Unfit if a program cannot run there."""
    return GpuPlan(recording, dead_slices, device, moving)
