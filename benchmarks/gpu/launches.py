"""What asking for a kernel costs Python: three ways to launch, and an operation on one element."""

import ctypes

import minigrad as mg
from benchmarks.gpu.timing import Row, seconds_to_ask
from minigrad.devices.gpu import compiler
from minigrad.devices.gpu.driver import cubins as cuda_cubins
from minigrad.devices.gpu.kernel import gpu_kernel

TEXT = """
def kernel(x, y, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] + y[i]
"""
GOAL = 15.0  # microseconds


def rows(device):
    """The rows of the table."""
    with mg.device("cuda"), mg.no_grad():
        x, y, out = mg.ones((32,)), mg.ones((32,)), mg.zeros((32,))
        kernel = gpu_kernel(TEXT, "f4* f4* f4* i8")
        operands = (x.array, y.array, out.array, 32)
        device.launch(kernel, 1, 32, operands)
        yield _row(
            device,
            "a launch through cuda.core, as the engine does it",
            lambda: device.launch(kernel, 1, 32, operands),
            GOAL,
        )
        yield _row(device, "a launch by cuLaunchKernel, arguments packed before", _packed(device))
        yield _row(device, "a launch by Numba's launcher, device arrays", _by_numba())
        yield _row(device, "x + y of 32 elements", lambda: x + y)


def _row(device, what, function, goal=None):
    function()
    return Row(what, 1e6 * seconds_to_ask(device, function), "µs", None, goal)


def _packed(device):
    """cuLaunchKernel of cuda.bindings, with the array of pointers to arguments made once."""
    with mg.device("cuda"):
        arrays = [mg.ones((32,)) for _ in range(3)]
    cubin = cuda_cubins.cubin(gpu_kernel(TEXT, "f4* f4* f4* i8"), device.capability)
    kernel, api = device.driver.load(cubin), device.driver.api
    numbers = [*(a.array.address for a in arrays), 32]
    values = (ctypes.c_int64 * 4)(*numbers)
    first = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * 4)(*(first + 8 * k for k in range(4)))
    function = api.CUfunction(int(kernel.handle))
    stream, at = device.driver.stream.handle, ctypes.addressof(pointers)
    kept = arrays, values, pointers, kernel

    def launch():
        assert kept
        api.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, at, 0)

    return launch


def _by_numba():
    cuda = compiler.names()["cuda"]

    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]

    arrays = [cuda.device_array(32, "float32") for _ in range(3)]
    configured = add[1, 32]
    return lambda: configured(*arrays)
