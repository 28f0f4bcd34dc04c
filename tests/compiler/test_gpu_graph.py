"""Compiled steps on `cuda`, over a double of the driver: CUDA graphs, whose memory must stay."""

import gc
import itertools
import threading
from types import SimpleNamespace

import pytest

import minigrad as mg
from minigrad import optim
from minigrad.compiler.gpu.recorder import RecordedLaunch
from minigrad.devices.gpu.driver import graph
from minigrad.devices.gpu.driver import matmul as cuda_matmul
from minigrad.devices.gpu.kernel import gpu_kernel
from minigrad.errors import GpuError
from tests.compiler import test_equality as cases
from tests.compiler.networks import mlp, rows
from tests.compiler.test_gpu_equality import small
from tests.compiler.twins import check, elements
from tests.devices.gpu import doubles
from tests.devices.gpu.doubles import FakeCublas


class GraphDriver(doubles.DoubleDriver):
    """A double of the driver that writes graphs as cuda.core does: on a stream of their own."""

    waits = False

    def __init__(self):
        super().__init__()
        self.here = threading.local()
        self.device = SimpleNamespace(create_graph_builder=lambda: Builder(self))
        self.replays = 0

    def load(self, kernel):
        assert getattr(self.here, "builder", None) is None, "compiled while a graph is written"
        return kernel

    def launch(self, kernel, blocks, threads, shared, arguments):
        builder = getattr(self.here, "builder", None)
        if builder is None:
            super().launch(kernel, blocks, threads, shared, arguments)
            return
        assert builder.is_building
        builder.written.append((kernel, blocks, threads, shared, arguments))


class Builder:
    """A graph that is written, then an executable one."""

    def __init__(self, driver):
        self.driver, self.written, self.is_building, self.is_closed = driver, [], False, False
        self.stream = SimpleNamespace(handle=99)

    def begin_building(self, mode):
        assert mode == "relaxed"
        self.is_building = True

    def end_building(self):
        self.is_building = False

    def complete(self):
        assert not self.is_building
        return self

    def close(self):
        self.is_closed = True

    def upload(self, stream):
        assert stream is self.driver.stream

    def launch(self, stream):
        assert stream is self.driver.stream
        self.driver.replays += 1
        for arguments in self.written:
            self.driver.ask(lambda arguments=arguments: self.driver._launch(*arguments))


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(doubles, "DoubleDriver", GraphDriver)
    monkeypatch.setitem(cuda_matmul._state, "choice", "own")
    with doubles.doubled() as device:
        yield device
        gc.collect()


def test_training_is_replayed_as_graphs(cuda):
    with mg.device("cuda"):
        (step,) = check(small(), 4)
    plan = step.traces[0].plan
    assert plan.device == "cuda"
    names = [type(x).__name__ for x, _ in plan.bound.segments]
    assert names == ["LaunchGraph"] * len(plan.segments)


def test_a_call_asks_for_its_graphs_and_nothing_else(cuda):
    with mg.device("cuda"):
        step, _, arguments = cases.CASES["Adam, zeroed first"](mg.compile)
        for k in range(3):
            step(*arguments[k % 3])
        launches, replays = len(cuda.driver.launches), cuda.driver.replays
        result = step(*arguments[0])
        assert len(cuda.driver.launches) == launches
        assert cuda.driver.replays - replays == 2  # one up to the check of the labels, the rest
        elements(result["loss"])


def test_a_graph_is_written_anew_when_parameters_move(cuda):
    def make(wrap):
        net = mlp()
        opt, manager = optim.SGD(net, 0.1), mg.GradManager(net.parameters())
        kept = []

        @wrap
        def step(x):
            with manager:
                loss = (net(x) ** 2).mean()
                manager.backward(loss)
            opt.step()
            opt.zero_grad()
            return loss

        def call(x, y):
            kept.append([p.detach().clone() for p in net.parameters()])  # copied at the next write
            return step(x), [a.sum() for a in kept[0]]

        return call, [net, opt], rows()

    with mg.device("cuda"):
        check(make, 6)


def test_memory_of_a_graph_stays(cuda):
    with mg.device("cuda"):
        step, _, arguments = small()(mg.compile)
        for k in range(3):
            step(*arguments[k % 3])
        mg.memory.empty_cache()
        cuda.pool.trim()
        others = [mg.ones((64,)) * float(k) for k in range(40)]  # over whatever was given back
        loss = elements(step(*arguments[0])["loss"])
        assert loss == loss
        assert [float(elements(x)[0]) for x in others] == list(range(40))


def test_products_of_the_library_are_written_with_a_handle_of_the_graph(cuda, monkeypatch):
    monkeypatch.setitem(cuda_matmul._state, "choice", "library")
    handles, numbers = set(), itertools.count(1)

    class Library(FakeCublas):
        def create(self):
            handles.add(handle := next(numbers))
            return handle

        def set_stream(self, handle, stream):
            assert stream == (77 if handle == 1 else 99)

        def destroy(self, handle):
            handles.remove(handle)

        def sgemm_strided_batched(self, handle, *arguments):
            builder = getattr(cuda.driver.here, "builder", None)
            assert (handle == 1) == (builder is None)
            if builder is None:
                super().sgemm_strided_batched(handle, *arguments)
            else:
                builder.written.append((self, arguments))

    library = Library(cuda)
    launch = GraphDriver._launch

    def run(driver, first, *rest):
        if first is library:
            FakeCublas.sgemm_strided_batched(library, 1, *rest[0])
            driver.queue.pop()()
        else:
            launch(driver, first, *rest)

    monkeypatch.setattr(GraphDriver, "_launch", run)
    cuda.__dict__["cublas"] = cuda_matmul.Cublas(library, 77)
    with mg.device("cuda"):
        check(cases.CASES["Adam, zeroed first"], 4)
    gc.collect()
    assert next(numbers) > 2, "graphs had handles"
    assert handles == {1}, "and they went with their graphs"


KERNEL = gpu_kernel("def kernel(n):\n    pass\n", "i8")


def fault(*arguments):
    raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")


def test_faults_of_a_replay_are_explained(cuda, monkeypatch):
    with mg.device("cuda"):
        step, _, arguments = small()(mg.compile)
        for k in range(3):
            step(*arguments[k % 3])
        monkeypatch.setattr(Builder, "launch", fault)
        with pytest.raises(GpuError, match="replaying launches: a kernel read or wrote outside"):
            step(*arguments[0])


def test_the_first_fault_while_a_graph_is_written_is_told(cuda, monkeypatch):
    ended = []

    def end_building(self):
        ended.append(self)
        raise RuntimeError("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: because of another fault")

    with mg.device("cuda"):
        step, _, arguments = small()(mg.compile)
        step(*arguments[0])
        monkeypatch.setattr(Builder, "end_building", end_building)
        monkeypatch.setattr(cuda.driver, "launch", fault)
        with pytest.raises(GpuError, match="a kernel read or wrote outside"):
            graph.LaunchGraph(cuda, [RecordedLaunch(KERNEL, 1, 32, (1,), 0)])
    assert ended
    assert cuda.driver.here.builder is None


def test_faults_are_looked_for_launch_by_launch(cuda):
    cuda.driver.waits = True
    with mg.device("cuda"):
        (step,) = check(cases.CASES["Adam, zeroed first"], 3)
    assert [type(x).__name__ for x, _ in step.traces[0].plan.bound.segments] == ["Launches"] * 2
