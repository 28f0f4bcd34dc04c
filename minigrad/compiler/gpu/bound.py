"""Binds a GpuPlan to memory: records its launches once and replays them at every call.

The program's memory is one Buffer, the arena, which lives as long as the program: recorded launches
(and above all CUDA graphs) hold addresses. Arrays whose address can change between calls are copied
into the arena before the launches; results and written arrays are copied out afterwards. The arena
also holds the seed and counter of the random numbers.
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

LINE = 64  # bytes: each part of the arena begins at a multiple


class Bound:
    """A bound plan. launches: [[RecordedLaunch] per region]; scratch_bytes: of the kernels."""

    def __init__(self, plan):
        self.plan: Any = weakref.proxy(plan)  # weak, as the plan holds this object
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
        """Return an Array over the arena, `at` bytes from its start."""
        base = self._bases.get(dtype)
        if base is None:
            buffer = self.arena.buffer
            buffer.owners += 1
            count = self.arena.size // dtype.itemsize
            base = self._bases[dtype] = Array(buffer, (count,), dtype)
            base.is_flat = False
        return base.view(shape, strides, at // dtype.itemsize)

    def at(self, ref):
        """Return the Array of a Ref, in the arena or in captured memory."""
        place = self.plan.arena.offsets.get(ref.value)
        if place is None:
            return ref.value.storage.view(ref.shape, ref.strides, ref.offset)
        step = ref.dtype.itemsize
        return self.array(ref.dtype, ref.shape, ref.strides, place + ref.offset * step)

    def whole(self, value, shape=None):
        """Return the Array of a whole Value that has a place in the arena."""
        shape = (value.size,) if shape is None else shape
        place = self.plan.arena.offsets[value]
        return self.array(value.dtype, shape, contiguous_strides(shape), place)

    # -- launches ------------------------------------------------------------------------------

    @interruptible
    def bind(self):
        """Record the launches; record them again if outside memory has moved since."""
        if self._epoch == moves.count:
            return
        count = moves.count
        addresses = self._outside()
        if addresses != self._addresses:
            self._addresses = None  # in case recording is interrupted
            self._record()
            self._addresses = addresses
        self._epoch = count

    def _outside(self):
        """Return the addresses outside the arena that launches hold."""
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
        self._scratch = recorder  # keeps scratch alive whose addresses are recorded
        self.scratch_bytes = recorder.scratch_bytes
        self.segments = []
        for first, last, checks in self.plan.segments:
            launches = [x for region in self.launches[first:last] for x in region]
            self.segments.append((replayable(self.device, launches), checks))

    # -- running -------------------------------------------------------------------------------

    @uninterrupted
    def run(self, sources, returned, targets, numbers):
        """Run the program; return 0, or the number of the check that failed.

        Args:
            sources: an Array per staged Value, on this device or the host.
            returned: those of them that the program writes to.
            targets: an Array per result, of its size.
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
            self._copy_in(np.array(numbers, np.int64), self.seed_and_counter)
        failed = self._replay()
        for value, source in zip(plan.returned, returned, strict=True):
            copy(self.whole(value), source)
        if not failed:
            for ref, target in zip(plan.results, targets, strict=True):
                copy(self.whole(ref.value, target.shape), target)
        return failed

    def _upload(self, value, source):
        """Copy host numbers into the arena, if they have changed."""
        data = backend.values(source)
        if self._uploaded.get(value) != data.tobytes():
            self._copy_in(data, self.whole(value))
            self._uploaded[value] = data.tobytes()  # only after the copy

    def _copy_in(self, data, target):
        self.device.copy_flat(self.device.from_numpy(data, target.dtype), target)

    def _replay(self):
        for launches, checks in self.segments:
            launches.replay()
            if checks:
                status = self.device.to_numpy(self.status)
                for number in checks:
                    if status[number - 1]:
                        return number
        return 0


class BoundPlaces:
    """at(ref) while launches are recorded: the Array of a Ref; also the memory of checks.

    Within one call equal Refs are one Array, so that kernels know what they overwrite.
    """

    def __init__(self, bound):
        self._bound, self.state = bound, bound.seed_and_counter
        self._made = {}

    def next_call(self):
        self._made = {}

    def __call__(self, ref):
        if not isinstance(ref, Ref):
            return ref
        ref = rooted(ref, self._bound.plan.owner)
        array = self._made.get(ref)
        if array is None:
            array = self._made[ref] = self._bound.at(ref)
        return array

    def status(self, check):
        """Return the bool of shape () that tells whether check number `check` failed."""
        return self._bound.array(bool_, (), (), self._bound.status_at + check - 1)
