"""Asynchronous copies: `cp_async` begins one, and its bytes stand after `cp_async_wait` only.

A thread's copies since its last `cp_async_commit` are a group; `cp_async_wait(n)` waits until at
most n groups of the thread, its latest, are still on their way. Copies that are in no group yet are
not waited for.
"""

from typing import Any

import numpy as np

from minigrad.simt.machine.masks import Misuse
from minigrad.simt.machine.tensor import WIDE, wide_place
from minigrad.simt.watch.memory import Region, Site
from minigrad.simt.watch.uses import READ


class AsyncCopy:
    """The copies that one call begins, of 16 bytes for each lane of `mask`.

    Attributes:
        group: the number of each lane's group.
        target, place: the region in shared memory, and each lane's first element there.
        source, start: the same in global memory; values: what was read.
    """

    def __init__(
        self, site: Site, mask, group, dtype, target: Region, place, source: Region, start
    ):
        self.site, self.mask, self.group, self.dtype = site, mask, group, dtype
        self.target, self.source, self.width = target, source, WIDE // dtype.itemsize
        self.place = np.broadcast_to(place, mask.shape)
        self.start = np.broadcast_to(start, mask.shape)
        self.values: Any = source.load(dtype, self.start, mask, site, self.width)
        target.begin_copy(dtype, self.place, mask, site, self.width)

    def land(self, lanes):
        """Write the elements of some lanes."""
        self.mask = self.mask & ~lanes
        self.source.watch(READ, self.dtype, self.start, lanes, self.site, self.width)
        self.target.land(self.dtype, self.place, self.values, lanes, self.site, self.width)


def _cp_async(call, f, m, tile, index, source, at):
    wave = f.wave
    target, dtype, place = wide_place(call, f, m, tile, index)
    region, kind, start = wide_place(call, f, m, source, at)
    if (target.space, region.space) != ("shared", "global") or dtype != kind:
        raise Misuse(
            f"{call.site.text} copies from global to shared memory, elements of one type,"
            f" not {kind} in {region.space} to {dtype} in {target.space} memory",
            "cuda.cp_async(tile, index, x, index): tile is a cuda.shared.array of x's type",
        )
    mask = np.ones(wave.lanes.count, bool) if m is None else m
    group = wave.commits.copy()
    wave.copies.append(AsyncCopy(call.site, mask, group, dtype, target, place, region, start))


def _commit(call, f, m):
    f.wave.commits[slice(None) if m is None else m] += 1


def _wait(call, f, m, groups):
    wave = f.wave
    for copy in wave.copies:
        done = copy.mask & (copy.group < wave.commits - int(groups))
        done = done if m is None else done & m
        if done.any():
            copy.land(done)
    wave.copies = [copy for copy in wave.copies if copy.mask.any()]


FUNCTIONS = {"cp_async": _cp_async, "cp_async_commit": _commit, "cp_async_wait": _wait}
