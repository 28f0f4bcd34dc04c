"""Groups of lanes within one warp that each have a mask of their own, and call at once."""

import numpy as np
import pytest

from minigrad import simt
from minigrad.errors import DataRaceError, InactiveLaneError, SimulationError
from tests.simt.programs import define

RNG = np.random.default_rng(7)


def launch(text, blocks, threads, *arguments):
    simt.launch(define(text)["kernel"], blocks, threads, arguments)


@pytest.mark.parametrize("call", ["cuda.syncwarp(m)", "v = cuda.ballot_sync(m, 1)"])
def test_threads_that_call_together_give_one_mask(call):
    text = f"def kernel(masks):\n    m = masks[cuda.threadIdx.x]\n    {call}\n"
    launch(text, 1, 4, np.array([3, 3, 12, 12]))
    for masks in ([3, 3, 15, 15], [3, 15, 12, 12]):
        with pytest.raises(SimulationError, match="with different masks"):
            launch(text, 1, 4, np.array(masks))
    text = f"def kernel(masks):\n    m = masks[cuda.threadIdx.x]\n    if m:\n        {call}\n"
    launch(text, 1, 4, np.array([3, 3, 0, 0]))
    with pytest.raises(SimulationError, match="names lanes of the warp that are not here"):
        launch(text, 1, 4, np.array([7, 7, 0, 0]))


def test_votes_of_groups():
    text = """
def kernel(masks, x, out):
    i = cuda.grid(1)
    m = masks[cuda.threadIdx.x]
    out[i, 0] = cuda.ballot_sync(m, x[i] > 2)
    out[i, 1] = cuda.any_sync(m, x[i] == 0)
    out[i, 2] = cuda.all_sync(m, x[i] > 0)
    out[i, 3] = cuda.eq_sync(m, x[i] > 4)
    out[i, 4] = cuda.match_any_sync(m, x[i])
    same, all_same = cuda.match_all_sync(m, x[i] // 6)
    out[i, 5] = same
    out[i, 6] = all_same
    out[i, 7] = cuda.shfl_sync(m, x[i], first[cuda.threadIdx.x])
"""
    group = RNG.permutation(np.arange(32) % 5)
    members = [np.flatnonzero(group == g) for g in group]
    masks = np.array([np.sum(np.int64(1) << mine) for mine in members])
    first = np.array([mine[0] for mine in members])
    x = RNG.integers(0, 8, 64)
    x[32:][group == 3] = 7  # a group that agrees
    out = np.zeros((64, 8), np.int64)
    simt.launch(define(text, first=first)["kernel"], 2, 32, (masks, x, out))
    for i in range(64):
        mine = members[i % 32]
        theirs = x[mine + i // 32 * 32]
        agree = len(set(theirs // 6)) == 1

        def bits(where, mine=mine):
            ballot = np.sum(np.int64(1) << mine[where])
            return int(ballot.astype(np.uint32).view(np.int32))

        assert out[i].tolist() == [
            bits(theirs > 2),
            (theirs == 0).any(),
            (theirs > 0).all(),
            len(set(theirs > 4)) == 1,
            bits(theirs == x[i]),
            bits(theirs >= 0) if agree else 0,
            agree,
            theirs[0],
        ]
    assert {out[i, 6] for i in range(64)} == {0, 1}


def test_one_atomic_for_all_lanes_of_a_key():
    """Lanes that share a key find each other, and the first of them adds for all."""
    text = """
def kernel(keys, bins, places):
    i = cuda.grid(1)
    if i < keys.size:
        mates = cuda.match_any_sync(cuda.activemask(), keys[i])
        leader = cuda.ffs(mates) - 1
        start = 0
        if cuda.laneid == leader:
            start = cuda.atomic.add(bins, keys[i], cuda.popc(mates))
        start = cuda.shfl_sync(mates, start, leader)
        places[i] = start + cuda.popc(mates & cuda.lanemask_lt())
"""
    keys = RNG.integers(0, 6, 150)
    bins, places = np.zeros(6, np.int64), np.zeros(150, np.int64)
    launch(text, 3, 64, keys, bins, places)
    assert (bins == np.bincount(keys, minlength=6)).all()
    for key in range(6):
        assert sorted(places[keys == key]) == list(range(bins[key]))


def test_a_shuffle_reads_within_its_group():
    text = """
def kernel(masks, x):
    t = cuda.threadIdx.x
    x[t] = cuda.shfl_xor_sync(masks[t], t, DISTANCE)
"""
    masks, x = np.array([3, 3, 12, 12]), np.zeros(4, np.int64)
    simt.launch(define(text, DISTANCE=1)["kernel"], 1, 4, (masks, x))
    assert x.tolist() == [1, 0, 3, 2]
    with pytest.raises(InactiveLaneError, match="reads from lane 2"):
        simt.launch(define(text, DISTANCE=2)["kernel"], 1, 4, (masks, x))


def test_a_syncwarp_of_groups_orders_each_group_alone():
    text = """
def kernel(masks, out):
    part = cuda.shared.array(4, np.int64)
    t = cuda.threadIdx.x
    part[t] = t
    cuda.syncwarp(masks[t])
    out[t] = part[t ^ DISTANCE]
"""
    masks, out = np.array([3, 3, 12, 12]), np.zeros(4, np.int64)
    simt.launch(define(text, DISTANCE=1)["kernel"], 1, 4, (masks, out))
    assert out.tolist() == [1, 0, 3, 2]
    with pytest.raises(DataRaceError):
        simt.launch(define(text, DISTANCE=2)["kernel"], 1, 4, (masks, out))
