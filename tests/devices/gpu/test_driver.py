"""The driver of cuda, over doubles of NVIDIA's packages: errors, threads, launches."""

import threading
from types import SimpleNamespace

import pytest

from minigrad.devices.gpu.driver import errors as cuda_errors
from minigrad.devices.gpu.driver.driver import Driver
from minigrad.errors import GpuError


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
        with pytest.raises(GpuError, match="outside its memory"):
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
