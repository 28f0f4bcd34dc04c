"""Counts against counting by hand: sectors, banks, branches, barriers, operations in float64."""

import numpy as np
import pytest

from minigrad import cuda, simt
from minigrad.simt.counts import traffic
from minigrad.simt.counts.counts import Counts
from minigrad.simt.machine.lanes import Lanes

f4 = np.float32


def by_hand_sectors(row, nbytes):
    used = [b for b in row if b >= 0]
    touched = {byte // 32 for b in used for byte in range(b, b + nbytes)}
    return len(touched), -(-len(set(used)) * nbytes // 32)


def by_hand_turns(row, nbytes):
    """Words of 4 bytes per bank, for a whole warp, halves or quarters."""
    parts = min(max(1, nbytes // 4), 4)
    turns = least = 0
    for part in range(parts):
        words = {}
        lanes = row[part * 32 // parts : (part + 1) * 32 // parts]
        for byte in lanes:
            for k in range(max(1, nbytes // 4) if byte >= 0 else 0):
                word = byte // 4 + k
                words.setdefault(word % 32, set()).add(word)
        turns += max(map(len, words.values()), default=0)
        least += bool(words)
    return turns, least


def tables(seed, nbytes):
    rng = np.random.default_rng(seed)
    lane = np.arange(32)
    rows = [
        lane, lane * 2, lane * 32, lane * 33, lane // 4, lane[::-1], lane * 0 + 5, lane + 3,
        rng.integers(0, 64, 32), rng.integers(0, 4096, 32), rng.permutation(32), lane * 8,
    ]  # fmt: skip
    table = np.array(rows) * nbytes
    return np.where(rng.random(table.shape) < 0.2, -1, table)


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8, 16, 32])
def test_sectors_and_banks_by_hand(nbytes):
    for seed in range(5):
        table = tables(seed, nbytes)
        found = np.array(traffic.sectors(table, nbytes)).T.tolist()
        assert found == [list(by_hand_sectors(row, nbytes)) for row in table.tolist()]
        if nbytes <= 16:
            found = np.array(traffic.bank_turns(table, nbytes)).T.tolist()
            assert found == [list(by_hand_turns(row, nbytes)) for row in table.tolist()]
        most = [max([0, *(row.count(b) for b in row if b >= 0)]) for row in table.tolist()]
        assert traffic.meetings(table).tolist() == most


def test_unaligned_accesses_touch_one_sector_more():
    table = np.arange(32)[None] * 4 + 4
    assert [int(n) for (n,) in traffic.sectors(table, 4)] == [5, 4]
    assert [int(n) for (n,) in traffic.sectors(table[:, :1] + 26, 4)] == [2, 1]  # bytes 30 to 33


def test_lanes_are_put_into_their_warps():
    lanes = Lanes((3, 1, 1), (40, 1, 1), 0, 3)  # warps of 32 and 8 lanes
    byte = np.arange(120) * 4
    table, used = traffic.by_warp(byte, None, lanes)
    assert used.tolist() == list(range(6))
    assert (table >= 0).sum(1).tolist() == [32, 8] * 3
    assert table[3, :8].tolist() == [(40 + 32 + k) * 4 for k in range(8)]
    table, used = traffic.by_warp(np.int64(8), lanes.thread == 35, lanes)
    assert used.tolist() == [1, 3, 5]
    assert table[:, 3].tolist() == [8, 8, 8]


def counted(kernel, blocks, threads, *arguments):
    counts = Counts()
    simt.launch(kernel, blocks, threads, arguments, counts=counts)
    return counts


def test_accesses_of_a_kernel():
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[2 * i % x.size]

    x = np.zeros(100, f4)
    load, store = counted(kernel, 4, 32, x, x.copy()).accesses
    assert (load.kind, load.array, load.space, load.nbytes) == ("load", "x", "global", 4)
    assert (store.kind, store.array, store.lanes, store.warps) == ("store", "out", 100, 4)
    assert (store.moved, store.sectors, store.least) == (400, 13, 13)
    assert load.sectors == sum(len({2 * i % 100 * 4 // 32 for i in range(w, min(w + 32, 100))})
                               for w in range(0, 100, 32))  # fmt: skip
    assert load.least == 13
    assert load.efficiency == 13 / load.sectors
    assert store.site.text == "out[i]"
    assert load.first.byte[:4].tolist() == [0, 8, 16, 24]
    assert store.worst.cost == 4
    last = counted(kernel, 4, 32, x, x.copy()).accesses[1]
    assert last.first.active.all()


def test_shared_memory_and_conflicts():
    def kernel(out):
        tile = cuda.shared.array((32, 32), f4)
        i, j = cuda.threadIdx.x, cuda.threadIdx.y
        tile[i, j] = f4(1)
        cuda.syncthreads()
        out[cuda.blockIdx.x, j, i] = tile[j, i] + tile[0, 0]

    counts = counted(kernel, 2, (32, 32), np.zeros((2, 32, 32), f4))
    store, column, corner, out = counts.accesses
    assert (store.space, store.array) == ("shared", "tile")
    assert (store.warps, store.turns, store.least_turns) == (64, 64 * 32, 64)
    assert (column.turns, corner.turns) == (64, 64)  # one word serves all lanes
    assert corner.efficiency == 1
    assert store.efficiency == 1 / 32
    assert (out.sectors, out.least, out.turns) == (256, 256, 0)
    assert [e.times for e in counts.barriers] == [2]
    assert counts.blocks == 2
    assert counts.threads == 2048


def test_branches_count_warps_that_split():
    def kernel(out):
        i = cuda.grid(1)
        if i < 40:
            out[i] = f4(1)
        if cuda.threadIdx.x < 32:
            out[i] = f4(2)

    counts = counted(kernel, 2, 64, np.zeros(128, f4))
    splits = {b.site.text: (b.warps, b.split) for b in counts.branches}
    assert splits["i < 40"] == (4, 1)
    assert splits["cuda.threadIdx.x < 32"] == (4, 0)


def test_loops_split_where_lanes_leave():
    def kernel(out):
        i = cuda.grid(1)
        k = 0
        while k < i // 16:
            k += 1
        out[i] = f4(k)

    counts = counted(kernel, 1, 64, np.zeros(64, f4))
    assert [b.split for b in counts.branches] == [2]  # each of the two warps once


def test_atomics_shuffles_and_double_precision():
    def kernel(x, out):
        i = cuda.grid(1)
        total = x[i] * 0.5
        cuda.syncwarp()
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, 1)
        cuda.atomic.add(out, i // 8, f4(total))

    counts = counted(kernel, 2, 32, np.zeros(64, f4), np.zeros(8, f4))
    assert counts.accesses[1].meetings == 8
    assert [e.times for e in counts.exchanges] == [2]
    assert [e.times for e in counts.warp_barriers] == [2]
    assert {e.site.line for e in counts.float64_operations} == {
        kernel.__code__.co_firstlineno + 2,
        kernel.__code__.co_firstlineno + 4,
        kernel.__code__.co_firstlineno + 5,
    }
    assert counts.float64_operations[0].lanes == 64


def test_counts_add_up_over_launches_and_waves(monkeypatch):
    def kernel(x):
        x[cuda.grid(1)] = f4(1)

    counts, x = Counts(), np.zeros(320, f4)
    simt.launch(kernel, 10, 32, (x,), counts=counts)
    once = counts.accesses[0].sectors
    simt.launch(kernel, 10, 32, (x,), counts=counts)
    assert (counts.launches, counts.blocks, counts.threads) == (2, 20, 640)
    assert counts.accesses[0].sectors == 2 * once == 80


def test_wide_accesses_are_one():
    def kernel(p, q):
        i = cuda.grid(1)
        a, b, c, d = cuda.load4(p, i * 4)
        cuda.store4(q, i * 4, a, b, c, d)

    x = np.zeros(128, f4)
    bytes_ = [simt.Pointer(array.view(np.uint8), f4) for array in (x, x.copy())]
    load, store = counted(kernel, 1, 32, *bytes_).accesses
    assert (load.nbytes, load.warps, load.sectors, load.least) == (16, 1, 16, 16)
    assert (store.moved, store.sectors) == (512, 16)


def test_samples_are_the_first_and_the_costliest_warp():
    def kernel(x):
        i = cuda.grid(1)
        x[i * (1 + i // 32)] = f4(1)

    (store,) = counted(kernel, 2, 64, np.zeros(512, f4)).accesses
    assert (store.first.cost, store.worst.cost) == (4, 16)
    assert (store.worst.block, store.worst.warp) == ((1, 0, 0), 1)
    assert store.worst.byte[:2].tolist() == [96 * 4 * 4, 97 * 4 * 4]
    assert (store.worst.least, store.sectors) == (4, 4 + 8 + 12 + 16)


def test_shared_bytes_count_from_the_block_s_first():
    def kernel(out):
        tile = cuda.shared.array(20, f4)
        if cuda.blockIdx.x == 1:
            tile[cuda.threadIdx.x] = f4(1)

    (store,) = counted(kernel, 2, 20, np.zeros(1, f4)).accesses
    assert store.first.block == (1, 0, 0)
    assert store.first.byte[:3].tolist() == [0, 4, 8]
