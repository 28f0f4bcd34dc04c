"""What root may do beyond any user, and how a process gives it up for good.

Source: the manual pages capabilities(7) and prctl(2); the numbers are Linux'.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Any

READ_SEARCH = 2  # a capability: to read files and enter folders whatever their permissions say
KEEP_CAPABILITIES, DROP, NO_NEW_PRIVS = 8, 24, 38  # of prctl
CAPSET, VERSION_3 = {"x86_64": 126, "aarch64": 91}, 0x20080522  # capget is the number before


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


def reads_as_root() -> bool:
    """Whether this thread is not root's, and has READ_SEARCH all the same."""
    if sys.platform != "linux" or os.geteuid() == 0 or platform.machine() not in CAPSET:
        return False  # so `become` has kept nothing
    import ctypes

    sets = ctypes.create_string_buffer(24)
    head = struct.pack("<Ii", VERSION_3, 0)
    check(ctypes.CDLL(None, use_errno=True).syscall(CAPSET[platform.machine()] - 1, head, sets))
    return bool(sets.raw[0] >> READ_SEARCH & 1)


def must_not_read_as_root(missing: list[str]) -> None:
    """Raise PermissionError where a wall is missing that has to hold what this process may read."""
    if missing and reads_as_root():
        raise PermissionError(f"no wall can be built against {', '.join(missing)}")


def become(user: int, *, reading: bool) -> None:
    """Change from root to a user who owns nothing, in no group but their own.

    Args:
        user: the user's id, and the group's.
        reading: whether this process, not what it executes, goes on reading what root may read:
            Python and minigrad may lie where that user may not enter. Whoever asks for it builds
            walls (`walls.py`) before a stranger's line runs. A root who lacks the right itself (in
            a container, say) hands nothing on.

    Raises OSError where this process is not root or may not change its user.
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
        try:
            _set_capabilities(libc, 1 << READ_SEARCH)
        except PermissionError:
            _set_capabilities(libc, 0)


def _gain_no_other(libc: Any) -> None:
    for right in range(64):
        if right != READ_SEARCH and libc.prctl(DROP, right, 0, 0, 0) < 0:
            break  # the kernel knows no more


def _set_capabilities(libc: Any, kept: int) -> None:
    head = struct.pack("<Ii", VERSION_3, 0)
    # The lower halves of effective, permitted and inheritable, then the upper ones.
    sets = struct.pack("<6I", kept, kept, 0, 0, 0, 0)
    check(libc.syscall(CAPSET[platform.machine()], head, sets))
