"""Memory of the cuda device shared with other libraries, over a driver that is a double."""

import gc
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import minigrad as mg
from minigrad.array.bits import Bfloats
from minigrad.array.dtypes import float32
from minigrad.devices.gpu.driver import errors as cuda_errors
from minigrad.devices.gpu.driver.driver import Driver
from tests.devices.gpu.doubles import DoubleDriver, there


def test_array_interface_describes_the_memory(cuda):
    x = there(np.arange(6, dtype=np.float32).reshape(2, 3))
    described = x.T.__cuda_array_interface__
    assert described["shape"] == (3, 2)
    assert described["strides"] == (4, 12)
    assert described["typestr"] == "<f4"
    assert described["data"] == (x.array.address, False)
    assert described["stream"] == cuda.driver.stream.handle
    assert x.array.buffer.is_foreign
    assert not hasattr(mg.variable([1.0]), "__cuda_array_interface__")


def test_memory_shown_by_the_interface_is_as_any_other_when_it_comes_back(cuda):
    x = there(np.arange(6, dtype=np.float32))
    buffer = x.array.buffer
    assert x.__cuda_array_interface__["data"] == x.__cuda_array_interface__["data"]
    assert buffer.pins == 2
    y = x.reshape((2, 3))
    del x
    assert buffer.pins == 2, "a view keeps the Storage alive"
    del y
    assert (buffer.pins, buffer.is_foreign) == (0, False)


@pytest.fixture
def exported(monkeypatch):
    """Capsules are pairs: what keeps the memory, and what the capsule was asked for with."""

    def view(driver, owner, array):
        return SimpleNamespace(__dlpack__=lambda **options: (owner, options))

    monkeypatch.setattr(DoubleDriver, "view", view, raising=False)


def test_memory_lent_by_dlpack_is_pinned_while_it_is_held(cuda, exported):
    x = there(np.arange(6, dtype=np.float32))
    clone = x.clone()
    lent, options = x.__dlpack__(stream=1, max_version=(1, 0))
    assert x.__dlpack_device__() == (2, 0)
    assert options == {"stream": -1, "max_version": (1, 0)}
    assert x.array.buffer.pins == 1
    assert x.array.buffer is not clone.array.buffer
    del lent
    assert x.array.buffer.pins == 0
    assert not x.array.buffer.is_foreign


@pytest.mark.parametrize(("stream", "waited"), [(None, [1, 1]), (1, [1, 1]), (9, [9, 9]), (-1, [])])
def test_streams_wait_for_each_other_when_memory_is_lent_and_when_it_comes_back(
    cuda, exported, monkeypatch, stream, waited
):
    waits = []
    monkeypatch.setattr(cuda.driver, "let_wait", waits.append)
    monkeypatch.setattr(cuda.driver, "wait_for", waits.append)
    lent = there([1.0, 2.0]).__dlpack__(stream=stream)
    assert waits == waited[:1]
    del lent
    assert waits == waited


def test_bfloat16_is_lent_as_such_by_dlpack_alone(cuda, monkeypatch):
    def view(driver, owner, array):
        words = np.array([0x3F80], np.uint16)
        return SimpleNamespace(__dlpack__=lambda **options: words.__dlpack__())

    monkeypatch.setattr(DoubleDriver, "view", view, raising=False)
    x = there(np.ones(1, ml_dtypes.bfloat16))
    capsule = x.__dlpack__()
    read = Bfloats(SimpleNamespace(__dlpack__=lambda **options: capsule))  # refuses others
    assert np.from_dlpack(read).tolist() == [0x3F80]
    assert not hasattr(x, "__cuda_array_interface__")  # it has no name for them


def test_what_runs_backwards_is_lent_as_a_copy(cuda, exported, monkeypatch):
    lent = []
    view = DoubleDriver.view
    monkeypatch.setattr(
        DoubleDriver, "view", lambda driver, owner, array: lent.append(array) or view(driver, 0, 0)
    )
    x = there(np.arange(4, dtype=np.float32))
    x[::-1].__dlpack__()
    x[::2].__dlpack__()
    assert [array.strides for array in lent] == [(1,), (2,)]
    assert lent[0].buffer is not x.array.buffer is lent[1].buffer
    assert cuda.to_numpy(lent[0]).tolist() == [3.0, 2.0, 1.0, 0.0]


def test_lent_memory_is_not_used_again_before_the_other_library_has_read_it(cuda, exported):
    x = there(np.arange(6, dtype=np.float32))
    lent = x.__dlpack__(stream=1)
    address, seen = x.array.address, []
    memory = cuda.driver.find(address)[0].view(np.float32)
    cuda.driver.others.append(lambda: seen.append(memory[:6].tolist()))
    del x, lent
    y = there(np.zeros(6, np.float32))
    assert y.array.address == address
    cuda.synchronize()
    cuda.driver.run_others()
    assert seen == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]


