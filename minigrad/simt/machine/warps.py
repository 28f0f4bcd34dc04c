"""Functions of a warp: shuffles, votes, `syncwarp`. A mask names the lanes that take part.

All lanes of the warp that the mask names and that still run must be active here and give the same
mask; groups with masks of their own may call at once. A shuffle reads from lanes of its mask only.
"""

import numpy as np

from minigrad.errors import DivergentBarrierError, InactiveLaneError, SimulationError
from minigrad.simt.machine.barriers import elsewhere
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.lanes import WARP
from minigrad.simt.machine.masks import DEAD, NUMBERS, Misuse, describe

_FULL = 0xFFFFFFFF
_ALL, _WHOLE = np.int64(_FULL), np.int64(WARP)


def _vector(value, lanes):
    return np.broadcast_to(value, (lanes.count,))


def _take_part(call, f, m, mask, kind: type[SimulationError] = InactiveLaneError):
    """Check a mask; return (lanes that take part: bool (count,) or None for all; the masks).

    The masks are bits, int64, a scalar or one per lane: groups of one warp with masks of their own
    may call at once.
    """
    wave, lanes = f.wave, f.wave.lanes
    if wave.counts is not None and kind is InactiveLaneError:
        wave.counts.exchange(call.site, m)
    if mask.ndim == 0 and int(mask) & _FULL == _FULL:
        if m is None:
            return None, _ALL
        bits, named = _ALL, np.ones(lanes.count, bool)
    else:
        bits = mask.astype(np.int64) & _FULL
        named = ((bits >> lanes.position) & 1).astype(bool)
        lane = offender(lanes, m, ~named)
        if lane is not None:
            raise fault(
                kind,
                f"a thread calls {call.site.text} with a mask that leaves itself out",
                call.site,
                lanes,
                lane,
                got=f"mask {int(bits if bits.ndim == 0 else bits[lane]):#010x},"
                f" lane {lanes.position[lane]}",
                fix="name all lanes that call: 0xffffffff for the whole warp",
            )
        if bits.ndim:
            named = _agreed(call, lanes, m, bits, kind)
    if m is not None:
        here = np.zeros(lanes.warps, bool)
        here[lanes.warp[m]] = True
        absent = named & here[lanes.warp] & ~m
        if wave.exited is not DEAD and wave.exited is not None:
            absent &= ~wave.exited
        if absent.any():
            missing = int(np.flatnonzero(absent)[0])
            present = int(np.flatnonzero(m & (lanes.warp == lanes.warp[missing]))[0])
            raise fault(
                kind,
                f"{call.site.text} names lanes of the warp that are not here",
                call.site,
                lanes,
                present,
                details=elsewhere(wave, missing),
                fix="call it where the whole warp passes, or name only the lanes that are here",
            )
        named = named & m
    return named, bits


def _agreed(call, lanes, m, bits, kind):
    """Return the lanes that others name, bool (count,); they must give the same mask."""
    masks = np.zeros((lanes.warps, WARP), np.int64)  # 0: not active
    on = np.arange(lanes.count) if m is None else np.flatnonzero(m)
    masks[lanes.warp[on], lanes.position[on]] = bits[on]
    mates = masks[lanes.warp]
    is_named = (bits[:, None] >> np.arange(WARP)) & 1
    other = (is_named != 0) & (mates != 0) & (mates != bits[:, None])
    lane = offender(lanes, m, other.any(1))
    if lane is not None:
        raise fault(
            kind,
            f"threads of one warp call {call.site.text} with different masks",
            call.site,
            lanes,
            lane,
            got=f"mask {int(bits[lane]):#010x}",
        )
    together = np.bitwise_or.reduce(masks, 1)[lanes.warp]
    return ((together >> lanes.position) & 1).astype(bool)


def _shuffle(source):
    """Return the shuffle that reads from source(position, argument, size): (position, in range)."""

    def run(call, f, m, mask, value, argument, width=_WHOLE):
        lanes = f.wave.lanes
        if not isinstance(value, NUMBERS) or value.dtype.itemsize < 4:
            raise Misuse(
                f"{describe(value)} cannot be shuffled",
                "numbers of 32 and 64 bits can: convert it, np.int32(v)",
            )
        part, named = _take_part(call, f, m, mask)
        size = int(width)
        within = lanes.position % size
        wanted, inside = source(within, np.asarray(argument).astype(np.int64), size)
        position = np.where(inside, wanted, within) + (lanes.position - within)
        lane = np.arange(lanes.count) + position - lanes.position
        threads = lanes.thread + position - lanes.position  # outside the block: a missing lane
        there = threads < lanes.threads
        safe = np.where(there, lane, 0)
        if part is not None:
            there = there & part[safe] & ((named >> position) & 1 != 0)
        if not there.all():
            bad = offender(lanes, m, ~there)
            if bad is not None:
                raise fault(
                    InactiveLaneError,
                    f"{call.site.text} reads from lane {position[bad]}, which is not active",
                    call.site,
                    lanes,
                    bad,
                    details=_who(f.wave, lane, threads, bad),
                    fix="let all lanes that are read from call it too, and name them in the mask",
                )
        return value if value.ndim == 0 else value[safe]

    return run


