"""Matrix products by cuBLAS, over a double of it that takes addresses and columns as it does."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.gpu.driver import matmul as cuda_matmul
from tests.devices.gpu.doubles import FakeCublas, there


@pytest.fixture
def library(cuda, monkeypatch):
    monkeypatch.setitem(cuda_matmul._state, "choice", "library")
    fake = FakeCublas(cuda)
    cuda.__dict__["cublas"] = cuda_matmul.Cublas(fake, cuda.driver.stream.handle)
    return fake


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((1, 4), (4, 1))],
)
def test_products_by_the_library_equal_numpys(library, dtype, a_shape, b_shape):
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=s).astype(dtype) for s in (a_shape, b_shape))
    axes = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
    turned = there(a.transpose(axes).copy()).permute(axes)
    for x, y in ((there(a), there(b)), (turned, there(b))):
        np.testing.assert_allclose((x @ y).to("cpu").numpy(), a @ b, rtol=1e-5)
    assert library.calls >= 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_multiplied_as_float32_by_the_library(library, dtype):
    rng = np.random.default_rng(3)
    a, b = (mg.variable(rng.normal(size=s)).to(dtype) for s in ((3, 4), (4, 5)))
    y = a.to("cuda") @ b.to("cuda")
    assert library.calls == 1
    assert y.to("cpu").tolist() == (a.to("float32") @ b.to("float32")).to(dtype).tolist()


def test_gradients_and_bias_by_the_library(library):
    rng = np.random.default_rng(2)
    a, w, bias = rng.normal(size=(5, 2, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    results = []
    for device in ("cpu", "cuda"):
        x, v, c = (mg.variable(z).to(device).detach() for z in (a, w, bias))
        for z in (x, v, c):
            z.requires_grad = True
        y = mg.linear(x, v, c)
        (y * y).sum().backward()
        results.append([z.to("cpu").numpy() for z in (y.detach(), x.grad, v.grad, c.grad)])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    assert library.calls


def test_every_thread_enters_the_gpu_before_the_library_multiplies(library):
    a, b, found = there(np.eye(3)), there(np.ones((3, 2))), []
    thread = threading.Thread(target=lambda: found.append(a @ b))
    thread.start()
    thread.join()
    assert found[0].to("cpu").numpy().sum() == 6.0


@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_by_the_library_are_added_to_what_is_there(library, cuda, batch):
    a, b, out = there(np.ones((*batch, 2, 4))), there(np.ones((4, 2))), there(np.full((2, 2), 5.0))
    strides = (*(0 for _ in batch), 2, 1)
    summed = out.array.view((*batch, 2, 2), strides)
    cuda.matmul(a.array, b.array, summed, accumulate=True)
    assert (out.to("cpu").numpy() == 5 + 4 * max(1, sum(batch))).all()
    assert library.calls == max(1, sum(batch))


def test_who_multiplies_is_chosen(monkeypatch):
    monkeypatch.setitem(cuda_matmul._state, "choice", None)
    monkeypatch.setattr(cuda_matmul, "is_installed", lambda: False)
    assert cuda_matmul.choice() == "own"
    with pytest.raises(mg.errors.MissingLibraryError, match="cuda-matmul"):
        cuda_matmul.choose("library")
    with pytest.raises(mg.errors.ArgumentError, match="own, library"):
        cuda_matmul.choose("cublas")
    monkeypatch.setattr(cuda_matmul, "is_installed", lambda: True)
    assert cuda_matmul.choose("library") == "own"
    assert cuda_matmul.choice() == "library"
    monkeypatch.setitem(cuda_matmul._state, "choice", None)
    monkeypatch.setenv("MINIGRAD_CUDA_MATMUL", "own")
    assert cuda_matmul.choice() == "own"
