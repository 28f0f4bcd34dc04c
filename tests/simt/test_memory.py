"""Bounds, initialisation, and what the arguments of a launch are: regions that share bytes."""

import sys

import numpy as np
import pytest

from minigrad import cuda, simt
from minigrad.errors import (
    DataRaceError,
    OutOfBoundsError,
    SimulationError,
    UninitializedReadError,
)
from minigrad.simt.machine.lanes import Lanes
from minigrad.simt.watch.memory import Memory, Site

f4 = np.float32
SITE = Site("kernel.py", 7, 0, "x[i]", "kernel")


def memory(blocks=1, threads=32, watch=True):
    found = Memory("kernel", watch)
    found.begin(Lanes((blocks, 1, 1), (threads, 1, 1), 0, blocks))
    return found


@pytest.mark.parametrize("watch", [True, False])
@pytest.mark.parametrize("index", [-1, 8, 2**40, -(2**40)])
@pytest.mark.parametrize("kind", ["load", "store", "atomic"])
def test_every_access_is_checked(watch, index, kind):
    region = memory(watch=watch).buffer(np.zeros(32, np.uint8), "x")
    where = np.where(np.arange(32) == 5, index, np.arange(32) % 8)
    active = np.arange(32) == 5
    calls = {
        "load": lambda at, on: region.load(np.dtype("f4"), at, on, SITE),
        "store": lambda at, on: region.store(np.dtype("f4"), at, f4(1), on, SITE),
        "atomic": lambda at, on: region.atomic(np.dtype("f4"), "add", at, f4(1), on, SITE),
    }
    with pytest.raises(OutOfBoundsError, match=r"thread \(5, 0, 0\)") as caught:
        calls[kind](where, active)
    assert caught.value.thread == (5, 0, 0)
    assert str(index) in str(caught.value)
    assert "x, which has 8 of float32" in str(caught.value)
    calls[kind](where, np.arange(32) == 4)  # an index of an inactive lane means nothing
    with pytest.raises(OutOfBoundsError):
        calls[kind](np.int64(index), None)


def test_four_at_once_end_within():
    region = memory().buffer(np.zeros(64, np.uint8), "x")
    region.load(np.dtype("f4"), np.int64(12), None, SITE, 4)
    with pytest.raises(OutOfBoundsError):
        region.load(np.dtype("f4"), np.int64(13), None, SITE, 4)


