"""Keeps a thread that is woken off the CPU of the thread that wakes it.

Linux may put a woken thread into the queue of the waker's CPU while other CPUs idle, most of all
where CPUs share no cache, as those of virtual machines. There it waits until the waker's time
slice ends, some milliseconds: the waker, which works on, does all the work alone.
"""

import ctypes
import functools
import os


@functools.cache  # once: ctypes makes reference cycles for it
def _find_cpu():
    """Return the C library's function that returns the calling thread's CPU, or None."""
    if not hasattr(os, "sched_setaffinity"):  # Linux has both
        return None
    return getattr(ctypes.PyDLL(None), "sched_getcpu", None)


def keep_apart(thread):
    """Let a thread run where the caller may run, but not on the CPU where the caller runs now.

    Where the caller may use that CPU alone, or the system does not allow it, nothing changes.

    thread: its `native_id`.
    """
    if (find_cpu := _find_cpu()) is None:
        return
    try:
        others = os.sched_getaffinity(0) - {find_cpu()}
        if others:
            os.sched_setaffinity(thread, others)
    except OSError:  # the thread has ended, or a sandbox forbids it
        pass