def test_memory_that_comes_back_to_a_lost_gpu_is_no_second_error(cuda, exported, monkeypatch):
    def lost(other):
        raise cuda_errors.explained("CUDA_ERROR_ILLEGAL_ADDRESS", "waiting")

    lent = there([1.0, 2.0]).__dlpack__()
    monkeypatch.setattr(cuda.driver, "wait_for", lost)
    del lent  # an error would be reported by pytest
    gc.collect()


def foreign(device, shape=(2, 3), **changes):
    owner, address = device.driver.allocate(64)
    facts = {
        "is_device_accessible": True,
        "device_id": 0,
        "readonly": False,
        "dtype": np.dtype("float32"),
        "shape": shape,
        "strides": None,
        "ptr": address,
        "owner": owner,
    }
    return SimpleNamespace(**facts | changes)


def test_memory_of_others_is_shared(cuda, monkeypatch):
    monkeypatch.setattr(cuda.driver, "view_of", lambda data: data, raising=False)
    data = foreign(cuda)
    array = cuda.adopt_view(data)
    assert (array.shape, array.dtype, array.address) == ((2, 3), float32, data.ptr)
    cuda.fill(array, 3.0)
    cuda.synchronize()
    assert cuda.driver.blocks[data.ptr].view(np.float32)[:6].tolist() == [3.0] * 6
    assert array.is_foreign


def test_clone_of_memory_of_others_is_a_copy_at_once(cuda, monkeypatch):
    monkeypatch.setattr(cuda.driver, "view_of", lambda data: data, raising=False)
    array = cuda.adopt_view(foreign(cuda))
    assert cuda.share(array).buffer is not array.buffer  # they may write it, and we do not see it


def test_memory_of_others_is_not_used_again_there_before_we_are_done_with_it(cuda, monkeypatch):
    monkeypatch.setattr(cuda.driver, "view_of", lambda data: data, raising=False)
    data = foreign(cuda)
    array = cuda.adopt_view(data)
    cuda.fill(array, 3.0)
    del array
    memory = cuda.driver.find(data.ptr)[0].view(np.float32)
    cuda.driver.others.append(lambda: memory.fill(9.0))
    cuda.driver.run_others()
    cuda.synchronize()
    assert memory[:6].tolist() == [9.0] * 6


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"is_device_accessible": False}, "on the GPU"),
        ({"device_id": 1}, "on the GPU"),
        ({"readonly": True}, "may be written"),
        ({"dtype": np.dtype("uint16")}, "element type"),
        ({"strides": (1, 2)}, "contiguous"),
        ({"requires_grad": True}, "without a graph"),
    ],
)
def test_memory_that_cannot_be_shared_is_refused(cuda, monkeypatch, changes, said):
    monkeypatch.setattr(cuda.driver, "view_of", lambda data: data, raising=False)
    with pytest.raises(mg.errors.MinigradError, match=said):
        cuda.adopt_view(foreign(cuda, **changes))


def test_element_types_that_even_numpy_lacks_are_refused_in_words(cuda, monkeypatch):
    class Half(SimpleNamespace):
        @property
        def dtype(self):
            raise NotImplementedError("bfloat16 requires ml_dtypes")

    facts = vars(foreign(cuda))
    facts.pop("dtype")
    monkeypatch.setattr(cuda.driver, "view_of", lambda data: data, raising=False)
    with pytest.raises(mg.errors.DTypeError, match="element type that minigrad has") as caught:
        cuda.adopt_view(Half(**facts))
    assert "Half: bfloat16" in str(caught.value)


def test_view_is_asked_for_of_memory_that_is_the_gpus(cuda):
    """cuda.core asks the driver about the address: beyond the memory, it would be the host's."""
    asked = []

    def from_handle(address, nbytes, owner):
        asked.append((address - x.array.buffer.address, nbytes, owner))

    shown = SimpleNamespace(from_buffer=lambda buffer, shape, strides, dtype: (shape, strides))
    driver = Driver.__new__(Driver)
    driver.here = SimpleNamespace(is_current=True)
    driver.core = SimpleNamespace(
        Buffer=SimpleNamespace(from_handle=from_handle),
        utils=SimpleNamespace(StridedMemoryView=shown),
    )
    x = there(np.zeros((4, 16), np.float32))
    for part, wanted in (
        (x[1:, 2:4], ((3, 2), (16, 1))), (x[4:], ((0, 16), (16, 1))),
    ):  # fmt: skip
        assert driver.view("owner", part.array) == wanted
    assert asked == [(4 * 18, 4 * 34, "owner"), (0, 0, "owner")]
