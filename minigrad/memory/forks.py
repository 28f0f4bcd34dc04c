"""Locks that are held over a fork, since the child has none of the other threads.

A lock that another thread holds at a fork is locked in the child for ever, and what it guards is
half changed. So whoever forks takes these locks first, which waits until the others are out, and
both processes let go of them afterwards. A fork during a compilation takes as long as that does.
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
    """A lock to hold over forks.

    Attributes:
        lock: a threading.Lock or RLock. An RLock may be the forking thread's own already.
        seconds: how long to wait for it: if two threads wait for one another, the fork goes on, and
            in the child the lock is made new.
    """

    lock: Any
    seconds: float


class PoliteLock:
    """An RLock that lets a fork go first.

    Python's locks are not fair: a thread that takes one again and again, such as one that compiles
    kernel after kernel, would keep a fork waiting for ever.
    """

    def __init__(self):
        self.lock: Any = threading.RLock()
        self.forks = 0  # that wait for it

    @uninterrupted
    def __enter__(self):
        while self.forks and not self.lock._is_owned():
            time.sleep(0.001)
        self.lock.acquire()

    @uninterrupted
    def __exit__(self, *error):
        self.lock.release()

    def acquire(self, timeout):
        """Takes it for a fork; whether it did."""
        self.forks += 1
        try:
            return self.lock.acquire(timeout=timeout)
        finally:
            self.forks -= 1

    def release(self):
        """Lets go of it after a fork."""
        self.lock.release()

    def _at_fork_reinit(self):
        self.__init__()


class LocksOf:
    """The locks of some objects, `.lock` of each, as one lock for `hold`."""

    def __init__(self, owners):
        self.owners, self.taken = owners, threading.local()

    def acquire(self, timeout):
        """Takes all or none; whether it did."""
        self.taken.locks = []
        until = time.monotonic() + timeout
        for owner in list(self.owners):
            if not owner.lock.acquire(timeout=max(0.0, until - time.monotonic())):
                self.release()
                return False
            self.taken.locks.append(owner.lock)
        return True

    def release(self):
        """Lets go of what this thread took."""
        while self.taken.locks:
            self.taken.locks.pop().release()

    def _at_fork_reinit(self):
        for owner in self.owners:
            owner.lock = threading.RLock()


class _Taken(threading.local):
    """What this thread took, and whether Ctrl-C came meanwhile."""

    def __init__(self):
        self.held: list[tuple[Held, bool]] = []
        self.interrupted = False


def hold(*locks):
    """Holds locks (each a Held) over all forks from now on, taken in this order.

    Python calls what was registered last first. So a lock that is to be taken before others stands
    with them in one call, and again if need be.
    """
    if not HAS_FORK:
        return
    taken = _Taken()

    def before():
        taken.held, taken.interrupted = [], False
        for one in locks:
            try:
                taken.held.append((one, one.lock.acquire(timeout=one.seconds)))
            except KeyboardInterrupt:  # Python drops what is raised here
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
    """Lets the main thread have the Ctrl-C that came while it waited."""
    import _thread

    _thread.interrupt_main()
