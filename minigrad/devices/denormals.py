"""Controls whether arithmetic flushes subnormal numbers to zero, which is a mode of each thread.

A kernel, eager or compiled, computes in the mode of the thread that called it; the pool's threads
take over their caller's mode during a call.
"""

import platform

from minigrad.arguments import flag
from minigrad.devices.loader import source_kernel

IS_KNOWN = platform.machine() in ("x86_64", "AMD64")
FLUSH = 0x8040  # of x86-64: flush to zero, denormals are zero


def get_mode():
    """Return the calling thread's mode: FLUSH, 0 or one bit of FLUSH; 0 if no mode is known."""
    return source_kernel("denormals", "get_mode")() if IS_KNOWN else 0


def set_mode(mode):
    """Set the calling thread's mode to a result of `get_mode`, perhaps from another thread."""
    if IS_KNOWN:
        source_kernel("denormals", "set_mode")(mode)


def set_flush_denormal(mode):
    """Set whether the calling thread flushes subnormals to zero, as torch.set_flush_denormal.

    After long training a model's values may become subnormal, and many processors compute those
    far slower than others. Eager kernels and compiled steps follow the mode, and so do NumPy and
    Python's own arithmetic in the same thread. Threads of minigrad follow the thread that they
    work for. Where NumPy multiplies (MINIGRAD_BLAS=numpy), threads of its BLAS keep the mode that
    they started in.

    Returns:
        Whether the processor supports it: x86-64 does. Elsewhere nothing changes.

    >>> import minigrad as mg
    >>> supported = mg.set_flush_denormal(True)
    >>> tiny = mg.variable([1e-310]) * 1.0
    >>> supported = mg.set_flush_denormal(False)
    """
    set_mode(FLUSH if flag("set_flush_denormal", "mode", mode) else 0)
    return IS_KNOWN
