"""The pool: no overlap, alignment, reuse, bounds, limits, threads, a forked child."""

import json
import multiprocessing
import random
import sys
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

import minigrad as mg
from minigrad import errors
from minigrad.memory.buffer import ALIGNMENT, blocks, round_up
from minigrad.memory.monitor import pool_of
from minigrad.memory.pool import SMALL, Pool
from tests.holding import held_elsewhere


def allocate(nbytes):
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes], memory.ctypes.data + start


def release(pool, buffer):
    buffer.owners = 0
    pool.release(buffer)


def view(buffer):
    """The bytes of a buffer."""
    start = buffer.address - buffer.segment.address
    return buffer.segment.owner[start : start + buffer.requested]


class PoolMachine(RuleBasedStateMachine):
    """Random takes, releases, trims and limits."""

    held = Bundle("held")

    def __init__(self):
        super().__init__()
        self.pool, self.live, self.stamp = Pool("test", allocate), [], 0

    @rule(target=held, nbytes=st.one_of(st.integers(0, 5000), st.integers(0, 3 * SMALL)))
    def take(self, nbytes):
        buffer = self.pool.take(nbytes)
        assert buffer.nbytes >= nbytes
        assert buffer.address % ALIGNMENT == 0
        assert len(view(buffer)) == nbytes
        self.stamp = (self.stamp + 1) % 251
        view(buffer)[:] = self.stamp
        item = (buffer, self.stamp)
        self.live.append(item)
        return item

    @rule(item=consumes(held))
    def give_back(self, item):
        buffer, stamp = item
        assert (view(buffer) == stamp).all(), "somebody else wrote here"
        self.live.remove(item)
        release(self.pool, buffer)

    @rule()
    def trim(self):
        before = self.pool.reserved_bytes
        released = self.pool.trim()
        assert before - released == self.pool.reserved_bytes

    @rule(extra=st.integers(0, 4 * SMALL))
    def limit(self, extra):
        self.pool.set_limit(self.pool.reserved_bytes + extra)
        with pytest.raises(errors.OutOfMemoryError):
            self.pool.take(self.pool.limit + 1)
        assert self.pool.reserved_bytes <= self.pool.limit
        self.pool.set_limit(None)

    @invariant()
    def counters_and_blocks_agree(self):
        pool = self.pool
        assert pool.current_bytes == sum(b.nbytes for b, _ in self.live)
        assert pool.current_bytes <= pool.peak_bytes
        assert pool.reserved_bytes == sum(s.nbytes for s in pool.segments)
        assert {id(b) for b in pool.in_use()} == {id(b) for b, _ in self.live}
        for segment in pool.segments:
            place = segment.address
            for block in blocks(segment):
                assert block.address == place
                place += block.nbytes
            assert place == segment.address + segment.nbytes
        for is_small, free in pool.free.items():
            assert [e[:2] for e in free] == sorted(e[:2] for e in free)
            assert all(e[2].state == "free" and e[2].nbytes == e[0] for e in free)
            assert all(e[2].segment.is_small == is_small for e in free)

    def teardown(self):
        for buffer, _ in self.live:
            release(self.pool, buffer)
        self.pool.trim()
        assert self.pool.reserved_bytes == 0
        assert self.pool.segments == []


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 511, 513, 5000, 1 << 15, (1 << 20) + 1])
def test_size_class_is_aligned_and_at_most_an_eighth_above(nbytes):
    size = round_up(nbytes)
    assert size % ALIGNMENT == 0
    assert nbytes <= size <= max(ALIGNMENT, nbytes + max(ALIGNMENT, nbytes // 8))


def test_a_repeated_trace_takes_everything_from_the_bins():
    pool = Pool("test", allocate)
    rng = np.random.default_rng(0)
    trace = [int(n) for n in rng.integers(1, 1 << 18, size=60)]
    for step in range(5):
        before = pool.system_allocations
        held = [pool.take(n) for n in trace]
        for b in held:
            release(pool, b)
        if step >= 2:
            assert pool.system_allocations == before
    assert pool.takes == 300


@pytest.mark.parametrize("largest", [1 << 10, 1 << 16, 1 << 21, 5 << 20])
def test_reserved_bytes_are_bounded_for_random_sizes(largest):
    pool, rng, held, peak = Pool("test", allocate), random.Random(largest), [], 0
    for _ in range(600):
        held.append(pool.take(rng.randint(1, largest)))
        if len(held) > 12:
            release(pool, held.pop(rng.randrange(len(held))))
        peak = max(peak, sum(b.requested for b in held))
        assert pool.reserved_bytes <= 2 * peak + (2 << 20)


def test_growing_sizes_do_not_pile_up():
    pool = Pool("test", allocate)
    for n in range(1, 200):
        release(pool, pool.take(n * 100_000))
    assert pool.reserved_bytes <= 2 * 199 * 100_000


def test_threads_share_a_pool_without_overlap():
    pool, failures, interval = Pool("test", allocate), [], sys.getswitchinterval()

    def work(seed):
        rng, held = random.Random(seed), []
        try:
            for k in range(800):
                buffer = pool.take(rng.randint(1, 300_000))
                view(buffer)[[0, -1]] = seed
                held.append(buffer)
                if len(held) > 15:
                    old = held.pop(rng.randrange(len(held)))
                    assert view(old)[0] == view(old)[-1] == seed
                    release(pool, old)
                if k % 200 == 0:
                    pool.trim()
            for old in held:
                release(pool, old)
        except BaseException as error:
            failures.append(error)

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sys.setswitchinterval(interval)
    assert not failures
    assert pool.current_bytes == 0
    pool.trim()
    assert pool.reserved_bytes == 0


def _in_a_child(queue):
    x = mg.ones((100, 7), requires_grad=True)
    (x.tanh() * x).sum().backward()
    queue.put(float(x.grad.sum().item()))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork on Windows")
def test_a_forked_child_allocates_also_if_a_thread_held_the_lock():
    _in_a_child(queue := multiprocessing.get_context("spawn").SimpleQueue())
    wanted = queue.get()
    pool = pool_of("cpu")
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(queue,))
    with held_elsewhere(pool.lock):
        child.start()
        child.join(30)
    assert child.exitcode == 0
    assert queue.get() == wanted


# -- through the public names --------------------------------------------------------------------


def test_out_of_memory_names_the_largest_holders_and_leaves_everything_usable():
    before = mg.memory.stats()
    big = mg.ones((1 << 18,), requires_grad=True, name="the big one")
    y = big.tanh()  # saved by tanh
    reserved = mg.memory.stats()["reserved_bytes"]
    mg.memory.set_limit(reserved + 1000)
    try:
        with pytest.raises(errors.OutOfMemoryError) as caught:
            mg.zeros((reserved // 4 + 1000,))  # more than all that earlier tests left cached
    finally:
        mg.memory.set_limit(None)
    text = str(caught.value)
    assert "the limit of" in text
    assert "'the big one'" in text
    assert "y saved by tanh" in text
    assert "# saved by tanh" in text
    assert isinstance(caught.value, MemoryError)
    y.sum().backward()
    assert big.grad.shape == big.shape
    assert mg.memory.stats()["ooms"] == before["ooms"] + 1


def test_a_failed_op_in_mid_graph_changes_nothing():
    x = mg.ones((1 << 16,), requires_grad=True)
    y = x * 2.0
    reserved = mg.memory.stats()["reserved_bytes"]
    mg.memory.set_limit(reserved)
    try:
        with pytest.raises(errors.OutOfMemoryError):
            y.expand(reserved // y.nbytes + 1, 1 << 16) * 2.0
    finally:
        mg.memory.set_limit(None)
    y.sum().backward()
    assert x.grad.sum().item() == 2.0 * (1 << 16)


def test_empty_cache_returns_what_nobody_uses_and_nothing_else():
    kept = mg.arange(1000)
    mg.zeros((3 << 20,))
    reserved = mg.memory.stats()["reserved_bytes"]
    assert mg.memory.empty_cache() >= 12 << 20
    assert mg.memory.stats()["reserved_bytes"] <= reserved - (12 << 20)
    assert mg.memory.trim() >= 0
    assert kept.tolist() == list(range(1000))


def test_stats_and_snapshot_agree():
    x = mg.ones((12345,))
    stats, snapshot = mg.memory.stats(), mg.memory.snapshot()
    json.dumps(snapshot)
    used = [b for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "used"]
    assert sum(b["bytes"] for b in used) == snapshot["current_bytes"] == stats["current_bytes"]
    assert sum(b["requested"] for b in used) == stats["requested_bytes"]
    assert sum(s["bytes"] for s in snapshot["segments"]) == stats["reserved_bytes"]
    assert any(b["requested"] == x.nbytes for b in used)
    mg.memory.reset_peak()
    assert mg.memory.stats()["peak_bytes"] == mg.memory.stats()["current_bytes"]


def test_ten_thousand_steps_hold_bytes_and_nodes_flat():
    w = mg.ones((16, 16), requires_grad=True)
    x = mg.ones((4, 16))
    pool, levels = pool_of("cpu"), set()
    for step in range(10_000):
        loss = ((x @ w).tanh() ** 2).mean()
        loss.backward()
        with mg.no_grad():
            w.sub_(w.grad * 1e-3)
        w.grad = None
        if step > 1:
            levels.add((pool.current_bytes, pool.reserved_bytes, pool.system_allocations))
    assert len(levels) == 1
