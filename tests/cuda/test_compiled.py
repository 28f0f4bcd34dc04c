"""Kernels of one's own on "cuda": over a driver that is a double, and compiled without a GPU."""

import inspect
import math
import re

import numpy as np
import numpy.typing as npt
import pytest

import minigrad as mg
from minigrad import cuda, simt
from minigrad.array.array import Array
from minigrad.cuda import atomic_add, compiled, grid, load4
from minigrad.devices.gpu import compiler
from minigrad.errors import DeviceError, KernelError, NotInCudaError
from tests.cuda.kernels import half
from tests.devices.gpu.doubles import doubled

f4 = np.float32
MORE = f4(3)
NEEDS_COMPILER = pytest.mark.skipif(
    compiler.missing() is not None, reason="the CUDA compiler is not installed"
)


@cuda.jit
def halve(x, out, n):
    tile = cuda.shared.array(32, mg.float32)
    i = mg.cuda.grid(1)
    tile[cuda.threadIdx.x] = half(x[i]) if i < n else f4(0)
    cuda.syncthreads()
    if i < n:
        out[i, 1] = tile[cuda.threadIdx.x]


def closed_over(k):
    @cuda.jit
    def kernel(p, q):
        i = grid(1)
        a, b, c, d = load4(p, i * 4)
        cuda.store4(q, i * 4, a, b, c, math.sqrt(d))
        atomic_add(q, k, a)

    return kernel


def plain_type(value):
    """(dtype, ndim) of an array, the class of a number: for the double."""
    return (value.dtype.numpy, len(value.shape)) if isinstance(value, Array) else type(value)


@pytest.fixture
def device(monkeypatch):
    """The device over a double whose launches are run by the simulator, from Numba's words."""
    with doubled() as found:
        compiled_for = []

        def compile_function(function, types, capabilities):
            compiled_for.append((function, tuple(types)))
            return [function]

        engines = found.driver.launch

        def launch(function, blocks, threads, shared, words):
            if not inspect.isfunction(function):
                engines(function, blocks, threads, shared, words)
                return
            words, arguments = list(words), []
            for kind in compiled_for[-1][1]:
                if not isinstance(kind, tuple):
                    arguments.append(kind(words.pop(0)))
                    continue
                dtype, ndim = kind
                assert words[:2] == [0, 0]
                size, itemsize, address = words[2:5]
                shape, strides = words[5 : 5 + ndim], words[5 + ndim : 5 + 2 * ndim]
                words = words[5 + 2 * ndim :]
                assert (itemsize, size) == (dtype.itemsize, math.prod(shape))
                found.driver.synchronize()
                data, start = found.driver.find(address)
                arguments.append(np.ndarray(shape, dtype, data, start, strides))
            assert not words
            simt.launch(function, blocks, threads, arguments, shared)

        monkeypatch.setattr(compiler, "compile_function", compile_function)
        monkeypatch.setattr(compiled, "translated", lambda function: function)
        monkeypatch.setattr(compiled, "_type", plain_type)
        monkeypatch.setattr(found.driver, "launch", launch)
        monkeypatch.setattr(compiled, "_loaded", {})
        found.compiled_for = compiled_for
        yield found


def test_arrays_arrive_as_numba_unpacks_them(device):
    x = mg.variable(np.arange(40, dtype=f4), device="cuda")
    out = mg.zeros((40, 3), device="cuda")
    kept = out.clone()
    halve[2, 32](x, out, 40)
    assert out.tolist() == [[0.0, k / 2, 0.0] for k in range(40)]
    assert kept.tolist() == [[0.0] * 3] * 40
    assert (x.version, out.version) == (0, 1)
    halve[2, 32](x[::2], out, np.int32(20))  # a view, with strides
    assert out.tolist()[:3] == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0]]


def test_compiled_once_per_types(device):
    x, out = mg.zeros(40, device="cuda"), mg.zeros((40, 3), device="cuda")
    for n in (1, 2, 3):
        halve[2, 32](x, out, n)
    assert len(device.compiled_for) == 1
    halve[2, 32](x[::2], out, 20)  # not contiguous: another type for Numba
    assert len(device.compiled_for) == 2


@cuda.jit
def double(x, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i, 1] = x[i] + x[i]


def test_two_kernels_of_the_same_types_are_two(device):
    x, out = mg.ones(40, device="cuda"), mg.zeros((40, 3), device="cuda")
    halve[2, 32](x, out, 40)
    double[2, 32](x, out, 40)
    assert out.tolist() == [[0.0, 2.0, 0.0]] * 40
    assert [function for function, _ in device.compiled_for] == [halve.py_func, double.py_func]


