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
    lengths = [play(seed, dtypes, exact) for seed in range(60)]
    assert max(lengths) >= 5  # else only first accesses were judged


def begun(blocks=2, threads=4, exact=False):
    both = Both(blocks, threads, blocks, exact, 1024)
    both.begin(0)
    both.share(256)
    return both


def test_a_barrier_of_one_block_orders_nothing_in_another():
    for space in ("global", "shared"):
        both = begun()
        own = both.lanes.thread + (4 * both.lanes.block if space == "global" else 0)
        assert both.access("read", space, "f4", own, None, 1) == (None, [])
        both.barrier(np.array([True, False]))
        shifted = own ^ 1
        assert both.access("write", space, "f4", shifted, both.lanes.block == 0, 2) == (None, [])
        error, races = both.access("write", space, "f4", shifted, both.lanes.block == 1, 3)
        assert accused(both, error, races, 3)
        assert error.block == error.other_block == (1, 0, 0)


@pytest.mark.parametrize("exact", [False, True])
def test_a_barrier_of_all_blocks_forgets_shared_memory(exact):
    both = begun(exact=exact)
    guard = both.shared._guard
    for line in range(3):
        both.access("read", "shared", "f4", both.lanes.thread, None, line)
    assert len(guard.shadow.users["read"].waiting) == 3
    both.barrier(None)
    assert not guard.shadow.users["read"].waiting
    assert not guard.shadow.users["read"].any
    assert guard.log is None or not guard.log.entries


def test_what_was_acquired_is_passed_on():
    """Block 0 releases to block 1, which releases to block 2: three blocks, two counters."""
    both = begun(3, 2, exact=True)
    thread = both.lanes.thread + 2 * both.lanes.block
    data, first, second = np.int64(0), np.int64(10), np.int64(20)
    both.access("write", "global", "f4", data, thread == 0, 1)
    both.fence(thread == 0)
    both.access("atomic", "global", "f4", first, thread == 0, 2)
    both.access("atomic", "global", "f4", first, thread == 2, 3)
    both.fence(thread == 2)
    both.access("atomic", "global", "f4", second, thread == 2, 4)
    both.access("atomic", "global", "f4", second, thread == 4, 5)
    assert both.access("read", "global", "f4", data, thread == 4, 6) == (None, [])
    error, races = both.access("read", "global", "f4", data, thread == 5, 7)
    assert accused(both, error, races, 7)  # another thread of that block: no barrier yet


@pytest.mark.parametrize("together", ["barrier", "warp_barrier"])
def test_one_thread_fences_and_another_one_counts(together):
    both = begun(2, 4, exact=True)
    block, thread = both.lanes.block, both.lanes.thread
    both.access("write", "global", "f4", thread, block == 0, 1)
    both.fence(block == 0)
    getattr(both, together)(None)
    both.access("atomic", "global", "f4", np.int64(99), thread == 0, 2)
    getattr(both, together)(None)
    assert both.access("read", "global", "f4", 3 - thread, block == 1, 3) == (None, [])


@pytest.mark.parametrize("together", ["barrier", "warp_barrier"])
def test_a_fence_covers_what_was_known_before(together):
    both = begun(2, 4, exact=True)
    block, thread = both.lanes.block, both.lanes.thread
    both.access("write", "global", "f4", thread, block == 0, 1)
    getattr(both, together)(None)
    both.fence(thread == 0)
    both.access("atomic", "global", "f4", np.int64(99), thread == 0, 2)
    getattr(both, together)(None)
    assert both.access("read", "global", "f4", 3 - thread, block == 1, 3) == (None, [])


def test_what_comes_after_the_fence_is_not_released():
    both = begun(2, 4, exact=True)
    block, thread = both.lanes.block, both.lanes.thread
    both.fence((block == 0) & (thread == 0))
    both.access("write", "global", "f4", np.int64(0), (block == 0) & (thread == 0), 1)
    both.access("atomic", "global", "f4", np.int64(99), thread == 0, 2)
    error, races = both.access("read", "global", "f4", np.int64(0), (block == 1) & (thread == 0), 3)
    assert accused(both, error, races, 3)


def test_a_syncwarp_of_half_a_warp_orders_that_half():
    both = begun(1, 8, exact=True)
    thread = both.lanes.thread
    both.access("write", "shared", "f4", thread, None, 1)
    both.warp_barrier(thread < 4)
    assert both.access("read", "shared", "f4", thread ^ 1, thread < 4, 2) == (None, [])
    both.warp_barrier(thread >= 2)  # 2 and 3 pass on what they know of 0 and 1
    assert both.access("read", "shared", "f4", thread - 4, thread >= 4, 3) == (None, [])
    error, races = both.access("read", "shared", "f4", thread + 4, thread < 1, 4)
    assert accused(both, error, races, 4)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("kind", ["read", "atomic"])
@pytest.mark.parametrize("writer", [0, 3, 7])
def test_one_element_that_all_threads_use(exact, space, kind, writer):
    """Whoever writes it then, and whichever single thread has used it, is told from all."""
    for users in (None, np.arange(8) == 0, np.arange(8) == 7, np.arange(8) % 7 == 0):
        both = begun(1, 8, exact)
        both.access(kind, space, "f4", np.int64(0), users, 1)
        alone = np.arange(8) == writer
        error, races = both.access("write", space, "f4", np.int64(0), alone, 2)
        assert (error is None) == (users is not None and users.sum() == 1 and users[writer])
        assert error is None or accused(both, error, races, 2)
