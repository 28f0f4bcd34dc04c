"""The cuda device over a driver that is a double: memory, transfers, launches, errors."""

import ctypes
import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DeviceError, GpuError, OutOfMemoryError
from minigrad.kernels.gpu import cuda_errors, cuda_matmul
from minigrad.kernels.gpu.cuda_driver import Driver
from minigrad.kernels.gpu.cuda_transfer import Transfer
from tests.gpu.doubles import DoubleDriver, doubled


@pytest.fixture
def cuda():
    with doubled() as device:
        yield device


def there(values, **options):
    return mg.variable(values, **options).to("cuda")


# -- transfers


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 128, 1000])
def test_transfers_of_every_size_come_back(nbytes):
    driver = DoubleDriver()
    transfer = Transfer(driver, half=64)
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    _owner, address = driver.allocate(max(nbytes, 1))
    before = data.copy()
    transfer.upload(data, address)
    data[:] = 0  # the caller may do what it likes at once
    assert np.array_equal(transfer.download(address, nbytes), before)


def test_pinned_buffer_is_not_written_before_the_gpu_has_read_it():
    driver = DoubleDriver()
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    assert driver.done < len(driver.queue), "uploads return before they are done"
    assert transfer.download(address, 24).tolist() == list(range(24))


def test_wait_of_the_transfer_matters(monkeypatch):
    driver = DoubleDriver()
    monkeypatch.setattr(driver, "wait", lambda event: None)  # who does not wait reads too early
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    driver.synchronize()
    assert driver.blocks[address][:8].tolist() != list(range(8))


@pytest.mark.parametrize(
    ("name", "move"),
    [
        ("to_host", lambda transfer, address: transfer.download(address, 8)),
        (
            "to_device",
            lambda transfer, address: transfer.upload(np.zeros(8, np.uint8), address + 8),
        ),
    ],
)
def test_copy_that_ctrl_c_leaves_behind_does_no_harm_to_the_next(monkeypatch, name, move):
    driver = DoubleDriver()
    transfer = Transfer(driver, half=8)
    _owner, address = driver.allocate(24)
    transfer.upload(np.arange(24, dtype=np.uint8), address)
    driver.synchronize()

    ask = getattr(driver, name)

    def asked_and_interrupted(*copy):
        ask(*copy)
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, name, asked_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        move(transfer, address)
    monkeypatch.undo()
    for k in range(2):  # each of the buffers
        transfer.upload(np.full(8, 50 + k, np.uint8), address + 8 + 8 * k)
    assert transfer.download(address, 24).tolist() == [*range(8), *[50] * 8, *[51] * 8]


def test_forked_child_is_told_so_before_it_waits_for_a_lock():
    class Forked(DoubleDriver):
        def ready(self):
            raise GpuError("a fork")

    class Held:
        """A lock that another thread held, which the child does not have."""

        def __enter__(self):
            pytest.fail("waits for ever")

    transfer = Transfer(Forked())
    transfer.lock = Held()
    with pytest.raises(GpuError, match="a fork"):
        transfer.upload(np.zeros(1, np.uint8), 0)
    with pytest.raises(GpuError, match="a fork"):
        transfer.download(0, 1)


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


# -- what the driver says


@pytest.mark.parametrize("code", [*cuda_errors.EXPLAINED, "CUDA_ERROR_NEW", ""])
def test_errors_of_the_driver_say_what_to_do(code):
    error = cuda_errors.explained(code, "a copy")
    assert isinstance(error, GpuError)
    assert error.code == code
    assert str(error).startswith("a copy: ")
    assert "try: " in str(error)


def test_illegal_address_sends_to_the_simulator():
    text = str(cuda_errors.explained("CUDA_ERROR_ILLEGAL_ADDRESS", "waiting"))
    assert "device='simt'" in text
    assert "start Python again" in text
    assert "MINIGRAD_CUDA_SYNC=1" in text


class FakeLibrary:
    """What `Driver` needs of cuda.core and cuda.bindings to be made, and to fail."""

    def __init__(self, error="CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"):
        self.error, self.threads, self.configurations = error, [], 0

    def driver(self):
        driver = Driver.__new__(Driver)
        driver.core, driver.api = self, self
        driver.device = SimpleNamespace(set_current=self.enter, memory_resource=self)
        driver.here, driver.is_forked, driver.waits = threading.local(), False, False
        driver.stream, driver._configurations, driver.number = self, {}, 0
        return driver

    handle = 5

    def enter(self):
        self.threads.append(threading.get_ident())

    def allocate(self, nbytes, stream):
        raise RuntimeError(self.error)

    def sync(self):
        raise RuntimeError(self.error)

    def LaunchConfig(self, **options):
        self.configurations += 1
        return options

    def launch(self, *arguments):
        raise RuntimeError(self.error)

    def cuMemcpyDtoDAsync(self, *arguments):
        return (SimpleNamespace(value=700, name="CUDA_ERROR_ILLEGAL_ADDRESS"),)


def test_errors_become_ours_wherever_they_come_from():
    driver = FakeLibrary().driver()
    for call in (
        driver.synchronize,
        lambda: driver.launch(None, 1, 32, 0, []),
        lambda: driver.between(1, 2, 3),
        lambda: driver.allocate(64),
    ):
        with pytest.raises(GpuError, match="outside of its memory"):
            call()


def test_other_faults_pass_unchanged():
    driver = FakeLibrary("something else").driver()
    with pytest.raises(RuntimeError, match=r"^something else$"):
        driver.launch(None, 1, 32, 0, [])


