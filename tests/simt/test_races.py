"""Data races against brute force: random programs, from all of whose accesses every pair is known.

The first race must be found at the very access that makes it, and no other access may be accused.
"""

import numpy as np
import pytest

from tests.simt.brute import Both

KINDS = ["read", "read", "write", "write", "atomic"]


def pattern(rng, lanes, cells):
    """Elements that lanes use: their own, a neighbour's, those of a few, one for all."""
    own = lanes.thread % cells
    kind = rng.integers(8)
    if kind <= 2:
        return own
    if kind == 3:
        return (own + rng.integers(1, 3)) % cells
    if kind == 4:
        return rng.integers(0, cells, lanes.count)
    if kind == 5:
        return own // int(rng.choice([2, 4, 32])) % cells
    if kind == 6:
        return own ^ 1 if cells % 2 == 0 else own
    return np.full(lanes.count, rng.integers(cells))


def a_mask(rng, lanes):
    kind = rng.integers(7)
    if kind <= 2:
        return None
    if kind == 3:
        return lanes.thread == rng.integers(lanes.threads)
    if kind == 4:
        return lanes.thread < rng.integers(1, lanes.threads + 1)
    if kind == 5:
        return lanes.block == rng.integers(lanes.blocks)
    mask = rng.random(lanes.count) < 0.5
    return mask if mask.any() else None


def an_access(rng, both, dtypes, line, space=None):
    lanes = both.lanes
    space = space or ("shared" if rng.random() < 0.6 else "global")
    dtype = np.dtype(str(rng.choice(dtypes)))
    kind = str(rng.choice(KINDS))
    width = 4 if kind != "atomic" and rng.random() < 0.15 else 1
    total = (both.data.size if space == "global" else 64 * 4) // dtype.itemsize
    index = pattern(rng, lanes, total // width) * width
    if space == "global" and rng.random() < 0.5:  # every block its own part, most often
        parts = both.grid
        index = index % (total // parts // width * width) + (lanes.first + lanes.block) * (
            total // parts // width * width
        )
    if space == "global" and rng.random() < 0.1:
        index = np.int64(index[0])
    return both.access(kind, space, dtype, index, a_mask(rng, lanes), line, width)


def accused(both, error, races, line):
    """The error names a true race: this thread, the earlier thread, and the earlier line."""
    who, other = [
        (block[0] * both.threads + thread[0])
        for block, thread in ((error.block, error.thread), (error.other_block, error.other_thread))
    ]
    found = set()
    for thread, old in races:
        earlier, _, site = both.brute.events[old]
        found.add((thread, earlier, site))
        if site == line:  # both did it at once: neither was first
            found.add((earlier, thread, site))
    return (who, other, error.other_line) in found


def play(seed, dtypes, exact):
    """One random program, until its first race; returns how many accesses went without."""
    rng = np.random.default_rng(seed)
    threads = int(rng.choice([1, 2, 5, 32, 33, 40, 64]))
    blocks = int(rng.integers(1, 5))
    both = Both(blocks, threads, int(rng.integers(1, 4)), exact, 256 * 4)
    quiet = 0
    for first in range(0, blocks, both.per_wave):
        both.begin(first)
        both.share(64 * 4)
        for line in range(1, int(rng.integers(4, 16))):
            step = rng.random()
            if step < 0.25:
                some = None if rng.random() < 0.7 else rng.random(both.lanes.blocks) < 0.5
                both.barrier(some if some is None or some.any() else None)
            elif exact and step < 0.4:
                both.warp_barrier(a_mask(rng, both.lanes))
            elif exact and step < 0.5:
                both.fence(a_mask(rng, both.lanes))
            else:
                error, races = an_access(rng, both, dtypes, line)
                assert (error is not None) == bool(races), (seed, line)
                if error is not None:
                    assert accused(both, error, races, line), (seed, line, str(error))
                    return quiet
                quiet += 1
    return quiet


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtypes", [["f4"], ["f4", "f8"], ["f8", "i2"]], ids=str)
def test_random_programs(exact, dtypes):
    lengths = [play(seed, dtypes, exact) for seed in range(100)]
    assert max(lengths) >= 5  # else only first accesses were judged
