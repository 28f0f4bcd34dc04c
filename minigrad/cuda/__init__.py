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

A kernel records nothing. It has a gradient as part of a `mg.Function`, whose backward launches
another one; in forward it is given `x.detach()`, the values of x:

>>> import minigrad as mg
>>> @mg.cuda.jit
... def square(x, out):
...     i = mg.cuda.grid(1)
...     if i < x.size:
...         out[i] = x[i] * x[i]
>>> @mg.cuda.jit
... def square_back(x, dy, dx):
...     i = mg.cuda.grid(1)
...     if i < x.size:
...         dx[i] = dy[i] * (x[i] + x[i])
>>> class Square(mg.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         out = mg.zeros_like(x)
...         square[(x.size + 255) // 256, 256](x.detach(), out)
...         return out
...     @staticmethod
...     def backward(ctx, dy):
...         (x,) = ctx.saved
...         dx = mg.zeros_like(x)
...         square_back[(x.size + 255) // 256, 256](x.detach(), dy, dx)
...         return dx
>>> x = mg.variable([1.0, 2.0, 3.0], device="simt", requires_grad=True)
>>> Square.apply(x).sum().backward()
>>> x.grad.tolist()
[2.0, 4.0, 6.0]
"""

import types

from minigrad.cuda.inspection import Report as Report
from minigrad.cuda.inspection import inspect as inspect
from minigrad.cuda.jit import Kernel as Kernel
from minigrad.cuda.jit import jit as jit
from minigrad.cuda.jit import synchronize as synchronize
from minigrad.devices.gpu.driver.matmul import choose as matmul_backend  # noqa: F401 - public
from minigrad.devices.gpu.driver.state import is_available as is_available
from minigrad.devices.gpu.driver.state import why_not as why_not
from minigrad.simt.language.language import cuda as _language

globals().update({name: value for name, value in vars(_language).items() if name != "path"})

_ONE_ORDER = "nothing: all kernels of a device run in the order of their launches"
_TIMES = "time.perf_counter(), after mg.cuda.synchronize()"
_KNOWN_AS = {  # what people who come from Numba, CuPy and PyTorch try first
    "to_device": "x.to('cuda'), or a NumPy array for the simulator",
    "device_array": "mg.zeros(shape, device='cuda')",
    "empty_cache": "mg.memory.empty_cache()",
    "current_device": "mg.device, a context manager",
    "stream": _ONE_ORDER,
    "reduce": "x.sum(), or a kernel of your own",
    "declare_device": "@mg.cuda.jit(device=True)",
    "device_count": "int(mg.cuda.is_available()): minigrad uses one GPU",
    "get_device_name": "`minigrad doctor`, which names the GPU",
    "memory_allocated": "mg.memory.stats('cuda')['current_bytes']",
    "max_memory_allocated": "mg.memory.stats('cuda')['peak_bytes']",
    "memory_reserved": "mg.memory.stats('cuda')['reserved_bytes']",
    "set_device": "`with mg.device('cuda'):` or mg.set_default_device('cuda')",
    "manual_seed": "mg.manual_seed(seed), for all devices",
    "manual_seed_all": "mg.manual_seed(seed), for all devices",
    "Stream": _ONE_ORDER,
    "Event": _TIMES,
    "event": _TIMES,
}


def __getattr__(name):
    hint = f"; here it is {_KNOWN_AS[name]}" if name in _KNOWN_AS else ""
    raise AttributeError(f"module 'minigrad.cuda' has no attribute '{name}'{hint}")


def __dir__():
    """The public names, without the submodules that they come from."""
    return sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    )
