"""What the simulator lets kernels call is what Numba compiles for GPUs."""

import builtins
import inspect
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.cuda.compiled import translated
from minigrad.devices.gpu import compiler
from minigrad.errors import NotInCudaError, SimulationError
from minigrad.simt.language import functions
from tests.simt.programs import define

BITS = np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift
PAIRS = builtins.min, builtins.max, builtins.pow, builtins.divmod, math.pow
TUPLES = math.frexp, math.modf, builtins.divmod


def statement(function):
    """A line of a kernel that calls a function with elements of x."""
    home = {"builtins": "", "math": "math."}.get(function.__module__ or "", "np.")
    count = getattr(functions.PLAIN.get(function), "nin", 2 if function in PAIRS else 1)
    given = "x" if function is len else ", ".join(["x[0]", "x[1]"][:count])
    if function is math.ldexp:
        given = "x[0], 2"
    part = "[0]" if function in TUPLES else ""
    return f"    out[0] = {home}{function.__name__}({given}){part}\n"


@pytest.mark.skipif(compiler.missing() is not None, reason="the CUDA compiler is not installed")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_functions_that_kernels_may_call_compile_for_a_gpu(dtype):
    called = [*functions.PLAIN, builtins.divmod]
    if dtype is not np.int64:
        called = [function for function in called if function not in BITS]
    kernel = define("def kernel(x, out):\n" + "".join(map(statement, called)))["kernel"]
    taken = compiler.array_type(np.dtype(dtype), 1, True)
    (cubin,) = compiler.compile_function(translated(kernel), [taken, taken], [(8, 0)])
    assert cubin


@pytest.mark.parametrize(
    ("call", "why", "fix"),
    [
        ("np.exp(x[0])", "Numba has no np.exp for CUDA", "use math.exp"),
        ("np.sqrt(x[0])", "Numba has no np.sqrt for CUDA", "use math.sqrt"),
        ("np.abs(x[0])", "Numba has no np.abs for CUDA", "kernels call math.*"),
        ("np.sum(x)", "np.sum cannot be called in minigrad's kernels", "kernels call math.*"),
        ("mg.exp(x[0])", "mg.exp is called outside of kernels, which compute", "use math.exp"),
        ("mg.relu(x[0])", "mg.relu is called outside of kernels", "kernels call math.*"),
        ("mg.cuda.synchronize()", "is called outside of kernels", "use cuda.syncthreads"),
        (
            "inspect.stack()",
            "inspect.stack is a plain Python function",
            "make it a device function",
        ),
        ("cuda.shared.array(4, float)", "float is no element type", "use np.float32"),
    ],
)
def test_functions_that_kernels_may_not_call(call, why, fix):
    kernel = define(f"def kernel(x):\n    y = {call}\n", inspect=inspect, mg=mg)["kernel"]
    with pytest.raises(NotInCudaError) as caught:
        mg.cuda.jit(kernel)[1, 1](np.ones(4, np.float32))
    assert why in str(caught.value)
    assert fix in caught.value.fix


ONLY_NUMBA = [
    "x[:] = 0",
    "y = x[i:][0]",
    "m = cuda.local.array((2, 3), np.float32); y = m[1]",
    "x.fill(0)",
    "y = x.sum()",
    "y = np.sum(x)",
    "y = x.nbytes",
    "y = complex(x[i]).real",
    "y = isinstance(x[i], float)",
    "y = cuda.libdevice.fast_expf(x[i])",
    "y = (lambda v: v + v)(x[i])",
    "def twice(v): return v + v",
]


@pytest.mark.parametrize("line", ONLY_NUMBA)
def test_what_numba_takes_and_the_simulator_refuses_as_the_page_says(line):
    kernel = define(f"def kernel(x):\n    i = cuda.grid(1)\n    {line}\n", cuda=mg.cuda)["kernel"]
    with pytest.raises(SimulationError) as caught:
        mg.cuda.jit(kernel)[1, 4](np.ones(4, np.float32))
    assert line in caught.value.where
    if compiler.missing() is None:
        taken = compiler.array_type(np.dtype(np.float32), 1, True)
        assert compiler.compile_function(translated(kernel), [taken], [(8, 0)])
