"""A simulator that runs CUDA kernels on any laptop as a GPU does: in lock-step, with masks."""

from minigrad.simt.launch import Pointer, launch

__all__ = ["Pointer", "launch"]
