"""Products of halves by tensor cores: how they read, edges, batches; simulated and watched."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.bits import rounded, widened
from minigrad.array.dtypes import as_dtype, bfloat16, float16
from minigrad.devices.gpu.product.tensor_text import ACROSS, ALONG_K, SINGLE
from tests.devices.gpu.doubles import there
from tests.devices.gpu.machine import Machine
from tests.devices.gpu.products import lying

RNG = np.random.default_rng(11)


@pytest.fixture
def machine():
    found = Machine()
    found.has_tensor_cores = True
    return found


def halves(dtype, *shape):
    """(cells, numbers) of random halves."""
    x = RNG.standard_normal(shape).astype(np.float32)
    if dtype is bfloat16:
        return rounded(x), widened(rounded(x))
    return x.astype(np.float16), x.astype(np.float16).astype(np.float32)


def placed(machine, cells, dtype, is_transposed=False):
    """An Array of cells in the machine; transposed in memory if asked for."""
    stored = lying(cells, is_transposed)
    base = stored.swapaxes(-1, -2) if is_transposed else stored
    out = machine.empty(base.shape, dtype)
    if base.size:
        machine.upload(np.ascontiguousarray(base).reshape(-1).view(np.uint8), out.buffer)
    if not is_transposed:
        return out
    strides = (*out.strides[:-2], out.strides[-1], out.strides[-2])
    return out.view(cells.shape, strides)


def numbers(machine, x):
    """The float32 numbers of an Array of halves."""
    cells = np.array(machine.download(x.buffer, 0, x.nbytes)).view(x.dtype.memory)
    return x.dtype.numbers(cells.reshape(x.shape)).astype(np.float32)


def ways(machine):
    """How the kernels that ran have read their operands."""
    return [k.text.partition("a is read ")[2].partition('."')[0] for k in machine.launched]


def check(machine, dtype, a, b, out, wanted, bias=None):
    """The machine's product, in one launch, is within a rounding of what is wanted."""
    machine.launched.clear()
    machine.matmul(a, b, out, bias)
    ulp = 2.0**-8 if dtype is bfloat16 else 2.0**-11
    np.testing.assert_allclose(
        numbers(machine, out), wanted, rtol=1.01 * ulp, atol=1e-4 * ulp * 100
    )
    return ways(machine)


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("size", [(64, 64, 32), (72, 136, 40), (16, 16, 16), (200, 24, 96)])
def test_vectors_equal_numpy(machine, dtype, turned, size):
    m, n, k = size
    (a, x), (b, y) = halves(dtype, m, k), halves(dtype, k, n)
    out = machine.empty((m, n), dtype)
    a, b = placed(machine, a, dtype, turned[0]), placed(machine, b, dtype, turned[1])
    how = check(machine, dtype, a, b, out, x @ y)
    assert how == [f"{ACROSS if turned[0] else ALONG_K}, b {ALONG_K if turned[1] else ACROSS}"]


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
@pytest.mark.parametrize("turned", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("size", [(65, 67, 33), (17, 130, 19), (16, 21, 95)])
def test_single_elements_equal_numpy(machine, dtype, turned, size):
    m, n, k = size
    (a, x), (b, y) = halves(dtype, m, k), halves(dtype, k, n)
    out = machine.empty((m, n), dtype)
    a, b = placed(machine, a, dtype, turned[0]), placed(machine, b, dtype, turned[1])
    assert check(machine, dtype, a, b, out, x @ y) == [f"{SINGLE}, b {SINGLE}"]


@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
@pytest.mark.parametrize("size", [(40, 48, 16), (33, 35, 17)])
def test_batches_and_biases(machine, dtype, size):
    m, n, k = size
    (a, x), (b, y), (bias, z) = (halves(dtype, *s) for s in ((3, 1, m, k), (2, k, n), (n,)))
    a, b, bias = (placed(machine, c, dtype) for c in (a[:, 0], b, bias))
    a = a.view((3, 2, m, k), (m * k, 0, k, 1))
    out = machine.empty((3, 2, m, n), dtype)
    assert len(check(machine, dtype, a, b, out, x @ y + z, bias)) == 1


def test_batches_of_many_axes_take_several_launches(machine):
    (a, x), (b, y) = halves(float16, 2, 1, 2, 1, 20, 16), halves(float16, 1, 2, 1, 2, 16, 24)
    out = machine.empty((2, 2, 2, 2, 20, 24), float16)
    a, b = placed(machine, a, float16), placed(machine, b, float16)
    a = a.view((2, 2, 2, 2, 20, 16), (2 * 320, 0, 320, 0, 16, 1))
    b = b.view((2, 2, 2, 2, 16, 24), (0, 2 * 384, 0, 384, 24, 1))
    assert len(check(machine, float16, a, b, out, x @ y)) > 1


@pytest.mark.parametrize(
    "size", [(0, 4, 4), (4, 0, 4), (4, 4, 0), (1, 1, 1), (15, 64, 64), (64, 64, 8)]
)
def test_other_sizes_are_left_to_the_other_kernels(machine, size):
    m, n, k = size
    (a, x), (b, y) = halves(float16, m, k), halves(float16, k, n)
    out = machine.empty((m, n), float16)
    a, b = placed(machine, a, float16), placed(machine, b, float16)
    assert not any(check(machine, float16, a, b, out, x @ y))


def test_sums_that_are_added_are_left_to_the_other_kernels(machine):
    (a, x), (b, y) = halves(float16, 32, 32), halves(float16, 32, 32)
    a, b, out = (
        placed(machine, a, float16),
        placed(machine, b, float16),
        machine.empty((32, 32), float16),
    )
    machine.matmul(a, b, out)
    machine.launched.clear()
    machine.matmul(a, b, out, None, True)
    assert not any(ways(machine))
    np.testing.assert_allclose(numbers(machine, out), 2 * (x @ y), rtol=2e-3, atol=1e-3)


def test_the_device_asks_for_the_capability(cuda):
    assert cuda.has_tensor_cores
    a, b = (mg.variable(RNG.normal(size=(32, 32))).to("float16") for _ in range(2))
    y = there(a.to("float32").numpy()).to("float16") @ there(b.to("float32").numpy()).to("float16")
    assert any("mma_f16" in kernel.text for kernel in cuda._loaded)
    wanted = a.to("float32").numpy() @ b.to("float32").numpy()
    np.testing.assert_allclose(y.to("float32").to("cpu").numpy(), wanted, rtol=1e-3, atol=1e-3)
    assert as_dtype(y.dtype) is float16