def test_reads_see_what_was_written_by_whatever_size():
    found = memory(blocks=2, threads=2)
    tile = found.shared(16, "tile")
    own = found.lanes.block * (tile.stride // 8)
    tile.store(np.dtype("f8"), own, np.float64(0), np.array([1, 0, 1, 0], bool), SITE)
    halves = found.lanes.block * (tile.stride // 4)
    first = np.array([1, 0, 0, 0], bool)
    assert tile.load(np.dtype("f4"), halves + 1, first, SITE)[0] == 0
    with pytest.raises(UninitializedReadError, match="element 2 of x"):
        tile.load(np.dtype("f4"), halves + 2, first, SITE)


def test_each_block_writes_its_own_shared_memory():
    """What block 0 has written is no value for block 1."""
    found = memory(blocks=2, threads=1)
    tile = found.shared(4, "tile")
    at = found.lanes.block * (tile.stride // 4)
    tile.store(np.dtype("f4"), at, f4(1), np.array([True, False]), SITE)
    tile.load(np.dtype("f4"), at, np.array([True, False]), SITE)
    with pytest.raises(UninitializedReadError) as caught:
        tile.load(np.dtype("f4"), at, None, SITE)
    assert caught.value.block == (1, 0, 0)


def test_shared_memory_is_garbage_in_the_next_wave(monkeypatch):
    monkeypatch.setattr(sys.modules["minigrad.simt.launch"], "WAVE", 32)

    def kernel(out):
        tile = cuda.shared.array(32, f4)
        if cuda.blockIdx.x == 0:
            tile[cuda.threadIdx.x] = f4(3)
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[cuda.threadIdx.x]

    out = np.zeros(64, f4)
    with pytest.raises(UninitializedReadError, match=r"block \(1, 0, 0\)"):
        simt.launch(kernel, 2, 32, (out,))
    simt.launch(kernel, 2, 32, (out,), watch=False)
    assert (out[:32] == 3).all()
    assert np.isnan(out[32:]).all()


def test_the_error_names_the_element_by_its_indices():
    def kernel(out):
        out[cuda.threadIdx.x // 2, 1] = f4(1)

    with pytest.raises(DataRaceError, match=r"element \(0, 1\) of out"):
        simt.launch(kernel, 1, 4, (np.zeros((3, 2), f4),))


def test_races_show_through_overlapping_arguments():
    def kernel(left, right):
        i = cuda.threadIdx.x
        left[i] = right[i]

    x = np.arange(33, dtype=f4)
    with pytest.raises(DataRaceError):
        simt.launch(kernel, 1, 32, (x[1:], x[:-1]))
    with pytest.raises(DataRaceError):
        simt.launch(kernel, 1, 32, (x[:32], x[::-1][:32]))
    simt.launch(kernel, 1, 16, (x[:32:2], x[1:33:2]))  # they share no byte
    simt.launch(kernel, 1, 32, (x[:32], x[:32]))


def test_a_region_ends_where_its_arguments_end():
    def kernel(p, n):
        p[n] = f4(1)

    pool = np.zeros(64, np.uint8)
    simt.launch(kernel, 1, 1, (simt.Pointer(pool[16:32], f4), 3))
    with pytest.raises(OutOfBoundsError):
        simt.launch(kernel, 1, 1, (simt.Pointer(pool[16:32], f4), 4))
    with pytest.raises(OutOfBoundsError):
        simt.launch(kernel, 1, 1, (simt.Pointer(pool[16:32], f4), -1))


def test_read_only_arguments_are_not_written():
    def kernel(x):
        x[0] = f4(1)

    x = np.zeros(3, f4)
    x.flags.writeable = False
    with pytest.raises(SimulationError, match="read-only"):
        simt.launch(kernel, 1, 1, (x,))
    assert x[0] == 0


def test_static_shared_memory_has_a_limit():
    def kernel(x):
        a = cuda.shared.array(8192, f4)
        b = cuda.shared.array(8192, f4)
        a[0] = b[0] = x[0]

    with pytest.raises(SimulationError, match=r"49,152 bytes[\s\S]*65,536 bytes"):
        simt.launch(kernel, 1, 1, (np.zeros(1, f4),))


def test_each_wave_has_its_own_static_shared_memory():
    def kernel(out):
        a = cuda.shared.array(8192, f4)
        a[cuda.threadIdx.x] = cuda.blockIdx.x
        out[cuda.grid(1)] = a[cuda.threadIdx.x]

    out = np.zeros(40 * 1024)
    simt.launch(kernel, 40, 1024, (out,))  # 32 blocks fill a wave
    assert (out == np.arange(out.size) // 1024).all()


def test_many_readings_of_one_array_do_not_hold_memory(monkeypatch):
    """The list of readings is emptied into the records, and races are found as before."""
    monkeypatch.setattr("minigrad.simt.watch.shadow.MOST_WAITING", 64)

    def kernel(x, out, last):
        i = cuda.threadIdx.x
        total = f4(0)
        for k in range(20):
            total += x[(i + k) % 32]
        out[i] = total
        if last:
            x[i] = total

    x, out = np.ones(32, f4), np.zeros(32, f4)
    simt.launch(kernel, 1, 32, (x, out, False))
    assert (out == 20).all()
    with pytest.raises(DataRaceError, match="has read it"):
        simt.launch(kernel, 1, 32, (x, out, True))
