"""The pool of threads: calls that wait for one another, and Ctrl-C at any moment."""

import signal
import threading
import time

import numpy as np
import pytest

from minigrad.devices import loader
from minigrad.devices.threads import Threads
from tests.interrupts import interrupted, timers

OURS = Threads.run.__code__.co_filename

RENDEZVOUS = '''
@intrinsic
def add_at(typing, address, n):
    def code(context, builder, signature, arguments):
        pointer = context.get_value_type(types.CPointer(types.int64))
        place = builder.inttoptr(arguments[0], pointer)
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), code


@jit("int64(int64, int64, int64)")
def kernel(t, n, address):
    """Ends when all n calls have come, as steps with barriers do; the number of earlier calls."""
    before = add_at(address, I8(1))
    while add_at(address, I8(0)) < n * (before // n + 1):
        pass
    return before // n
'''


@pytest.fixture(scope="module")
def rendezvous():
    kernel = loader.entry(loader.load(RENDEZVOUS).kernel)

    def make(n):
        count = np.zeros(1, np.int64)
        return count, kernel, [(t, n, count.ctypes.data) for t in range(n)]

    return make


def test_together_all_calls_are_there_at_once(rendezvous):
    pool = Threads(3)
    count, kernel, lists = rendezvous(3)
    for k in range(50):
        returned = []
        assert pool.together(kernel, lists, returned)
        assert (returned[-1], count[0]) == (k, 3 * k + 3)
    assert len(pool._workers) == 2


def test_together_refuses_while_another_caller_has_the_threads(rendezvous):
    pool, answers = Threads(2), []
    count, kernel, lists = rendezvous(2)

    def within():
        returned = []
        answers.append((pool.together(kernel, lists, returned), returned))

    pool.run(lambda: within() if not answers else None, [(), ()])
    assert answers[0] == (False, [])
    assert not count[0], "nothing was run"
    assert pool.together(kernel, lists, [])


def test_together_without_threads_from_the_system_runs_nothing(rendezvous, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    pool = Threads(2)
    count, kernel, lists = rendezvous(2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert not pool.together(kernel, lists, [])
    assert not count[0]
    assert pool.together(kernel, lists, [])


def test_together_beside_threads_that_keep_the_interpreter_busy(rendezvous):
    pool, stop = Threads(2), []
    count, kernel, lists = rendezvous(2)

    def spin():
        while not stop:
            pass

    other = threading.Thread(target=spin)
    other.start()
    try:
        for _ in range(20):
            assert pool.together(kernel, lists, [])
    finally:
        stop.append(True)
        other.join()
    assert count[0] == 40


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_together_interrupted_at_any_moment_ran_all_calls_or_none(rendezvous):
    pool, interrupts = Threads(2), 0
    count, kernel, lists = rendezvous(2)
    with timers():
        for k in range(400):
            returned, calls = [], int(count[0])
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + 3 * k % 150))
                try:
                    pool.together(kernel, lists, returned)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                interrupts += 1
            assert count[0] == calls + (2 if returned else 0)
            assert not pool._busy.locked()
    assert interrupts > 20
    assert pool.together(kernel, lists, [])


def test_together_interrupted_after_any_call_within_it(rendezvous):
    pool, k = Threads(2), 0
    count, kernel, lists = rendezvous(2)
    assert pool.together(kernel, lists, [])
    while True:
        returned, calls = [], int(count[0])
        was_interrupted = interrupted(k, OURS, pool.together, kernel, lists, returned)
        assert count[0] == calls + (2 if returned else 0)
        assert not pool._busy.locked()
        assert pool.together(kernel, lists, [])
        if not was_interrupted:
            break
        k += 1
    assert k > 5


def test_run_interrupted_after_any_call_within_it(rendezvous):
    pool, found, k = Threads(2), [], 0
    pool.run(found.append, [(0,), (1,)])
    while True:
        found.clear()
        was_interrupted = interrupted(k, OURS, pool.run, found.append, [(0,), (1,)])
        assert not pool._busy.locked()
        assert len(pool._workers) in (0, 1)
        before = list(found)
        time.sleep(0.002)
        assert found == before, "what was woken has ended"
        if not was_interrupted:
            break
        k += 1
    assert sorted(found) == [0, 1]
    assert k > 5


def test_calls_that_wait_for_one_another_wait_for_a_worker_that_comes_late():
    pool = Threads(2)
    (worker,) = pool._ready(1)
    meeting, found = threading.Barrier(2), []
    for _ in range(20):
        worker.wake.release()  # as for a call that was taken back before the worker woke
        assert pool.together(meeting.wait, [(10,), (10,)], found)
    assert not meeting.broken
