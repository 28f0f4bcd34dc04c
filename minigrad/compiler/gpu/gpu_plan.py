"""Turns a Recording into a GpuPlan: passes, fusion, memory as on the CPU; device table calls.

Planning needs no GPU; `bound.Bound` gives the calls memory.
"""

import time
from typing import Any

from minigrad.compiler.cpu.schedule import ScheduledCall
from minigrad.compiler.fuse.arena import Arena
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.inplace import Sharing, rooted
from minigrad.compiler.gpu.bound import Bound
from minigrad.compiler.gpu.bundle import Bundle, bundled
from minigrad.compiler.gpu.calls import call_of
from minigrad.compiler.gpu.fuse import fuse_for_gpu, without_wraps
from minigrad.compiler.passes import simplify
from minigrad.compiler.program.items import MatMul
from minigrad.compiler.program.plan_base import PlanBase
from minigrad.compiler.program.program import ARGUMENT, CAPTURED
from minigrad.compiler.program.traffic import lives_of
from minigrad.compiler.trace.functions import weakly


class Unfit(Exception):
    """A step that cannot be compiled for its device and runs eagerly. why: a sentence."""

    def __init__(self, why):
        super().__init__(why)
        self.why = why


class GpuPlan(PlanBase):
    """A compiled step for a GPU. Raises Unfit if the program cannot run there.

    device: its name. regions: lists of one ScheduledCall each, in the order of the launches.
    kernels: {text of a TableCall that is a Loop: name}. segments: [(first region, end region,
    numbers of the checks at its end)].

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
        self.arena = Arena(self._lives())
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
        """Yield segments that end in checks, which the host reads before launching more."""
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
        """Return (Values that each call copies in, the subset that it copies back)."""
        touched, written = {}, set(self.written)
        for item in self.items:
            touched |= {r.value: None for r in (*item.reads, *item.writes)}
        for r in self.results:
            touched[r.value] = None
        staged = [v for v in touched if v.kind == ARGUMENT or v in moving or self.is_on_host(v)]
        for v in staged:  # an optimizer's numbers have names (`optim.traced`), and are only read
            if self.is_on_host(v) and (v in written or not v.name):
                does = "writes to" if v in written else "reads"
                what = f"an array {v.dtype}[{v.size}] on the CPU"
                raise Unfit(f"it {does} {what}, and computes on {self.device}")
        return staged, [v for v in staged if v in written]

    def _lives(self):
        """Return {Value: (first, last region)} of temporaries, results and staged Values.

        Every call is a region, because launches run in order on one stream. Results live until the
        end, staged Values from before the first launch.
        """
        end, lifetimes, last = len(self.regions), lives_of(self.regions), {}
        for t, (call,) in enumerate(self.regions):
            last |= {r.value: t for r in call.reads}
        for r in self.results:
            if r.value.is_temporary:
                value = self.owner.get(r.value, r.value)
                lifetimes[value] = lifetimes.get(value, (0, 0))[0], end
        for value in self.staged:
            stays = value in self.returned or self.is_on_host(value)  # it persists between calls
            lifetimes[value] = -1, end if stays else last.get(value, end)
        return lifetimes

    @staticmethod
    def is_on_host(value):
        """Return whether captured memory lies on the CPU: numbers that an optimizer reads there."""
        return (
            value.kind == CAPTURED and value.storage is not None and value.storage.device == "cpu"
        )

    @property
    def from_cache(self):
        """Return None: the program has no machine code; kernels are compiled at their first run."""

    def bind(self):
        """Allocate the program's memory and record its launches; see `bound.Bound`."""
        if self.bound is None:
            self.bound = Bound(self)
        self.bound.bind()

    def step(self, *operands):
        """Run the bound program; see `bound.Bound.run`."""
        return self.bound.run(*operands)


class GpuSharing(Sharing):
    """Results are copied into donated memory after the step: only size and dtype must fit."""

    refuses_masks = False

    def _cannot_take(self, value, argument):
        if value.size != argument.size or value.dtype is not argument.dtype:
            return "its size or dtype differs"
        return "the step writes to it" if argument in self.first else None

    def _donate(self, k, result):
        super()._donate(k, result)
        self.owner.pop(result.value, None)


def check_arguments(recording, groups, device):
    """Raise Unfit if the program touches an argument on another device. groups: one per Value."""
    touched = {r.value for i in recording.instructions for r in (*i.reads, *i.writes)}
    touched |= {r.value for r in recording.results}
    for value, group in zip(recording.arguments, groups, strict=True):
        where = group.storage.device
        if where != device and value in touched:
            raise Unfit(f"{group.where} lies on {where}, and the step computes on {device}, too")
