"""Which tests need the compiler for GPUs, and what is said where it is not installed."""

import os

import pytest

from minigrad.devices.gpu import compiler


def compiler_is_needed():
    """Skips the calling module without numba-cuda, with the reason; fails where it must be there.

    MINIGRAD_CUBINS=required says that it must.
    """
    absent = compiler.missing()
    if absent is None:
        return
    if os.environ.get("MINIGRAD_CUBINS") == "required":
        raise RuntimeError(f"CUDA kernels cannot be compiled: {absent} is not installed")
    pytest.skip(
        f"CUDA kernels are not compiled: {absent} is not installed (`python3 start.py test --all` "
        "installs it on Linux on x86-64; on Windows and other processors: pip install -e '.[cuda]' "
        "in the environment; there is none for macOS)",
        allow_module_level=True,
    )
