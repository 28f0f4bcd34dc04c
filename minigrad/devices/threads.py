"""A small thread pool for kernels that are large enough to be split into ranges.

Kernels release the GIL. Numba's own threading layers are not used: OpenMP dies after a fork, and
workqueue aborts when two threads enter it. A forked child makes a new pool.
"""

import functools
import os
import sys
import threading
import time
from operator import methodcaller
from typing import Any

from minigrad.devices import denormals

LONGEST_WAIT = 10.0  # seconds for the calls of an interrupted run to end
AT_ONCE = (False,)  # acquire(False): acquire a free lock, do not wait


def chosen():
    """Return the number of threads that MINIGRAD_THREADS requests, or None."""
    text = os.environ.get("MINIGRAD_THREADS")
    return max(1, int(text)) if text and text.isdigit() else None


def _count():
    if (count := chosen()) is not None:
        return count
    if hasattr(os, "sched_getaffinity"):
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


SPLIT = 1 << 17  # elements from which a generated kernel is split into one range per thread


class _Worker:
    """A thread that sleeps on a lock until it gets a call."""

    def __init__(self):
        self.wake, self.done = threading.Lock(), threading.Lock()
        self.wake.acquire()
        self.done.acquire()
        self.call: Any = None
        self.error: BaseException | None = None
        self.is_running = False
        self.mode: int | None = None  # for subnormal numbers, once set
        threading.Thread(target=self._run, daemon=True, name="minigrad-kernel").start()

    def hand(self, function, arguments, mode):
        """Set the call to make once `wake` is released, and its `denormals` mode."""
        self.call, self.error, self.is_running = (function, arguments, mode), None, True

    def _run(self):
        while True:
            self.wake.acquire()
            try:
                function, arguments, mode = self.call
                if mode != self.mode:
                    denormals.set_mode(mode)
                    self.mode = mode
                function(*arguments)
            except BaseException as error:  # the caller raises it
                self.error = error
            self.call, self.is_running = None, False
            self.done.release()


class Threads:
    """A pool whose `run(function, argument_lists)` makes its calls side by side.

    Ctrl-C may raise its exception after a call has returned but before its result is stored. So
    `taken += map(...)` records in C that the pool is taken, and likewise that workers are awake.
    """

    def __init__(self, count=None):
        self.count = count or _count()
        self._workers = []
        self._busy = threading.Lock()

    def run(self, function, argument_lists):
        """Make all calls, the last one in the caller, and return when every call has returned.

        One caller at a time uses the workers; others run alone, also at interpreter shutdown, when
        no worker runs. The first exception of a call is raised when all calls have ended.
        """
        *others, last = argument_lists
        if not others:
            function(*last)
            return
        own = functools.partial(_error_of, function, last)
        errors = self._side_by_side(function, others, own, [])
        if errors is None:
            for arguments in argument_lists:
                function(*arguments)
            return
        for error in filter(None, errors):
            try:
                raise error
            finally:
                del error, errors  # their tracebacks hold this frame: avoid a cycle

    def together(self, function, argument_lists, returned):
        """Run compiled calls that wait for one another, the first one in the caller.

        Either all of them run or none. `function` must be machine code that releases the GIL.

        A signal raises its exception before or after all calls. No bytecode runs between the
        release of the first worker and the end of the caller's own call, so the exception cannot
        end the caller's call while workers wait for it.

        Args:
            returned: a list. The result of the first call is appended as soon as it has returned,
                even if an exception ends the wait for the others.

        Returns:
            False if no threads are available: another caller has them, or Python is shutting down.
        """
        first, *others = argument_lists
        own = functools.partial(function, *first)
        return self._side_by_side(function, others, own, returned) is not None

    def _side_by_side(self, function, others, own, returned):
        """Call function with `others` in workers, and own(), whose result ends `returned`.

        Return a list of that result and the workers' errors, or None if nothing was called.
        """
        workers, taken = None, [False]
        try:
            if not sys.is_finalizing():
                taken += map(self._busy.acquire, AT_ONCE)
            if taken[-1]:
                workers = self._ready(len(others))
            if workers is None:
                return None
            mode = denormals.get_mode()
            for worker, arguments in zip(workers, others, strict=True):
                worker.hand(function, arguments, mode)
            returned += map(_call, [*(w.wake.release for w in workers), own])
            errors = returned[-1:]
            for worker in workers:
                worker.done.acquire()
                errors.append(worker.error)
                worker.error = None
            return errors
        except BaseException:  # Ctrl-C
            if returned:  # the workers' states are unknown, so replace them
                self._workers = []
                _wait_until_idle(workers)
            raise
        finally:
            if taken[-1]:
                self._busy.release()

    def _ready(self, count):
        """Return `count` idle workers, or None if the system has no more threads."""
        try:
            while len(self._workers) < count:
                self._workers.append(_Worker())
        except RuntimeError:  # can't start new thread
            return None
        return self._workers[:count]


_call = methodcaller("__call__")  # in C: no bytecode runs


def _error_of(function, arguments):
    try:
        function(*arguments)
    except Exception as error:  # raised again when the other calls have ended
        return error
    return None


def _wait_until_idle(workers):
    """Wait, up to LONGEST_WAIT, until running kernels no longer write to their memory."""
    deadline = time.monotonic() + LONGEST_WAIT
    while any(w.is_running for w in workers) and time.monotonic() < deadline:
        time.sleep(0.0005)


threads = Threads()


def _after_fork():
    threads.__init__(threads.count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
