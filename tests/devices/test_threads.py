"""The pool of threads for big kernels."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import denormals
from minigrad.devices.threads import Threads, threads

BIG = 300_001  # elements: above the size from which kernels are cut, and not a multiple of anything


def test_run_calls_everything_in_the_caller_and_in_workers():
    found, meeting = {}, threading.Barrier(3)

    def note(k):
        meeting.wait(10)  # so nobody takes two
        found[k] = threading.get_ident()

    Threads(3).run(note, [(0,), (1,), (2,)])
    assert sorted(found) == [0, 1, 2]
    assert threading.get_ident() in found.values()
    assert len(set(found.values())) == 3


def test_run_again_uses_the_same_threads():
    pool, found, meeting = Threads(2), [], threading.Barrier(2)

    def note():
        meeting.wait(10)
        found.append(threading.get_ident())

    for _ in range(20):
        pool.run(note, [(), ()])
    assert len(found) == 40
    assert len(set(found)) == 2


def test_run_with_more_calls_than_threads_makes_each_once():
    pool, found = Threads(2), []
    for n in (3, 4, 50):
        pool.run(found.append, [(k,) for k in range(n)])
        assert sorted(found) == list(range(n))
        found.clear()
    assert len(pool._workers) == 1


class Late:
    """The lock of a worker that wakes only when it is told to."""

    def __init__(self, lock):
        self.lock, self.is_pending = lock, False

    def locked(self):
        return not self.is_pending

    def release(self):
        self.is_pending = True

    def come(self):
        self.is_pending = False
        self.lock.release()


@pytest.fixture
def late_pool():
    pool = Threads(2)
    (worker,) = pool._ready(1)
    worker.wake = Late(worker.wake)  # its thread waits for the lock itself
    return pool, worker


def test_nobody_waits_for_a_worker_that_comes_late(late_pool):
    pool, worker = late_pool
    rounds = []

    def call():
        for _ in range(3):  # it has not come: its call is taken back, and it is not woken twice
            rounds.append([])
            pool.run(lambda k: rounds[-1].append((k, threading.get_ident())), [(0,), (1,), (2,)])
            rounds[-1].append(worker.is_running)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    caller.join(10)
    assert not caller.is_alive(), "it waits"
    assert rounds == [[*((k, caller.ident) for k in range(3)), False]] * 3


def test_a_worker_that_came_too_late_takes_part_in_the_next_run(late_pool):
    pool, worker = late_pool
    pool.run(lambda: None, [(), ()])
    late, worker.wake = worker.wake, worker.wake.lock
    late.come()
    meeting = threading.Barrier(2)
    for _ in range(3):
        pool.run(lambda: meeting.wait(10), [(), ()])
    assert pool._workers == [worker]


class Post:
    """What a worker on standby runs: it notes its board and stays until told to leave."""

    def __init__(self):
        self.begun, self.boards, self.may_leave = threading.Event(), [], threading.Event()
        self.serve = self._serve  # one object, as a kernel is

    def _serve(self, address):
        self.boards.append(address)
        self.begun.set()
        self.may_leave.wait(10)


def over(address):
    """Return whether the workers at a board are told to leave."""
    return bool(ctypes.c_int64.from_address(address + 8).value)


def test_workers_stand_by_at_the_leaders_board_until_another_call_wants_them():
    pool, post, led = Threads(2), Post(), []

    def lead(address, k):
        assert post.begun.wait(10), "no worker has come"
        led.append((address, k, over(address)))

    for k in range(3):
        pool.lead(lead, post.serve, (k,))  # it is woken once, and stays
    board = led[0][0]
    assert led == [(board, k, False) for k in range(3)]
    assert post.boards == [board]
    pool.run(lambda k: None, [(0,), (1,)])
    assert over(board)
    pool.lead(lead, post.serve, (3,))
    assert led[-1] == (board, 3, False)
    post.may_leave.set()


def test_a_worker_on_standby_takes_the_calls_of_run_when_it_leaves():
    pool, post, meeting = Threads(2), Post(), threading.Barrier(2)
    pool.lead(lambda address: post.begun.wait(10), post.serve, ())
    post.may_leave.set()
    for _ in range(3):
        pool.run(lambda: meeting.wait(10), [(), ()])
    assert len(pool._workers) == 1


def test_another_kernel_or_mode_gets_another_board():
    pool, posts, boards = Threads(2), (Post(), Post()), []
    for post in (posts[0], posts[1], posts[1]):
        post.may_leave.set()
        pool.lead(lambda address: None, post.serve, ())
        boards.append(pool._board)
    assert boards[0] is not boards[1]
    assert boards[1] is boards[2]
    assert over(boards[0].address)
    assert not over(boards[1].address)


def test_who_leads_while_the_workers_are_taken_has_a_board_alone():
    pool, post, led = Threads(2), Post(), []
    with pool._busy:
        pool.lead(led.append, post.serve, ())
    assert led != [pool._board.address]
    assert not pool._workers


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_run_exception_of_any_call_is_raised_when_all_have_ended(bad):
    pool, ended = Threads(3), []

    def work(k):
        if k == bad:
            raise ValueError(f"call {k}")
        time.sleep(0.02)
        ended.append(k)

    with pytest.raises(ValueError, match=f"call {bad}"):
        pool.run(work, [(0,), (1,), (2,)])
    assert sorted(ended) == [k for k in range(3) if k != bad]
    pool.run(ended.append, [(7,), (8,), (9,)])
    assert sorted(ended)[-3:] == [7, 8, 9]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to processes here")
def test_run_interrupted_waits_for_its_calls_and_stays_usable():
    pool, ended, meeting = Threads(2), [], threading.Barrier(2)

    def work(k):
        meeting.wait(10)
        if threading.current_thread() is not threading.main_thread():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.2)
            ended.append(k)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.run(work, [(0,), (1,)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1, "memory must not be given away while a call writes to it"
    for _ in range(5):
        ended.clear()
        pool.run(lambda k: ended.append(k), [(1,), (2,)])
        assert sorted(ended) == [1, 2]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to processes here")
def test_run_interrupted_often_leaves_no_threads_behind():
    pool, before = Threads(3), threading.active_count()

    def work(k):
        meeting.wait(10)
        if k == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def run():
        pool.run(work, [(0,), (1,), (2,)])
        time.sleep(1.0)  # where the signal comes after the last call

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(10):
            meeting = threading.Barrier(3)
            with pytest.raises(KeyboardInterrupt):
                run()
    finally:
        signal.signal(signal.SIGINT, handler)
    deadline = time.monotonic() + 10
    while threading.active_count() > before + 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before + 2


def test_run_interrupted_before_it_has_its_workers_leaves_no_threads_behind(monkeypatch):
    before, pool = threading.active_count(), Threads(3)
    pool._ready(2)

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(denormals, "get_mode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.run(lambda: None, [(), (), ()])
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_who_is_interrupted_without_the_workers_leaves_those_of_another_caller():
    pool, calls = Threads(2), []
    (worker,) = pool._ready(1)

    def interrupted(k):
        calls.append(k)
        raise KeyboardInterrupt

    with pool._busy, pytest.raises(KeyboardInterrupt):
        pool.run(interrupted, [(0,), (1,)])
    assert calls == [0]
    assert pool._workers == [worker]


def test_run_within_run_does_not_wait_for_itself():
    pool, found = Threads(2), []

    def outer(k):
        pool.run(found.append, [((k, 0),), ((k, 1),)])

    pool.run(outer, [(0,), (1,)])
    assert sorted(found) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_run_from_several_threads_at_once_gives_each_its_own():
    results = {}

    def loop(k):
        x = mg.full((BIG,), float(k))
        results[k] = [(x * 2.0 + 1.0).sum().item() for _ in range(5)]

    callers = [threading.Thread(target=loop, args=(k,)) for k in range(4)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert results == {k: [(2 * k + 1) * BIG] * 5 for k in range(4)}


# -- kernels -------------------------------------------------------------------------------------


def of_big_arrays():
    rng = np.random.default_rng(0)
    x = mg.variable(rng.normal(size=(601, 503)).astype("f4"))
    row = mg.variable(rng.normal(size=503).astype("f4"))
    column = mg.variable(rng.normal(size=(601, 1)).astype("f4"))
    cube = mg.variable(rng.normal(size=(3, 250, 401)).astype("f4"))
    return {
        "flat": x * x + 1.0,
        "broadcast row": x + row,
        "broadcast column": x * column,
        "transposed": x.T.exp(),
        "strided": x[::-1, ::2] * 3.0,
        "first axis of 3": cube + cube,
        "in place": x.clone().add_(row),
        "comparison": x > 0.0,
        "cast": x.to("int64"),
        "sum of rows": x.sum(1),
        "sum of columns": x.sum(0),
        "maximum of all": x.max(),
        "softmax": mg.softmax(x),
        "softmax of columns": mg.softmax(x, 0),
        "argmax": x.argmax(1),
        "matmul": x.T @ x,
        "cumsum": x.cumsum(1),
    }


@pytest.fixture
def results(monkeypatch):
    def with_count(count):
        monkeypatch.setattr(threads, "count", count)
        return {k: v.numpy().copy() for k, v in of_big_arrays().items()}

    return with_count


@pytest.mark.parametrize("count", [2, 3, 7])
def test_big_kernels_give_the_same_bits_for_any_number_of_threads(results, count):
    one, many = results(1), results(count)
    product = one.pop("matmul")  # BLAS adds in another order at the edges of a part
    np.testing.assert_allclose(many.pop("matmul"), product, rtol=0, atol=2e-6 * 601 * 4)
    for name, want in one.items():
        np.testing.assert_array_equal(many[name], want, err_msg=name)


@pytest.mark.parametrize(
    "op",
    [lambda x: x + x, lambda x: x * 2.0, lambda x: 2.0 * x, lambda x: x.tanh(), lambda x: x - 1],
)
def test_big_kernels_are_cut_each_time_also_backward(op, monkeypatch):
    monkeypatch.setattr(threads, "count", 3)
    x = mg.variable(np.ones(BIG), dtype="float32", requires_grad=True)
    dy = mg.ones((BIG,)) * 2.0
    for _ in range(2):  # the first call keeps the kernel for the next
        op(x).backward(dy)
    calls = []
    share = Threads.share

    def noted(self, cut, operands):
        calls.append(cut.count)
        share(self, cut, operands)

    monkeypatch.setattr(Threads, "share", noted)
    y = op(x)
    assert len(calls) == 1
    y.backward(dy)
    assert len(calls) >= 2
    assert min(calls) >= 4, "for three threads"


def test_big_kernels_are_cut(monkeypatch):
    monkeypatch.setattr(threads, "count", 3)
    calls = []
    share = Threads.share

    def noted(self, cut, operands):
        calls.append(cut.count)
        share(self, cut, operands)

    monkeypatch.setattr(Threads, "share", noted)
    x = mg.ones((BIG,))
    calls.clear()
    y = x * 2.0
    assert calls == [4]
    assert y.sum().item() == 2 * BIG
    calls.clear()
    assert (mg.ones((100,)) * 2.0).sum().item() == 200
    assert not calls, "small kernels are not worth it"


def test_backward_of_big_arrays_is_the_same_for_any_number_of_threads(monkeypatch):
    def gradient(count):
        monkeypatch.setattr(threads, "count", count)
        w = mg.variable(np.linspace(-1, 1, BIG, dtype="f4"), requires_grad=True)
        (mg.softmax(w.reshape((1, -1)) * 3.0) * w.tanh()).sum().backward()
        return w.grad.numpy().copy()

    np.testing.assert_array_equal(gradient(1), gradient(3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_child_runs_big_kernels():
    x = mg.ones((BIG,))
    before = (x * 2.0).sum().item()  # the parent's threads exist now; the child has none of them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
        child = os.fork()
    if child == 0:
        status = 1
        try:
            right = all((x * 2.0).sum().item() == before for _ in range(3))
            matrix = mg.ones((400, 500))
            right = right and bool((matrix @ matrix.T == 500.0).all())
            status = 0 if right else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert (x * 2.0).sum().item() == before


@pytest.mark.parametrize(("chosen", "count"), [("1", 1), ("3", 3), ("0", 1)])
def test_number_of_threads_can_be_chosen(chosen, count):
    code = """
import minigrad as mg
from minigrad.devices.cpu import blas
from minigrad.devices.threads import threads
mg.ones((2, 2)) @ mg.ones((2, 2))
print(threads.count, blas._counts("get")() if blas.find_blas() else threads.count)
"""
    env = os.environ | {"MINIGRAD_THREADS": chosen}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout.split() == [str(count)] * 2


def test_program_ends_while_threads_sleep():
    code = "import minigrad as mg; print(float((mg.ones((400_000,)) * 2.0).sum()))"
    env = os.environ | {"MINIGRAD_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, env=env, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("800000.0", "", 0)


AT_THE_END = """
import os
import minigrad as mg
class Last:
    def __init__(self):
        self.x, self.write = mg.ones((400_000,)), os.write
    def __del__(self):
        self.write(1, b"%d" % (self.x * 2.0).sum().item())
last = Last()
(last.x * 2.0).sum()
"""


def test_big_kernels_while_the_program_ends():
    env = os.environ | {"MINIGRAD_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END],
        capture_output=True, text=True, env=env, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("800000", "", 0)
