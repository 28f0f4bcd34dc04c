"""Count a kernel's memory accesses and divergent branches for each place in its source.

    counts = Counts()
    launch(kernel, blocks, threads, arguments, counts=counts)

The machine and the memory call the hooks of `Counts` at every statement, once for all lanes. In
all hooks `active` is bool, one per lane, or None for all lanes of the wave; `site` is the `Site`
of the expression:

- `wave(lanes)`: by memory, when the blocks of a wave begin.
- `access(kind, region, site, byte, nbytes, active)`: by memory, for a "load", "store" or "atomic"
  of `nbytes` bytes per lane from the region's byte `byte` on: int64, a scalar or one per lane.
- `branch(site, active, taken)`: by the machine, where lanes decide: `if`, `while`, `for`,
  conditional expressions, `and`, `or`. taken: bool, a scalar or one per lane; arbitrary in inactive
  lanes. A loop calls it before every round: `taken` are the lanes that go on.
- `barrier(site, active, scope="block")`: by the machine; scope is "block" or "warp".
- `exchange(site, active)`: by the machine, for shuffles, votes and ballots.
- `matrix(site, active)`: by the machine, for products of tensor cores.
- `double(site, active)`: by the machine, for one arithmetic operation in float64.

Counts accumulate over launches; sums are over warps, as in a GPU's own profiler.
"""

import dataclasses
from typing import Any

import numpy as np

from minigrad.simt.counts import traffic


@dataclasses.dataclass
class Access:
    """The accesses of one expression to one array, summed over all warps that ran it.

    Attributes:
        kind: "load", "store" or "atomic".
        space: "global", "shared" or "constant".
        array: the array's name. nbytes: bytes that one lane accesses at a time.
        warps: warp accesses: how often a warp ran it with any lane active.
        lanes: the sum of active lanes: `lanes / (32 * warps)` is the active share.
        moved: bytes that the lanes requested.
        sectors: 32-byte sectors that the warp accesses touched; least: the fewest that could hold
            the same bytes. Both 0 in shared memory.
        turns: passes over the banks that shared memory needed; least_turns: the fewest for that
            many bytes. `turns > least_turns` means bank conflicts. Both 0 in global memory.
        meetings: for an atomic operation, the most lanes of one warp that used one element.
        first, worst: the first warp access and the costliest, each a `Sample`.
    """

    site: Any
    kind: str
    space: str
    array: str
    nbytes: int
    warps: int = 0
    lanes: int = 0
    moved: int = 0
    sectors: int = 0
    least: int = 0
    turns: int = 0
    least_turns: int = 0
    meetings: int = 0
    first: "Sample | None" = None
    worst: "Sample | None" = None

    @property
    def efficiency(self):
        """Return the needed share of the sectors moved, or of the passes: 1 is best."""
        if self.space == "shared":
            return self.least_turns / self.turns if self.turns else 1.0
        return self.least / self.sectors if self.sectors else 1.0


@dataclasses.dataclass(frozen=True)
class Sample:
    """One access of one warp, for a picture.

    Attributes:
        block, warp: (x, y, z) of the block, and the number of the warp in it.
        byte: int64 (32,), the first byte that each lane used, relative to the array's first byte.
        active: bool (32,).
        cost, least: sectors or passes over the banks, and the fewest possible.
    """

    block: tuple
    warp: int
    byte: np.ndarray
    active: np.ndarray
    cost: int
    least: int


@dataclasses.dataclass
class Branch:
    """A place where lanes decide: how often warps got there, how often their lanes disagreed."""

    site: object
    warps: int = 0
    split: int = 0
    lanes: int = 0


@dataclasses.dataclass
class Event:
    """An event at a place: `times` counts blocks or warps, `lanes` counts lanes."""

    site: object
    times: int = 0
    lanes: int = 0


