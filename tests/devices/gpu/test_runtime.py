"""The cuda device over a driver that is a double: moving, kernels, memory."""

import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DeviceError, OutOfMemoryError
from tests.devices.gpu.doubles import doubled, there


def test_values_move_there_and_back(cuda):
    for dtype in ("float32", "float64", "int32", "int64", "uint8", "bool"):
        x = mg.variable(np.arange(12).reshape(3, 4) % 2, dtype=dtype)
        y = x.to("cuda")
        assert y.device == "cuda"
        assert y.dtype == x.dtype
        assert np.array_equal(y.to("cpu").numpy(), x.numpy())
        assert np.array_equal(y.T.to("cpu").numpy(), x.numpy().T)
    assert there(2.5).item() == 2.5


# -- kernels and their arguments


def test_operations_run_and_are_asked_for_only(cuda):
    x = there(np.linspace(-2, 2, 40, dtype=np.float32).reshape(4, 10))
    cuda.synchronize()
    done = cuda.driver.done
    y = mg.tanh(x * 2.0 + 1.0).sum(axis=1)
    assert cuda.driver.done == done, "nothing has waited"
    assert cuda.driver.launches
    wanted = np.tanh(np.linspace(-2, 2, 40).reshape(4, 10) * 2 + 1).sum(axis=1)
    np.testing.assert_allclose(y.to("cpu").numpy(), wanted, rtol=1e-5)


def test_gradients_run_on_the_device(cuda):
    x = there(np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=False)
    x = x.detach()
    x.requires_grad = True
    loss = (mg.softmax(x, axis=1) * x).sum()
    loss.backward()
    assert x.grad.device == "cuda"
    z = mg.variable(np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    (mg.softmax(z, axis=1) * z).sum().backward()
    np.testing.assert_allclose(x.grad.to("cpu").numpy(), z.grad.numpy(), rtol=1e-12)


def test_arrays_of_another_device_are_refused(cuda):
    kernel = object()
    cuda._loaded[kernel] = None, [cuda._pointer]
    with pytest.raises(DeviceError, match="the device that computes"):
        cuda.launch(kernel, 1, 1, [mg.variable([1.0]).array])


# -- memory


def test_memory_comes_from_the_pool_and_goes_back(cuda):
    x = there(np.zeros(1000, np.float32))
    held = mg.memory.stats("cuda")["current_bytes"]
    assert held >= 4000
    del x
    assert mg.memory.stats("cuda")["current_bytes"] < held
    assert mg.memory.empty_cache("cuda") > 0
    cuda.synchronize()
    assert cuda.driver.used == 0
    assert not cuda.driver.blocks


def test_memory_that_is_used_up_names_the_holder():
    with doubled(limit=8 << 20):
        kept = there(np.zeros((1 << 20) + 1, np.float32))
        with pytest.raises(OutOfMemoryError, match="out of memory on cuda"):
            there(np.zeros(1 << 20, np.float32))
        assert kept.to("cpu").numpy().sum() == 0


def test_freed_memory_is_poisoned_on_the_device(cuda):
    with mg.memory.poison("cuda"):
        x = there(np.zeros(16, np.float32))
        address = x.array.address
        del x
        gc.collect()
    cuda.synchronize()
    data, start = cuda.driver.find(address)
    assert (data[start : start + 64] == 0xFF).all()


def test_clone_is_copied_at_the_first_write(cuda):
    x = there(np.arange(4, dtype=np.float32))
    y = x.clone()
    assert y.array.buffer is x.array.buffer
    y.fill_(7.0)
    assert x.to("cpu").tolist() == [0.0, 1.0, 2.0, 3.0]
    assert y.to("cpu").tolist() == [7.0] * 4
