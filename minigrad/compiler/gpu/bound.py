"""A GpuPlan with memory: its launches, written down once, replayed at every call.

Memory of the program is one Buffer, the arena, held as long as the program lives: launches that
were written down (and a CUDA graph above all) hold addresses. What may lie elsewhere at the next
call is copied into the arena before the launches, and what must end elsewhere out of it after them.
The seed and the counter of the random numbers are two numbers in the arena as well.
"""

import weakref
from typing import Any

import numpy as np

from minigrad.array.array import Array, moves
from minigrad.array.dtypes import bool_, int64, uint8
from minigrad.array.layout import contiguous_strides
from minigrad.compiler.fuse.inplace import rooted
from minigrad.compiler.gpu.recorder import recorder_of
from minigrad.compiler.program.program import Ref
from minigrad.devices import backend
from minigrad.devices.gpu.driver.graph import replayable
from minigrad.memory.interrupts import interruptible, ready, uninterrupted

LINE = 64  # bytes: each part of the arena begins at such a multiple


class Bound:
    """launches: [[Launch] per region]; scratch_bytes: of what kernels need among themselves."""

    def __init__(self, plan):
        self.plan: Any = weakref.proxy(plan)  # which has this: no cycle
        self.device = backend.device_named(plan.device)
        self.numbers_at = plan.arena.size
        self.status_at = self.numbers_at + LINE
        size = self.status_at + LINE * (1 + len(plan.checks) // LINE)
        self.arena = self.device.empty((size,), uint8)
        self._bases = {}
        self.seed_and_counter = self.array(int64, (2,), (1,), self.numbers_at)
        self.status = self.array(bool_, (len(plan.checks),), (1,), self.status_at)
        self.has_random = any(i.op == "random" for i in plan.recording.instructions)
        self._uploaded = {}  # Value on the host -> the bytes that the arena holds
        self._epoch, self._addresses = -1, None
        self.launches, self.scratch_bytes, self.segments = [], 0, []

    # -- memory --------------------------------------------------------------------------------

    def array(self, dtype, shape, strides, at):
        """An Array over the arena, `at` bytes from its begin."""
        base = self._bases.get(dtype)
        if base is None:
            buffer = self.arena.buffer
            buffer.owners += 1
            count = self.arena.size // dtype.itemsize
            base = self._bases[dtype] = Array(buffer, (count,), dtype)
            base.is_flat = False
        return base.view(shape, strides, at // dtype.itemsize)

    def at(self, ref):
        """The Array of a Ref to memory that is its own."""
        place = self.plan.arena.offsets.get(ref.value)
        if place is None:
            return ref.value.storage.view(ref.shape, ref.strides, ref.offset)
        step = ref.dtype.itemsize
        return self.array(ref.dtype, ref.shape, ref.strides, place + ref.offset * step)

    def whole(self, value, shape=None):
        """The Array of a whole Value that has a place in the arena."""
        shape = (value.size,) if shape is None else shape
        place = self.plan.arena.offsets[value]
        return self.array(value.dtype, shape, contiguous_strides(shape), place)

    # -- launches ------------------------------------------------------------------------------

    @interruptible
    def bind(self):
        """Writes the launches down, anew if memory from outside has moved since."""
        if self._epoch == moves.count:
            return
        count = moves.count
        found = self._outside()
        if found != self._addresses:
            self._addresses = None  # if it is not written to its end
            self._record()
            self._addresses = found
        self._epoch = count

    def _outside(self):
        """The addresses that launches hold of memory that is not the program's own."""
        values = {
            r.value: None
            for (call,) in self.plan.regions
            for r in (*call.reads, *call.writes)
            if r.value not in self.plan.arena.offsets
        }
        return [v.storage.buffer.address for v in values]

    def _record(self):
        recorder = recorder_of(self.device)
        at = BoundPlaces(self)
        self.launches = []
        for (call,) in self.plan.regions:
            recorder.next_call()
            first = len(recorder.launches)
            at.next_call()
            call.table.run(recorder, at)
            self.launches.append(recorder.launches[first:])
        self._scratch = recorder  # holds memory of which products of a library know the address
        self.scratch_bytes = recorder.scratch_bytes
        self.segments = []
        for first, last, checks in self.plan.segments:
            launches = [x for region in self.launches[first:last] for x in region]
            self.segments.append((replayable(self.device, launches), checks))

    # -- running -------------------------------------------------------------------------------

    @uninterrupted
    def run(self, sources, returned, targets, numbers):
        """Runs the program: 0, or the number of the check that did not hold.

        Args:
            sources: per staged Value an Array of its elements, of this device or the host.
            returned: those of them that the program writes to.
            targets: per result an Array of its size.
            numbers: (seed, counter) of the random numbers.
        """
        ready()
        self.bind()
        copy, plan = self.device.copy_flat, self.plan
        for value, source in zip(plan.staged, sources, strict=True):
            if plan.is_on_host(value):
                self._upload(value, source)
            else:
                copy(source, self.whole(value))
        if self.has_random:
            self._write_numbers(numbers)
        failed = self._replay()
        for value, source in zip(plan.returned, returned, strict=True):
            copy(self.whole(value), source)
        if not failed:
            for ref, target in zip(plan.results, targets, strict=True):
                copy(self.whole(ref.value, target.shape), target)
        return failed

    def _upload(self, value, source):
        """Copies numbers of the host into the arena, if they have changed."""
        data = backend.values(source)
        if self._uploaded.get(value) != data.tobytes():
            self._copy_in(data, self.whole(value))
            self._uploaded[value] = data.tobytes()  # once they are there

    def _write_numbers(self, numbers):
        """Copies seed and counter into the arena."""
        self._copy_in(np.array(numbers, np.int64), self.seed_and_counter)

    def _copy_in(self, data, target):
        self.device.copy_flat(self.device.from_numpy(data, target.dtype), target)

    def _replay(self):
        for launches, checks in self.segments:
            launches.replay()
            if checks:
                found = self.device.to_numpy(self.status)
                for number in checks:
                    if found[number - 1]:
                        return number
        return 0


class BoundPlaces:
    """at(ref) while launches are written down: the Array of a Ref, and what only checks need.

    Within one call equal places are one Array: by that kernels know what they write over.
    """

    def __init__(self, bound):
        self._bound, self.state = bound, bound.seed_and_counter
        self._made = {}

    def next_call(self):
        """Another call begins."""
        self._made = {}

    def __call__(self, ref):
        if not isinstance(ref, Ref):
            return ref
        ref = rooted(ref, self._bound.plan.owner)
        found = self._made.get(ref)
        if found is None:
            found = self._made[ref] = self._bound.at(ref)
        return found

    def status(self, check):
        """Where check number `check` says whether something is wrong: a bool of shape ()."""
        return self._bound.array(bool_, (), (), self._bound.status_at + check - 1)