class Counts:
    """The counts of one or several launches; the module says who calls the hooks.

    Attributes:
        accesses: [Access], by line; branches: [Branch]; barriers, warp_barriers, exchanges,
            matrices: [Event] per place; float64_operations: [Event] whose `lanes` count operations
            of single threads.
        launches, blocks, threads: how much ran.
    """

    def __init__(self):
        self._accesses, self._branches, self._events = {}, {}, {}
        self.launches = self.blocks = self.threads = 0
        self.lanes: Any = None

    def wave(self, lanes):
        """Count the blocks and threads of a wave that begins."""
        self.lanes = lanes
        self.launches += lanes.first == 0
        self.blocks += lanes.blocks
        self.threads += lanes.count

    def access(self, kind, region, site, byte, nbytes, active):
        """Count one statement's access to memory, for all warps at once."""
        lanes = self.lanes
        key = (site, kind, region.space, region.name, nbytes)
        access = self._accesses.get(key)
        if access is None:
            access = Access(site, kind, region.space, region.called(site), nbytes)
            self._accesses[key] = access
        byte = np.asarray(byte)
        if region.stride:
            byte = byte - lanes.block * region.stride  # every block's memory begins at bank 0
        table, used = traffic.by_warp(byte, active, lanes)
        if not used.size:
            return
        on = table >= 0
        access.warps += len(used)
        access.lanes += int(on.sum())
        access.moved += int(on.sum()) * nbytes
        if region.space == "shared":
            cost, least = traffic.bank_turns(table, nbytes)
            access.turns += int(cost.sum())
            access.least_turns += int(least.sum())
        else:
            cost, least = traffic.sectors(table, nbytes)
            access.sectors += int(cost.sum())
            access.least += int(least.sum())
        if kind == "atomic":
            met = traffic.meetings(table)
            access.meetings = max(access.meetings, int(met.max()))
        if access.first is None:
            access.first = _sample(table, used, cost, least, 0, lanes)
        k = int(cost.argmax())
        if access.worst is None or cost[k] > access.worst.cost:
            access.worst = _sample(table, used, cost, least, k, lanes)

    def branch(self, site, active, taken):
        """Count a decision; a warp splits where some of its active lanes go and some do not."""
        branch = self._branches.setdefault(site, Branch(site))
        here = self._here(active)
        going = traffic.lanes_per_warp(np.asarray(taken), active, self.lanes)
        branch.warps += int((here > 0).sum())
        branch.split += int(((going > 0) & (going < here)).sum())
        branch.lanes += int(here.sum())

    def barrier(self, site, active, scope="block"):
        """Count a barrier once for every block, or warp, that passes it."""
        here = self._here(active)
        per_block = here.reshape(self.lanes.blocks, -1).any(1)
        times = (here > 0).sum() if scope == "warp" else per_block.sum()
        self._event(scope, site, times, here.sum())

    def exchange(self, site, active):
        """Count a shuffle or a vote, per warp."""
        here = self._here(active)
        self._event("exchange", site, (here > 0).sum(), here.sum())

    def matrix(self, site, active):
        """Count a product of small matrices, per warp."""
        here = self._here(active)
        self._event("matrix", site, (here > 0).sum(), here.sum())

    def double(self, site, active):
        """Count an operation in float64, which most GPUs run at 1/32 or 1/64 of float32's speed."""
        here = self._here(active)
        self._event("double", site, (here > 0).sum(), here.sum())

    def _here(self, active):
        return traffic.lanes_per_warp(np.True_, active, self.lanes)

    def _event(self, kind, site, times, lanes):
        event = self._events.setdefault((kind, site), Event(site))
        event.times += int(times)
        event.lanes += int(lanes)

    def _events_of(self, kind):
        events = [event for (k, _), event in self._events.items() if k == kind]
        return sorted(events, key=_place)

    accesses = property(lambda self: sorted(self._accesses.values(), key=_place))
    branches = property(lambda self: sorted(self._branches.values(), key=_place))
    barriers = property(lambda self: self._events_of("block"))
    warp_barriers = property(lambda self: self._events_of("warp"))
    exchanges = property(lambda self: self._events_of("exchange"))
    matrices = property(lambda self: self._events_of("matrix"))
    float64_operations = property(lambda self: self._events_of("double"))


def _place(entry):
    return entry.site.file, entry.site.line  # within a line: in the order of execution


def _sample(table, used, cost, least, k, lanes):
    warps_per_block = lanes.warps // lanes.blocks
    block, warp = divmod(int(used[k]), warps_per_block)
    row = table[k]
    return Sample(
        lanes.block_of(block * lanes.threads),
        warp,
        np.maximum(row, 0),
        row >= 0,
        int(cost[k]),
        int(least[k]),
    )
