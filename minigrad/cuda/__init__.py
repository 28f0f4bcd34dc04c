"""CUDA for users: custom kernels, the device, and reports of a kernel's memory accesses.

    @mg.cuda.jit
    def double(x, out):
        i = mg.cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + x[i]

    double[blocks, threads](x, out)                    # runs it
    mg.cuda.inspect(double[blocks, threads], x, out)   # shows what it does to memory

With NumPy arrays and Variables on "simt", a kernel runs in the simulator (`minigrad.simt`), which
watches every access. With Variables on "cuda", Numba compiles it for the GPU. Kernels use the names
of `numba.cuda`: `grid`, `threadIdx`, `shared`, `syncthreads`, `atomic`, ...

A kernel records nothing. To give it a gradient, launch it in the forward of a `mg.Function`, on
`x.detach()`, the values of x, and launch another kernel in backward:

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
from minigrad.hints import missing as _missing
from minigrad.simt.language.language import cuda as _language

globals().update({name: value for name, value in vars(_language).items() if name != "path"})


def __getattr__(name):
    raise _missing("mg.cuda", name, "module 'minigrad.cuda' has no attribute", known=__dir__())


def __dir__():
    """Returns the public names, without the submodules that define them."""
    return sorted(
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    )
