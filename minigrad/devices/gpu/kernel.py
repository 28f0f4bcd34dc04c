"""Describes a CUDA kernel before it runs: its text, the files it needs, its argument types."""

from minigrad.devices import loader

FOR_COMPILER = ("gpu_tensor",)  # files whose functions the simulator has itself

_made: dict = {}


class GpuKernel:
    """One kernel, for the simulator and for the compiler.

    Attributes:
        text: Python source that defines `kernel`; it may call what the headers
            `source/gpu_simt.py` and `source/gpu_cuda.py` and the included files define.
        signature: one word per argument: `f4*` is a pointer, `f4` a number; f4 f8 i4 i8 u1 u4.
        includes: names of files in `source/`, including those that they need.
    """

    __slots__ = ("_simulated", "compiled", "includes", "signature", "text")

    def __init__(self, text, signature, includes):
        self.text, self.signature, self.includes = text, signature, includes
        self._simulated = None
        self.compiled = {}  # {compute capability: Cubin}

    def simulated(self):
        """Return the function that the simulator runs."""
        if self._simulated is None:
            includes = tuple(name for name in self.includes if name not in FOR_COMPILER)
            self._simulated = loader.load(self.text, includes, "gpu_simt").kernel
        return self._simulated

    def for_compiler(self):
        """Return the function that Numba's CUDA target compiles."""
        return loader.load(self.text, self.includes, "gpu_cuda").kernel


def gpu_kernel(text, signature, includes=()):
    """Return the kernel for a text; equal texts share one."""
    key = (text, signature, tuple(includes))
    kernel = _made.get(key)
    if kernel is None:
        kernel = _made[key] = GpuKernel(text, signature, tuple(includes))
    return kernel


def made():
    """Return all kernels made in this process so far, so that checks can cover them."""
    return list(_made.values())
