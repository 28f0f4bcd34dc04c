"""Locks that the forking thread holds during a fork, because the child has no other threads.

If another thread held a lock at the fork, the child would find it locked for ever, and its data
half changed. So the forking thread acquires these locks first, which waits for other threads, and
both processes release them after the fork. A fork during a compilation waits until it ends.
"""

import os
import threading
import time
from dataclasses import dataclass
from typing import Any

from minigrad.memory.interrupts import uninterrupted

HAS_FORK = hasattr(os, "register_at_fork")


@dataclass(frozen=True)
class Held:
    """A lock to hold during forks.

    Attributes:
        lock: a threading.Lock or RLock. The forking thread may already hold an RLock.
        seconds: the longest time to wait for the lock. After it, as when two threads wait for each
            other, the fork continues without the lock, and the child resets it.
    """

    lock: Any
    seconds: float


class PoliteLock:
    """An RLock that gives priority to a fork.

    Python's locks are not fair. A thread that acquires a lock again and again, as when it compiles
    many kernels, would keep a fork waiting for ever.
    """

    def __init__(self):
        self.lock: Any = threading.RLock()
        self.forks = 0  # forks that wait for the lock

    @uninterrupted
    def __enter__(self):
        while self.forks and not self.lock._is_owned():
            time.sleep(0.001)
        self.lock.acquire()

    @uninterrupted
    def __exit__(self, *error):
        self.lock.release()

    def acquire(self, timeout):
        """Acquires the lock for a fork; returns whether it succeeded."""
        self.forks += 1
        try:
            return self.lock.acquire(timeout=timeout)
        finally:
            self.forks -= 1

    def release(self):
        """Releases the lock after a fork."""
        self.lock.release()

    def _at_fork_reinit(self):
        self.__init__()


class LocksOf:
    """Combines the `.lock` of several objects into one lock for `hold`."""

    def __init__(self, owners):
        self.owners, self.taken = owners, threading.local()

    def acquire(self, timeout):
        """Acquires all locks or none; returns whether it succeeded."""
        self.taken.locks = []
        until = time.monotonic() + timeout
        for owner in list(self.owners):
            if not owner.lock.acquire(timeout=max(0.0, until - time.monotonic())):
                self.release()
                return False
            self.taken.locks.append(owner.lock)
        return True

    def release(self):
        """Releases the locks that this thread has acquired."""
        while self.taken.locks:
            self.taken.locks.pop().release()

    def _at_fork_reinit(self):
        for owner in self.owners:
            owner.lock = threading.RLock()


class _Taken(threading.local):
    """The locks that this thread holds for a fork, and whether Ctrl-C came meanwhile."""

    def __init__(self):
        self.held: list[tuple[Held, bool]] = []
        self.interrupted = False


def hold(*locks):
    """Registers locks (each a Held) to hold during all forks from now on.

    A fork acquires the locks of one call in their order, and those of later calls before those of
    earlier ones. A lock may be passed in several calls.
    """
    if not HAS_FORK:
        return
    taken = _Taken()

    def before():
        taken.held, taken.interrupted = [], False
        for one in locks:
            try:
                taken.held.append((one, one.lock.acquire(timeout=one.seconds)))
            except KeyboardInterrupt:  # Python ignores exceptions here
                taken.held.append((one, False))
                taken.interrupted = True

    def in_parent():
        for one, is_held in reversed(taken.held):
            if is_held:
                one.lock.release()
        taken.held = []
        if taken.interrupted:
            raise_interrupt()

    def in_child():
        for one, is_held in reversed(taken.held):
            if is_held:
                one.lock.release()
            else:
                one.lock._at_fork_reinit()
        taken.held = []

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def raise_interrupt():
    """Raises the Ctrl-C that came while the main thread waited."""
    import _thread

    _thread.interrupt_main()
