"""Workers are woken off the CPU of their caller."""

import os
import threading

import pytest

from minigrad.devices import affinity, loader
from minigrad.devices.threads import Threads


class System:
    """CPUs 0 to 2 of a system: the caller, who may use `allowed`, runs on `cpu`."""

    def __init__(self, monkeypatch, allowed, cpu):
        self.allowed, self.cpu, self.given = allowed, cpu, []
        monkeypatch.setattr(affinity, "_find_cpu", lambda: lambda: self.cpu)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(self.allowed), raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", self.set, raising=False)

    def set(self, thread, cpus):
        self.given.append((thread, cpus))


@pytest.mark.parametrize(
    ("allowed", "cpu", "want"),
    [
        ({0, 1}, 0, {1}),
        ({0, 1}, 1, {0}),
        ({0, 1, 2}, 1, {0, 2}),
        ({1}, 1, None),
        ({0, 1}, 2, {0, 1}),
    ],
)
def test_a_thread_is_kept_off_the_callers_cpu(monkeypatch, allowed, cpu, want):
    system = System(monkeypatch, allowed, cpu)
    affinity.keep_apart(7)
    assert system.given == ([] if want is None else [(7, want)])


def test_a_system_that_forbids_it_is_left_as_it_is(monkeypatch):
    System(monkeypatch, {0, 1}, 0)

    def forbid(thread, cpus):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", forbid)
    affinity.keep_apart(7)
    monkeypatch.setattr(affinity, "_find_cpu", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", None)
    affinity.keep_apart(7)


def run(pool):
    pool.run(lambda: None, [(), ()])


def lead(pool):
    pool.lead(lambda address: None, lambda address: None, ())


def together(pool):
    kernel = loader.entry(loader.load('@jit("void(i8)")\ndef kernel(x):\n    pass\n').kernel)
    assert pool.together(kernel, [(0,), (0,)], [])


@pytest.mark.parametrize("wake", [run, lead, together])
def test_every_way_to_wake_a_worker_keeps_it_apart(monkeypatch, wake):
    system, pool = System(monkeypatch, {0, 1}, 1), Threads(2)
    wake(pool)
    assert system.given == [(pool._workers[0].native_id, {0})]


@pytest.mark.skipif(affinity._find_cpu() is None, reason="only Linux has threads' affinities")
def test_the_system_knows_the_thread_and_the_caller_keeps_its_own_cpus():
    before = os.sched_getaffinity(0)
    pool = Threads(2)
    pool.run(lambda: None, [(), ()])
    given = os.sched_getaffinity(pool._workers[0].native_id)
    assert given < before if len(before) > 1 else given == before
    assert os.sched_getaffinity(0) == before
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    affinity.keep_apart(thread.native_id)  # it has ended: nothing happens