def _who(wave, lane, threads, bad):
    if threads[bad] >= wave.lanes.threads:
        return (("missing", f"the block has {wave.lanes.threads} threads"),)
    return elsewhere(wave, int(lane[bad]))


def _from_index(within, argument, size):
    return argument % size, True


def _from_below(within, argument, size):
    return within - argument, within >= argument


def _from_above(within, argument, size):
    return within + argument, within + argument < size


def _across(within, argument, size):
    return within ^ argument, (within ^ argument) < size


def _ballots(f, m, part, predicate):
    """Return per warp, int64, the bits of participating lanes whose predicate holds."""
    lanes = f.wave.lanes
    held = _vector(predicate != 0, lanes)
    if part is not None:
        held = held & part
    weights = np.where(held, np.int64(1) << lanes.position, 0).astype(np.float64)
    return np.bincount(lanes.warp, weights, lanes.warps).astype(np.int64)


def _vote(decide):
    def run(call, f, m, mask, predicate):
        warp = f.wave.lanes.warp
        part, named = _take_part(call, f, m, mask)
        held = _ballots(f, m, part, predicate)[warp]
        there = _ballots(f, m, part, np.bool_(True))[warp]
        return decide(held & named, there & named)

    return run


def _match_any(call, f, m, mask, value):
    """Return the lanes of the warp that hold the same value, as bits."""
    lanes = f.wave.lanes
    part, named = _take_part(call, f, m, mask)
    there = np.ones(lanes.count, bool) if part is None else part
    values = _vector(value, lanes)
    _, number = np.unique(values, return_inverse=True)
    group = lanes.warp * (int(number.max()) + 1) + number
    weights = np.where(there, np.int64(1) << lanes.position, 0).astype(np.float64)
    return _bits(np.bincount(group, weights).astype(np.int64)[group] & named)


def _match_all(call, f, m, mask, value):
    """Return (mask, True) in warps whose lanes all hold the same value, (0, False) in others."""
    lanes = f.wave.lanes
    same = _match_any(call, f, m, mask, value)
    part, named = _take_part(call, f, m, mask)
    there = _bits(_ballots(f, m, part, np.bool_(True))[lanes.warp] & named)
    held = same == there
    return np.where(held, there, np.int32(0)), held


def _active(call, f, m):
    return _bits(_ballots(f, m, m, np.bool_(True))[f.wave.lanes.warp])


def _lanes_below(call, f, m):
    return ((np.int64(1) << f.wave.lanes.position) - 1).astype(np.uint32)


def _syncwarp(call, f, m, mask=_ALL):
    part, named = _take_part(call, f, m, mask, DivergentBarrierError)
    groups = [part] if named.ndim == 0 else _groups(part, named)
    for group in groups:
        f.wave.memory.warp_barrier(group)
    if f.wave.counts is not None:
        f.wave.counts.barrier(call.site, m, scope="warp")


def _groups(part, named):
    """Yield, for each mask, the lanes that call with it."""
    for mask in np.unique(named if part is None else named[part]):
        yield named == mask if part is None else part & (named == mask)


def _bits(held):
    """Return lane bits in the type that Numba uses: int32."""
    return held.astype(np.uint32).view(np.int32)


FUNCTIONS = {
    "shfl_sync": _shuffle(_from_index),
    "shfl_up_sync": _shuffle(_from_below),
    "shfl_down_sync": _shuffle(_from_above),
    "shfl_xor_sync": _shuffle(_across),
    "ballot_sync": _vote(lambda held, there: _bits(held)),
    "any_sync": _vote(lambda held, there: held != 0),
    "all_sync": _vote(lambda held, there: held == there),
    "eq_sync": _vote(lambda held, there: (held == 0) | (held == there)),
    "match_any_sync": _match_any,
    "match_all_sync": _match_all,
    "activemask": _active,
    "lanemask_lt": _lanes_below,
    "syncwarp": _syncwarp,
}
