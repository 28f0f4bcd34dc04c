"""Takes from a process of root's, for good, what root may do beyond any user.

Source: the manual pages capabilities(7) and prctl(2); the numbers are Linux'.
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Any

READ_SEARCH = 2  # a capability: read files and enter folders whatever their permissions
KEEP_CAPABILITIES, DROP, NO_NEW_PRIVS = 8, 24, 38  # of prctl
CAPSET, VERSION_3 = {"x86_64": 126, "aarch64": 91}, 0x20080522  # capget's is one less


def check(value: int) -> int:
    """Return the result of a libc function; raise OSError if it says that the call failed."""
    if value < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value


def keep_reading(libc: Any) -> None:
    """Drop all capabilities but READ_SEARCH: devices, limits, the clock, others' files."""
    _gain_no_other(libc)
    _set_capabilities(libc, 1 << READ_SEARCH)


def reads_as_root() -> bool:
    """Return whether this thread has READ_SEARCH though it is not root's."""
    if sys.platform != "linux" or os.geteuid() == 0 or platform.machine() not in CAPSET:
        return False  # so `become` has kept nothing
    import ctypes

    sets = ctypes.create_string_buffer(24)
    head = struct.pack("<Ii", VERSION_3, 0)
    check(ctypes.CDLL(None, use_errno=True).syscall(CAPSET[platform.machine()] - 1, head, sets))
    return bool(sets.raw[0] >> READ_SEARCH & 1)


def must_not_read_as_root(missing: list[str]) -> None:
    """Raise PermissionError if walls are missing while this process can read as root."""
    if missing and reads_as_root():
        raise PermissionError(f"no wall can be built against {', '.join(missing)}")


def become(user: int, *, reading: bool) -> None:
    """Change from root to a user who owns nothing and is in no other group.

    Args:
        user: the user's id, and the group's.
        reading: whether this process, not the programs that it executes, keeps root's right to
            read: Python and minigrad may lie where that user may not enter. The caller must build
            walls (`walls.py`) before a stranger's line runs. A root who lacks that right (in a
            container, say) passes nothing on.

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
            break  # the kernel knows no further capabilities


def _set_capabilities(libc: Any, kept: int) -> None:
    head = struct.pack("<Ii", VERSION_3, 0)
    # The lower halves of effective, permitted and inheritable, then the upper ones.
    sets = struct.pack("<6I", kept, kept, 0, 0, 0, 0)
    check(libc.syscall(CAPSET[platform.machine()], head, sets))
