"""Forks while other threads work: every child goes on, whatever they were in the middle of.

Each test is a process of its own, which forks children and gives each a deadline.
"""

import os
import subprocess
import sys
import threading
import time
import types

import pytest

from minigrad.memory import forks
from tests.holding import held_elsewhere

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# `child(work)` forks, runs work() in the child, and ends this process if that takes too long.
HEAD = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
import minigrad as mg
from minigrad import nn
from minigrad.devices import loader

SECONDS = 60  # of a child; a new kernel takes one second, on a busy machine several

def child(work):
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            signal.alarm(SECONDS)  # its default action ends the child
            status = 0 if work() else 4
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status:
        print("child:", os.waitstatus_to_exitcode(status), flush=True)
        os._exit(1)

def background(work):
    def loop():
        while not over.is_set():
            work()
    over = threading.Event()
    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return lambda: (over.set(), thread.join())

numbers = iter(range(10**9))

def new_kernel(salt=""):
    n = next(numbers)
    text = '@jit("i8(i8)")\\ndef kernel(x):\\n    return x + %d  # %s\\n' % (n, salt)
    return loader.load(text).kernel(1) == n + 1
"""
COMPILING = """
end = background(new_kernel)
time.sleep(0.3)  # from here on it always compiles
for k in range(4):
    child(lambda: new_kernel("of a child"))
    time.sleep(0.05 * k)
end()
assert new_kernel("of the parent")
"""
# The first kernel of a process imports Numba, which takes half a second.
IMPORTING = """
thread = threading.Thread(target=new_kernel)
thread.start()
for k in range(3):
    time.sleep(0.1)
    child(lambda: new_kernel("of a child"))
thread.join()
"""
OPERATIONS = """
x = mg.ones((64, 64))
shapes = iter(range(2, 10**6))
def work():
    n = next(shapes)
    y = mg.ones((n % 97 + 2, n), requires_grad=True)  # the pool finds no buffer of this size
    (y * 2.0).sum().backward()
work()
end = background(work)
def new_operation():
    z = mg.full((3, 5), 0.5, requires_grad=True)
    (z.tanh() * z.exp()).sum().backward()
    return z.grad.shape == (3, 5)
for _ in range(10):
    child(new_operation)
end()
"""
# With threads of their own: a compiled step meets at spinning barriers, a product runs on BLAS'.
THREADS = """
w = mg.nn.Parameter(mg.randn((256, 256)))
optimizer = mg.optim.SGD([w], learning_rate=1e-3)
x = mg.randn((512, 256))
@mg.compile
def step(x):
    optimizer.zero_grad()
    loss = ((x @ w).tanh() ** 2.0).mean()
    loss.backward()
    optimizer.step()
    return loss
for _ in range(4):
    step(x)
a = mg.randn((700, 700))
# small products: OpenBLAS waits at a fork for its own threads, for ever if another thread uses them
b = mg.randn((16, 16))
stops = [background(lambda: step(x)), background(lambda: (b @ b).sum().item())]
def both():
    loss = float(step(x))
    return 0.0 < loss < 1.0 and (a @ a).shape == (700, 700)
for _ in range(6):
    child(both)
for end in stops:
    end()
"""
POOLS = """
import multiprocessing
context = multiprocessing.get_context("fork")
def batch(k):  # what a loader of data does in a worker
    y = mg.full((4,), float(k)) * 2.0 + 1.0
    assert new_kernel("of a worker")
    return y.tolist()
end = background(new_kernel)
time.sleep(0.3)
with context.Pool(2) as pool:
    found = pool.map_async(batch, range(4)).get(SECONDS)
assert found == [[2.0 * k + 1.0] * 4 for k in range(4)]
end()
"""


@pytest.mark.parametrize(
    "program",
    [COMPILING, IMPORTING, OPERATIONS, THREADS, POOLS],
    ids=["compiling", "importing", "operations", "threads", "pools"],
)
def test_children_go_on_whatever_other_threads_do(program, tmp_path):
    env = os.environ | {"MINIGRAD_CACHE": str(tmp_path), "MINIGRAD_THREADS": "3"}
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        capture_output=True, text=True, env=env, check=False, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


# ---- locks over a fork --------------------------------------------------------------------------


class Fork:
    """The functions that `hold` registers, called as a fork calls them."""

    def __init__(self, monkeypatch, *locks):
        registered = {}
        monkeypatch.setattr(forks.os, "register_at_fork", lambda **calls: registered.update(calls))
        forks.hold(*locks)
        self.before, self.in_parent = registered["before"], registered["after_in_parent"]
        self.in_child = registered["after_in_child"]


def is_free(lock):
    """Whether another thread can take a lock."""
    found = []

    def attempt():
        if taken := lock.acquire(blocking=False):
            lock.release()
        found.append(taken)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return found == [True]


def test_a_lock_is_held_over_a_fork_and_free_in_both_processes(monkeypatch):
    lock = threading.RLock()
    fork = Fork(monkeypatch, forks.Held(lock, 1.0))
    for after in (fork.in_parent, fork.in_child):
        fork.before()
        assert not is_free(lock)
        after()
        assert is_free(lock)


def test_a_fork_waits_until_another_thread_is_out(monkeypatch):
    lock, held = threading.RLock(), threading.Event()
    fork = Fork(monkeypatch, forks.Held(lock, 30.0))
    order = []

    def work():
        with lock:
            held.set()
            time.sleep(0.2)
            order.append("out")

    thread = threading.Thread(target=work)
    thread.start()
    held.wait(30)
    fork.before()
    order.append("forked")
    fork.in_parent()
    thread.join()
    assert order == ["out", "forked"]


def test_a_fork_does_not_wait_for_ever_and_the_child_has_a_new_lock(monkeypatch):
    lock = threading.RLock()
    fork = Fork(monkeypatch, forks.Held(lock, 0.05))
    with held_elsewhere(lock):
        fork.before()
        fork.in_parent()
        assert not is_free(lock)  # the other thread's, still
    with lock:  # as if another thread had it: this one does not let go
        fork.before()
        fork.in_child()
    assert is_free(lock)


def test_locks_of_owners_are_held_together_or_not_at_all_and_new_in_the_child(monkeypatch):
    first, second = types.SimpleNamespace(), types.SimpleNamespace()
    first.lock, second.lock = threading.RLock(), threading.RLock()
    fork = Fork(monkeypatch, forks.Held(forks.LocksOf([first, second]), 0.05))
    fork.before()
    assert not is_free(first.lock)
    assert not is_free(second.lock)
    fork.in_parent()
    assert is_free(first.lock)
    assert is_free(second.lock)
    with held_elsewhere(second.lock):
        fork.before()
        assert is_free(first.lock)  # the second could not be had
        fork.in_child()
        assert is_free(first.lock)
        assert is_free(second.lock)


def test_a_fork_inside_a_lock_of_its_own_keeps_it(monkeypatch):
    lock = threading.RLock()
    fork = Fork(monkeypatch, forks.Held(lock, 1.0))
    with lock:
        fork.before()
        fork.in_child()
        assert not is_free(lock)
    assert is_free(lock)


def test_ctrl_c_while_a_fork_waits_is_not_lost(monkeypatch):
    class Waits:
        def acquire(self, timeout):
            raise KeyboardInterrupt

    fork = Fork(monkeypatch, forks.Held(Waits(), 1.0))
    fork.before()
    interrupted = []
    monkeypatch.setattr(forks, "raise_interrupt", lambda: interrupted.append(True))
    fork.in_parent()
    assert interrupted
