"""Kernels of one's own: the launch syntax, arguments, versions, and errors that teach."""

import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad import cuda
from minigrad.errors import (
    ArgumentError,
    ArgumentTypeError,
    DataRaceError,
    DeviceError,
    GradientError,
    MinigradError,
    SavedValueModifiedError,
    SimulationError,
)
from tests.cuda.kernels import half, halve

f4 = np.float32


@cuda.jit
def racing(out):
    out[cuda.threadIdx.x // 2] = f4(1)


@cuda.jit
def dynamic(x, out):
    tile = cuda.shared.array(0, f4)
    tile[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    out[cuda.threadIdx.x] = tile[cuda.blockDim.x - 1 - cuda.threadIdx.x]


@pytest.fixture
def x():
    return np.arange(10, dtype=f4)


def test_launches(x):
    for configuration in [(1, 32), (3, 4), ((2,), (8,)), ((2, 1), (8, 1, 1)), (np.int64(3), 4, 0)]:
        out = np.zeros_like(x)
        assert halve[configuration](x, out) is None
        assert out.tolist() == (x / 2).tolist()
    launch = halve[1, 32]
    out = np.zeros_like(x)
    launch(x, out)
    launch(out, x)
    assert x.tolist() == [k / 4 for k in range(10)]


def test_numba_s_order_of_the_configuration(x):
    out = np.zeros_like(x)
    dynamic[1, 10, 0, 40](x, out)
    assert out.tolist() == x[::-1].tolist()
    dynamic[1, 10, None, np.int32(40)](x, out)


def test_the_decorator_with_and_without_parentheses():
    def kernel(x):
        x[0] = f4(1)

    for made in (cuda.jit(kernel), cuda.jit()(kernel), cuda.jit(watch=False)(kernel)):
        one = np.zeros(1, f4)
        made[1, 1](one)
        assert one[0] == 1
        assert made.py_func is kernel
        assert made.__name__ == "kernel"
    assert "halve, kernels.py:" in repr(halve)
    assert repr(half).startswith("<CUDA device function half")


def test_names_are_those_of_the_language():
    assert cuda.grid is mg.cuda.grid
    for name in (
        "threadIdx",
        "blockIdx",
        "shared",
        "local",
        "atomic",
        "syncthreads",
        "shfl_down_sync",
    ):
        assert name in dir(cuda)
    with pytest.raises(SimulationError, match="outside of a kernel"):
        cuda.grid(1)
    with pytest.raises(AttributeError, match=r"x\.to\('cuda'\)"):
        cuda.to_device(3)


def test_only_public_names_are_listed():
    listed = dir(cuda)
    assert {"jit", "inspect", "Kernel", "Report", "is_available", "why_not"} <= set(listed)
    assert not {"arguments", "compiled", "inspection", "writes", "types"} & set(listed)
    assert all(hasattr(cuda, name) for name in listed)


def test_names_of_pytorch_are_explained():
    for name, text in {
        "device_count": "is_available",
        "get_device_name": "minigrad doctor",
        "memory_allocated": r"mg\.memory\.stats\('cuda'\)\['current_bytes'\]",
        "set_device": r"mg\.set_default_device\('cuda'\)",
        "manual_seed": r"mg\.manual_seed\(seed\)",
        "Stream": "in the order of their launches",
        "Event": "synchronize",
    }.items():
        with pytest.raises(AttributeError, match=text):
            getattr(cuda, name)
    assert {"current_bytes", "peak_bytes", "reserved_bytes"} <= set(mg.memory.stats("simt"))


def test_variables_on_simt(x):
    given, out = mg.variable(x, device="simt"), mg.zeros(10, device="simt")
    halve[1, 32](given, out)
    assert out.tolist() == (x / 2).tolist()
    assert (given.version, out.version) == (0, 1)


@cuda.jit
def halve_pair(pair):
    i = cuda.grid(1)
    if i < pair[1].size:
        pair[1][i] = half(pair[0][i])


def test_variables_in_a_tuple(x):
    given, out = mg.variable(x, device="simt"), mg.zeros(10, device="simt")
    kept = out.clone()
    halve_pair[1, 32]((given, out))
    assert (out.tolist(), kept.tolist()) == ((x / 2).tolist(), [0.0] * 10)
    assert out.version == 1
    with pytest.raises(DeviceError, match="pair is on the CPU"):
        halve_pair[1, 32]((given, mg.zeros(10)))
    with pytest.raises(GradientError, match=r"pair\.detach"):
        halve_pair[1, 32]((given.requires_grad_(), out))


def test_a_clone_keeps_its_values(x):
    given, out = mg.variable(x, device="simt"), mg.zeros(10, device="simt")
    kept = out.clone()
    halve[1, 32](given, out)
    assert kept.tolist() == [0.0] * 10
    assert out.tolist() == (x / 2).tolist()


def test_views_and_overlaps(x):
    both = mg.variable(np.stack([x, x]), device="simt")
    halve[1, 32](both[0], both[1])
    assert both.tolist() == [x.tolist(), (x / 2).tolist()]
    assert both.version == 1
    with pytest.raises(DataRaceError):
        halve[1, 32](both[0][:9], both[0][1:])


def test_backward_sees_that_a_saved_value_was_written(x):
    w = mg.variable(x, device="simt", requires_grad=True)
    y = mg.variable(x, device="simt")
    loss = (w * y).sum()
    halve[1, 32](mg.ones(10, device="simt"), y)
    with pytest.raises(SavedValueModifiedError, match="halve"):
        loss.backward()


def test_broadcast_views_are_not_written(x):
    out = mg.zeros(1, device="simt").expand(10)
    with pytest.raises(MinigradError):
        halve[1, 32](mg.variable(x, device="simt"), out)


def test_watch_is_left(x):
    with pytest.raises(DataRaceError) as caught:
        racing[1, 4](np.zeros(2, f4))
    assert len(caught.traceback) <= 4  # not the machine's closures, frame after frame
    out = np.zeros(2, f4)
    cuda.jit(watch=False)(racing.py_func)[1, 4](out)
    assert out.tolist() == [1, 1]


class Tensor:
    """What another library computes with."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros(10, np.float32)


REFUSED = [
    (lambda x: halve(x, x), SimulationError, r"not launched[\s\S]*halve\[blocks, threads\]\(x, "),
    (lambda x: half(1.0), SimulationError, r"device function[\s\S]*py_func"),
    (lambda x: half[1, 1], ArgumentTypeError, "device function"),
    (lambda x: halve[4], ArgumentTypeError, r"wanted blocks and threads\n  got: 4"),
    (lambda x: halve[1, 2, 0, 0, 0], ArgumentTypeError, "wanted blocks and threads"),
    (lambda x: halve[10 / 4, 4], ArgumentTypeError, r"2\.5[\s\S]*\(n \+ 255\) // 256"),
    (lambda x: halve[10 // 256, 256], ArgumentError, r"at least 1\n  got: 0"),
    (lambda x: halve[1, 0], ArgumentError, r"at least 1\n  got: 0[\s\S]*a multiple of 32"),
    (lambda x: halve[1, 1025], ArgumentError, r"at most 1,024 threads\n  got: 1,025\n"),
    (lambda x: halve[1, (64, 32)], ArgumentError, "which are 2,048"),
    (lambda x: halve[1, (1, 1, 65)], ArgumentError, "from 1 to"),
    (lambda x: halve[(1, 70_000), 32], ArgumentError, "from 1 to"),
    (lambda x: halve[-1, 32], ArgumentError, "from 1 to"),
    (lambda x: halve["1", 32], ArgumentTypeError, "an int or a tuple"),
    (lambda x: halve[(1, 1, 1, 1), 32], ArgumentTypeError, "one to three"),
    (lambda x: halve[1, 32, object()], ArgumentError, "stream"),
    (lambda x: halve[1, 32, 0, 1e3], ArgumentError, "wanted bytes"),
    (lambda x: halve[1, 32, 0, 10**6], ArgumentError, "232,448"),
    (lambda x: halve[1, 32](x), ArgumentTypeError, r"takes 2 arguments: x, out\n  got: 1"),
    (lambda x: halve[1, 32](x, x, x), ArgumentTypeError, "got: 3"),
    (lambda x: halve[1, 32](x.tolist(), x), ArgumentTypeError, r"a list[\s\S]*np\.array\(x"),
    (lambda x: halve[1, 32](None, x), ArgumentTypeError, "None"),
    (lambda x: halve[1, 32]("x", x), ArgumentTypeError, "str"),
    (lambda x: halve[1, 32](Tensor(), x), ArgumentTypeError, r"got: Tensor[\s\S]*np\.asarray\(x"),
    (lambda x: halve[1, 32](x.astype("c8"), x), ArgumentTypeError, "complex64"),
    (lambda x: halve[1, 32](mg.variable(x), x), DeviceError, r"on the CPU[\s\S]*x\.to\('simt'\)"),
    (lambda x: cuda.jit("void(float32[:])"), ArgumentTypeError, "leave the types out"),
    (lambda x: cuda.jit(fastmath=True), ArgumentTypeError, "leave it out"),
    (lambda x: cuda.jit(fastmath=True)(len), ArgumentTypeError, "leave it out"),
    (lambda x: cuda.jit(halve.py_func, parallel=True), ArgumentTypeError, "leave it out"),
    (lambda x: cuda.jit(shared=3), ArgumentTypeError, "it takes device, watch"),
    (lambda x: cuda.jit(device="simt"), ArgumentTypeError, "True or False for device"),
    (lambda x: cuda.jit(watch=3), ArgumentTypeError, "True or False for watch"),
    (lambda x: cuda.jit(halve.py_func, True), ArgumentTypeError, r"wanted jit\(function=None, \*"),
    (lambda x: cuda.jit()(halve.py_func, True), ArgumentTypeError, r"wanted jit\(function=None"),
    (lambda x: cuda.jit(halve), ArgumentTypeError, "already"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number, x):
    call, kind, text = REFUSED[number]
    with pytest.raises(kind, match=text) as caught:
        call(x)
    assert "test_jit.py" in caught.value.where
    assert x.tolist() == list(range(10))


def test_availability_says_why():
    assert cuda.is_available() == (cuda.why_not() is None)
    cuda.synchronize()
    if not cuda.is_available():
        assert "simt" in cuda.why_not()
        with pytest.raises(DeviceError):
            mg.zeros(3, device="cuda")


def test_importing_it_starts_no_gpu():
    import subprocess

    said = subprocess.run(
        [sys.executable, "-c",
         "import minigrad as mg, sys; mg.cuda.jit; "
         "print([m for m in ('numba.cuda', 'cuda.core', 'matplotlib') if m in sys.modules])"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.strip() == "[]"
