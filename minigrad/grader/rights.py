"""What root may do beyond any user, and how a process gives it up for good.

Source: the manual pages capabilities(7) and prctl(2); the numbers are Linux'.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
from typing import Any

READ_SEARCH = 2  # a capability: to read files and enter folders whatever their permissions say
KEEP_CAPABILITIES, DROP, NO_NEW_PRIVS = 8, 24, 38  # of prctl
CAPSET, VERSION_3 = {"x86_64": 126, "aarch64": 91}, 0x20080522


def check(value: int) -> int:
    """Return what a function of libc's returned, unless that says that it failed: OSError."""
    if value < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value


def keep_reading(libc: Any) -> None:
    """Give up all capabilities but READ_SEARCH: devices, limits, the clock, others' files."""
    _gain_no_other(libc)
    _set_capabilities(libc, 1 << READ_SEARCH)


def read_no_more() -> None:
    """Give up READ_SEARCH as well, where this process has it and is not root."""
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        with contextlib.suppress(OSError, ImportError, AttributeError, KeyError, TypeError):
            import ctypes

            _set_capabilities(ctypes.CDLL(None, use_errno=True), 0)


def become(user: int, *, reading: bool) -> None:
    """Change from root to a user who owns nothing, in no group but their own.

    Args:
        user: the user's id, and the group's.
        reading: whether this process, not what it executes, goes on reading what root may read:
            Python and minigrad may lie where that user may not enter. Whoever asks for it builds
            walls (`walls.py`) before a stranger's line runs.

    Raises OSError where this process is not root or lacks the rights.
    """
    if reading:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
        check(libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0))
        _gain_no_other(libc)
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    if reading:
        _set_capabilities(libc, 1 << READ_SEARCH)


def _gain_no_other(libc: Any) -> None:
    for right in range(64):
        if right != READ_SEARCH and libc.prctl(DROP, right, 0, 0, 0) < 0:
            break  # the kernel knows no more


def _set_capabilities(libc: Any, kept: int) -> None:
    head = struct.pack("<Ii", VERSION_3, 0)
    sets = struct.pack(
        "<6I", kept, kept, 0, 0, 0, 0
    )  # effective, permitted, inheritable: low, high
    check(libc.syscall(CAPSET[platform.machine()], head, sets))