def test_devices_do_not_mix(device):
    x, out = mg.zeros(40, device="cuda"), mg.zeros((40, 3), device="simt")
    with pytest.raises(DeviceError, match="x on cuda, out on simt"):
        halve[2, 32](x, out, 1)
    with pytest.raises(DeviceError, match=r"out a NumPy array[\s\S]*x\.to\('cuda'\)"):
        halve[2, 32](x, np.zeros((40, 3), f4), 1)


def test_inspect_takes_copies_from_the_gpu(device):
    x, out = mg.zeros(40, device="cuda"), mg.ones((40, 3), device="cuda")
    report = cuda.inspect(halve[2, 32], x, out, 40)
    assert report.counts.threads == 64
    assert out.tolist() == [[1.0] * 3] * 40
    assert not device.compiled_for


def ptx_of(kernel, *types):
    """The PTX text of a kernel for compute capability 9.0."""
    with compiler._target((9, 0)):
        text, _ = compiler.names()["cuda"].compile(
            compiled.translated(kernel.py_func),
            compiler.names()["types"].void(*types),
            cc=(9, 0), device=False, abi="numba",
        )  # fmt: skip
    return text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.float16(1.5), [np.float16(1.5)]),  # two bytes, which are not the first two of a float64
        (np.float32(1.5), [np.float32(1.5)]),
        (np.float64(1.5), [1.5]),
        (np.uint64(2**64 - 1), [np.uint64(2**64 - 1)]),  # more than an address may be
        (np.int32(-3), [-3]),
        (np.bool_(True), [1]),
        (True, [1]),
    ],
)
def test_numbers_are_passed_in_the_bytes_that_a_kernel_reads(value, words):
    found = compiled._words(value)
    assert found == words
    assert [type(w) for w in found] == [type(w) for w in words]


@NEEDS_COMPILER
def test_numba_compiles_what_the_simulator_runs():
    values = [mg.zeros(40).array, mg.zeros((40, 3)).array, 40]
    types = [compiled._type(v) for v in values]
    (cubin,) = compiler.compile_function(compiled.translated(halve.py_func), types, [(9, 0)])
    assert cubin.doubles == 0
    assert cubin.shared == 128
    entry = re.search(r"\.entry[^)]*\)", ptx_of(halve, *types))[0]
    assert entry.count(".param") == sum(len(compiled._words(v)) for v in values)


@cuda.jit(device=True)
def scaled(x: npt.NDArray, by=MORE) -> npt.NDArray:
    return x * by


@cuda.jit
def with_types(x: npt.NDArray, out: npt.NDArray, n: int) -> None:
    i: int = cuda.grid(1)
    if i < n:
        out[i] = scaled(x[i])


@NEEDS_COMPILER
def test_types_and_defaults_of_arguments_need_no_names_of_the_body():
    types = [compiled._type(v) for v in (mg.zeros(40).array, mg.zeros(40).array, 40)]
    (cubin,) = compiler.compile_function(compiled.translated(with_types.py_func), types, [(9, 0)])
    assert cubin.doubles == 0
    x, out = np.ones(40, f4), np.zeros(40, f4)
    with_types[2, 32](x, out, 40)
    assert out.tolist() == [3.0] * 40


@cuda.jit(device=True)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@cuda.jit
def factorials(out):
    out[cuda.grid(1)] = factorial(cuda.grid(1))


@NEEDS_COMPILER
def test_a_function_that_calls_itself_is_refused_as_in_the_simulator():
    with pytest.raises(NotInCudaError, match="factorial calls itself") as here:
        compiled.translated(factorials.py_func)
    with pytest.raises(NotInCudaError) as there:
        factorials[1, 4](np.zeros(4, np.int64))
    assert str(here.value) == str(there.value)


@NEEDS_COMPILER
def test_wide_accesses_atomics_and_closures_compile():
    types = [compiled._type(mg.zeros(40).array)] * 2
    text = ptx_of(closed_over(3), *types)
    assert re.search(r"ld\.(global\.)?v4", text)
    assert "atom" in text or "red." in text


@NEEDS_COMPILER
def test_errors_name_the_kernel_s_line():
    @cuda.jit
    def wrong(x):
        x[0] = {}

    types, function = [compiled._type(mg.zeros(4).array)], compiled.translated(wrong.py_func)
    with pytest.raises(KernelError) as caught:
        compiler.compile_function(function, types, [(9, 0)])
    assert "test_compiled.py" in caught.value.where
