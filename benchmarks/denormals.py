"""Flushes denormals to zero in this thread and in those it starts, through the C library.

Values that have been trained for long become denormal, and arithmetic with those is far slower.
Libraries without a switch of their own are given this one; minigrad, eager and compiled, computes
in the mode of the calling thread, so it needs no other.
"""

import ctypes
import platform
import sys

CONTROL = 28  # where glibc's fenv_t of x86-64 keeps the SSE control and status register
FLUSH = 0x8040  # flush to zero, and denormals are zero


def flush() -> bool:
    """Flushes from now on. False where this system offers no way that is known here."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return False
    try:
        mathematics = ctypes.CDLL("libm.so.6")
    except OSError:  # another C library
        return False
    state = (ctypes.c_uint8 * 32)()
    mathematics.fegetenv(state)
    register = ctypes.c_uint32.from_buffer(state, CONTROL)
    register.value |= FLUSH
    return mathematics.fesetenv(state) == 0
