"""A small pool of threads for kernels that are big enough to be cut into ranges.

Kernels release the GIL. Numba's own threading layers are not used: OpenMP dies after a fork, and
workqueue aborts when two threads enter it. This pool is made anew in a forked child.
"""

import os
import threading
from typing import Any


def _count():
    chosen = os.environ.get("MINIGRAD_THREADS")
    if chosen and chosen.isdigit():
        return max(1, int(chosen))
    if hasattr(os, "sched_getaffinity"):
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


class _Worker:
    """A thread that sleeps on a lock until it is given a call."""

    def __init__(self):
        self.wake, self.done = threading.Lock(), threading.Lock()
        self.wake.acquire()
        self.done.acquire()
        self.call: Any = None
        self.error: BaseException | None = None
        threading.Thread(target=self._run, daemon=True, name="minigrad-kernel").start()

    def _run(self):
        while True:
            self.wake.acquire()
            try:
                function, arguments = self.call
                function(*arguments)
            except BaseException as error:  # handed to the caller, who raises it
                self.error = error
            self.done.release()


class Threads:
    """`run(function, argument_lists)` calls them side by side, the last one in the caller."""

    def __init__(self, count=None):
        self.count = count or _count()
        self._workers = []
        self._busy = threading.Lock()

    def run(self, function, argument_lists):
        """Returns when every call has. One caller at a time uses the workers; others run alone."""
        if not self._busy.acquire(blocking=False):
            for arguments in argument_lists:
                function(*arguments)
            return
        try:
            *others, last = argument_lists
            while len(self._workers) < len(others):
                self._workers.append(_Worker())
            used = self._workers[: len(others)]
            for worker, arguments in zip(used, others, strict=True):
                worker.call = function, arguments
                worker.wake.release()
            error = None
            try:
                function(*last)
            finally:
                for worker in used:
                    worker.done.acquire()
                    error, worker.error = error or worker.error, None
            if error is not None:
                raise error
        finally:
            self._busy.release()


threads = Threads()


def _after_fork():
    threads.__init__(threads.count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