def test_no_memory_left_is_a_memory_error_for_the_pool():
    with pytest.raises(MemoryError):
        FakeLibrary("CUDA_ERROR_OUT_OF_MEMORY").driver().allocate(64)


def test_every_thread_enters_the_gpu_once():
    library = FakeLibrary()
    driver = library.driver()
    driver.ready()
    driver.ready()
    other = threading.Thread(target=lambda: (driver.ready(), driver.ready()))
    other.start()
    other.join()
    assert len(library.threads) == len(set(library.threads)) == 2


def test_forked_process_is_told_so():
    driver = FakeLibrary().driver()
    driver.ready()
    driver._forked()
    with pytest.raises(GpuError, match="spawn"):
        driver.synchronize()


def test_event_lives_until_the_other_stream_waits_for_it():
    driver, alive = FakeLibrary().driver(), set()

    class Event:
        handle = 11

        def __init__(self):
            alive.add(self.handle)

        def __del__(self):
            alive.discard(self.handle)

    def wait(stream, event, flags):
        assert (stream, event, flags, alive) == (9, 11, 0, {11})
        return (SimpleNamespace(value=0),)

    driver.stream = SimpleNamespace(record=lambda options: Event())
    driver.api = SimpleNamespace(cuStreamWaitEvent=wait)
    driver.let_wait(9)
    assert not alive


def test_only_the_default_stream_is_named_again_later():
    driver, waited = FakeLibrary().driver(), []
    driver.core = SimpleNamespace(LEGACY_DEFAULT_STREAM="the default")
    driver.stream = SimpleNamespace(wait=waited.append)
    driver.device.sync = lambda: waited.append("everything")
    for stream in (1, 2, 0x7F00):  # others may be gone: a number is all that is known of them
        driver.wait_for(stream)
    assert waited == ["the default", "everything", "everything"]


class Launching(FakeLibrary):
    """A library that launches; asked: what it was asked for, in order."""

    def __init__(self):
        super().__init__()
        self.asked = []
        names = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared")
        self.CUfunction_attribute = names

    def launch(self, stream, configuration, kernel, *arguments):
        self.asked.append((stream, configuration, kernel, arguments))

    def sync(self):
        self.asked.append("waited")

    def cuKernelSetAttribute(self, *arguments):
        self.asked.append(arguments)
        return (SimpleNamespace(value=0),)


def test_launch_configurations_are_made_once_for_each_shape():
    library = Launching()
    driver = library.driver()
    for shared in (0, 16, 0, 16):
        driver.launch("kernel", (2, 1), 32, shared, [7])
    assert library.configurations == 2
    options = [{"grid": (2, 1), "block": 32, "shmem_size": shared} for shared in (0, 16, 0, 16)]
    assert library.asked == [(library, option, "kernel", (7,)) for option in options]


def test_much_shared_memory_is_asked_for_before_the_launch():
    library, kernel = Launching(), SimpleNamespace(handle=3)
    library.driver().launch(kernel, 1, 32, 48 << 10, [])
    library.driver().launch(kernel, 1, 32, 64 << 10, [])
    plain, asked, launched = library.asked
    assert (plain[2], launched[2]) == (kernel, kernel)
    assert asked == ("most shared", 64 << 10, 3, 0)


def test_every_launch_is_waited_for_if_that_is_wanted():
    library = Launching()
    driver = library.driver()
    driver.waits = True
    driver.launch("kernel", 1, 32, 0, [])
    assert library.asked[1:] == ["waited"]


def test_launches_go_to_the_graph_that_their_thread_writes():
    library = Launching()
    driver = library.driver()
    driver.ready()
    driver.here.builder = "a graph"
    driver.launch("kernel", 1, 32, 0, [])
    other = threading.Thread(target=driver.launch, args=("kernel", 1, 32, 0, []))
    other.start()
    other.join()
    assert [asked[0] for asked in library.asked] == ["a graph", library]


# -- products by the library


class FakeCublas:
    """Column-major products over addresses, as cuBLAS defines them."""

    def __init__(self, device):
        self.device, self.calls = device, 0

    def create(self):
        return 1

    def set_stream(self, handle, stream):
        assert stream == self.device.driver.stream.handle

    def _product(
        self, kind, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count
    ):
        size = np.dtype(kind).itemsize
        number = {4: ctypes.c_float, 8: ctypes.c_double}[size]
        alpha, beta = (number.from_address(at).value for at in (alpha, beta))

        def matrix(at, rows, columns, ld):
            data, start = self.device.driver.find(at)
            strides = (size, ld * size)
            return np.ndarray((rows, columns), kind, data, start, strides)

        def work():
            for i in range(count):
                left = matrix(a + i * sa * size, *((k, m) if ta else (m, k)), lda)
                right = matrix(b + i * sb * size, *((n, k) if tb else (k, n)), ldb)
                target = matrix(c + i * sc * size, m, n, ldc)
                product = (left.T if ta else left) @ (right.T if tb else right)
                target[...] = alpha * product + (beta * target if beta else 0)

        assert threading.get_ident() in self.device.driver.entered
        self.calls += 1
        self.device.driver.ask(work)

    def sgemm_strided_batched(self, handle, *arguments):
        self._product(np.float32, *arguments)

    def dgemm_strided_batched(self, handle, *arguments):
        self._product(np.float64, *arguments)


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
