"""The kernels that lesson 13 asks for really compile for GPUs, in float32 and without spills."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from minigrad.cuda.compiled import translated
from minigrad.devices.gpu import compiler

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "13_cuda_kernels.py"
pytestmark = pytest.mark.skipif(
    compiler.missing() is not None, reason="the CUDA compiler is not installed"
)
F4, I4 = np.dtype(np.float32), np.dtype(np.int32)
# Per kernel the dtypes and numbers of axes of its arrays; None: an integer.
KERNELS = {
    "k_map_guarded": [(F4, 1), (F4, 1), None],
    "k_block_sum": [(F4, 1), (F4, 1)],
    "k_warp_sum": [(F4, 2), (F4, 1)],
    "k_softmax_row": [(F4, 2), (F4, 2)],
    "k_matmul_tiled": [(F4, 2), (F4, 2), (F4, 2)],
    "k_transpose": [(F4, 2), (F4, 2)],
    "k_histogram": [(I4, 1), (I4, 1)],
}
SHARED = {"k_block_sum": 128 * 4, "k_matmul_tiled": 2 * 16 * 16 * 4, "k_transpose": 32 * 33 * 4}


@pytest.fixture(scope="module")
def solutions():
    spec = importlib.util.spec_from_file_location("solutions_13", SOLUTIONS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kernel_of_the_lesson_is_in_the_table(solutions):
    assert {name for name in vars(solutions) if name.startswith("k_")} == {*KERNELS}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_of_the_lesson_compiles_in_its_own_precision(name, solutions):
    types = [
        compiler.names()["types"].int64 if one is None else compiler.array_type(*one, True)
        for one in KERNELS[name]
    ]
    function = translated(getattr(solutions, name))
    for cubin in compiler.compile_function(function, types, [(8, 0), (9, 0)]):
        assert cubin.code
        assert cubin.doubles == 0
        assert cubin.spills == 0
        assert cubin.shared == SHARED.get(name, cubin.shared)
