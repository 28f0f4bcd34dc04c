"""CUDA for people: kernels of one's own, the device, and what a kernel does to memory.

    @mg.cuda.jit
    def double(x, out):
        i = mg.cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + x[i]

    double[blocks, threads](x, out)                    # runs it
    mg.cuda.inspect(double[blocks, threads], x, out)   # shows what it does to memory

NumPy arrays and Variables on the device "simt" go to the simulator (`minigrad.simt`), which watches
every access; Variables on "cuda" to the GPU, compiled by Numba. The names that kernels use (`grid`,
`threadIdx`, `shared`, `syncthreads`, `atomic`, ...) are those of `numba.cuda`.
"""

from minigrad.cuda.inspection import Report as Report
from minigrad.cuda.inspection import inspect as inspect
from minigrad.cuda.jit import Kernel as Kernel
from minigrad.cuda.jit import jit as jit
from minigrad.cuda.jit import synchronize as synchronize
from minigrad.kernels.gpu.cuda_matmul import choose as matmul_backend  # noqa: F401 - public
from minigrad.kernels.gpu.cuda_state import is_available as is_available
from minigrad.kernels.gpu.cuda_state import why_not as why_not
from minigrad.simt.language import cuda as _language

globals().update({name: value for name, value in vars(_language).items() if name != "path"})

_KNOWN_AS = {  # what people who come from Numba, CuPy and PyTorch try first
    "to_device": "x.to('cuda'), or a NumPy array for the simulator",
    "device_array": "mg.zeros(shape, device='cuda')",
    "empty_cache": "mg.memory.empty_cache()",
    "current_device": "mg.device, a context manager",
    "stream": "nothing: all kernels of a device run in the order of their launches",
    "reduce": "x.sum(), or a kernel of your own",
    "declare_device": "@mg.cuda.jit(device=True)",
    "device_count": "mg.cuda.is_available(): minigrad uses one GPU",
}


def __getattr__(name):
    hint = f"; here it is {_KNOWN_AS[name]}" if name in _KNOWN_AS else ""
    raise AttributeError(f"module 'minigrad.cuda' has no attribute '{name}'{hint}")


def __dir__():
    return sorted(name for name in globals() if not name.startswith("_"))
