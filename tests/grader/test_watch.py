"""The clock that ends a worker: it counts the processor's time where the system tells it."""

import os
import subprocess
import sys
import threading
import time

import pytest

from minigrad.grader import sandbox
from minigrad.grader.launcher import Server
from minigrad.grader.sandbox import PATIENCE, STARVED, _Watch


class Worker:
    """Stands for a process that gets this share of a processor (None: the system does not say).

    `waits`: whether it waits for a processor in the rest of the time; else it sleeps.
    """

    def __init__(self, share, *, waits=False):
        self.share, self.waits, self.began = share, waits, time.monotonic()
        self.ended = threading.Event()

    def cpu_seconds(self):
        return None if self.share is None else self.share * (time.monotonic() - self.began)

    def delay_seconds(self):
        return (1 - self.share) * (time.monotonic() - self.began) if self.waits else None

    def _time_is_up(self, kind):
        self.ended_after, self.kind = time.monotonic() - self.began, kind
        self.ended.set()


@pytest.mark.parametrize(("share", "factor"), [(1.0, 1), (0.5, 1.9), (0.0, PATIENCE), (None, 1)])
def test_worker_gets_the_seconds_it_was_promised_within_patience(share, factor):
    worker = Worker(share)
    _Watch(worker).start(0.1, "time")
    assert worker.ended.wait(20)
    assert worker.kind == "time"
    assert worker.ended_after >= 0.1 * factor * 0.99


@pytest.mark.parametrize(("share", "factor"), [(1.0, 1), (0.1, 9.4), (0.0, STARVED)])
def test_waiting_for_a_processor_does_not_count(share, factor):
    worker = Worker(share, waits=True)
    _Watch(worker).start(0.05, "time")
    assert worker.ended.wait(20)
    assert worker.ended_after >= 0.05 * factor * 0.99


def waited(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not say")
def test_how_long_a_process_waits_is_read_from_the_system():
    source = "def f():\n    for _ in range(10**7):\n        pass\n"
    loop = [sys.executable, "-c", "while True: pass"]
    # each in a session of its own: a processor is shared among sessions first
    busy = [subprocess.Popen(loop, start_new_session=True) for _ in range(4)]
    try:
        with Server() as server, sandbox.Worker(server, source, "x.py") as worker:
            one = {sorted(os.sched_getaffinity(0))[0]}
            for pid in (worker._pid, *(process.pid for process in busy)):
                os.sched_setaffinity(pid, one)
            used, delayed = worker.cpu_seconds(), worker.delay_seconds()
            worker.call("f", [])
            used, delayed = worker.cpu_seconds() - used, worker.delay_seconds() - delayed
            if not any(waited(process.pid) for process in busy):
                pytest.skip("the system says that nobody waits, of four that share a processor")
            assert delayed > used
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_watch_that_was_stopped_never_rings():
    worker = Worker(0.0)
    watch = _Watch(worker)
    watch.start(0.02, "time")
    time.sleep(0.03)
    watch.stop()
    assert not worker.ended.wait(0.2)


def test_watch_started_anew_forgets_what_it_was_set_to():
    worker = Worker(1.0)
    watch = _Watch(worker)
    watch.start(0.05, "time")
    watch.start(0.3, "compile")
    assert worker.ended.wait(20)
    assert worker.kind == "compile"
    assert worker.ended_after >= 0.29
