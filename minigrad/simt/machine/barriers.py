"""`syncthreads` and its counting forms: all running threads of a block must arrive.

Threads that have returned from the kernel no longer count, as on a GPU.
"""

import numpy as np

from minigrad.errors import DivergentBarrierError
from minigrad.simt.machine.faults import fault
from minigrad.simt.machine.masks import DEAD
from minigrad.simt.machine.promotion import truth


def elsewhere(wave, lane):
    """Return an error's rows: where a missing lane took another path, as far as is known."""
    name = wave.lanes.name(lane)
    for site, mask in reversed(wave.returns):
        if mask is None or mask[lane]:
            return (("missing", name), ("went another way at", site.where))
    for site, before, within in reversed(wave.trail):
        was = before is None or before[lane]
        if was and within is not None and not within[lane]:
            return (("missing", name), ("went another way at", site.where))
    return (("missing", name),)


def _rows(lanes, mask):
    """Return the number of lanes of a mask in each block."""
    if mask is None:
        return np.full(lanes.blocks, lanes.threads)
    if mask is DEAD:
        return np.zeros(lanes.blocks, np.int64)
    return np.count_nonzero(mask.reshape(lanes.blocks, lanes.threads), axis=1)


def arrive(call, f, m):
    """Let blocks with an active thread pass the barrier; raise if threads are missing."""
    wave, lanes = f.wave, f.wave.lanes
    passing = None
    if m is not None:
        here = _rows(lanes, m)
        wanted = lanes.threads - _rows(lanes, wave.exited)
        bad = np.flatnonzero((here > 0) & (here < wanted))
        if bad.size:
            raise _divergent(call, wave, m, int(bad[0]), int(here[bad[0]]), int(wanted[bad[0]]))
        passing = here > 0
    wave.memory.barrier(None if passing is None or passing.all() else passing)
    if wave.counts is not None:
        wave.counts.barrier(call.site, m)


def _divergent(call, wave, m, block, here, wanted):
    lanes = wave.lanes
    first = block * lanes.threads
    rows = slice(first, first + lanes.threads)
    absent = ~m[rows] if wave.exited is DEAD else ~m[rows] & ~wave.exited[rows]
    present = first + int(np.flatnonzero(m[rows])[0])
    missing = first + int(np.flatnonzero(absent)[0])
    return fault(
        DivergentBarrierError,
        f"{call.site.text} is reached by {here} of {wanted} threads of its block",
        call.site,
        lanes,
        present,
        details=elsewhere(wave, missing),
        fix="put the barrier where all threads of the block pass: outside of the `if` or the loop",
    )


def _counting(reduce):
    """Return a barrier that gives `reduce` of a block's predicates to all its threads."""

    def run(call, f, m, predicate):
        arrive(call, f, m)
        lanes = f.wave.lanes
        held = np.broadcast_to(truth(predicate), (lanes.count,))
        held = held if m is None else held & m
        holding, here = _rows(lanes, held), _rows(lanes, m)
        result = reduce(holding, here).astype(np.int32)
        return result[0] if lanes.blocks == 1 else result[lanes.block]

    return run


FUNCTIONS = {
    "syncthreads": arrive,
    "syncthreads_count": _counting(lambda holding, here: holding),
    "syncthreads_and": _counting(lambda holding, here: holding == here),
    "syncthreads_or": _counting(lambda holding, here: holding > 0),
}
