"""Slips of newcomers: the error says what was meant, in words that fit the slip."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import (
    ArgumentTypeError,
    DataRaceError,
    NotInCudaError,
    OutOfBoundsError,
    SimulationError,
)
from minigrad.simt.language.language import cuda as language
from tests.simt.programs import define


def slip(body, cuda=mg.cuda, x=None, out=None, n=3):
    """The error of a kernel whose body slips."""
    x = np.zeros(8, np.float32) if x is None else x
    file = define(
        f"def slips(x, out, n):\n    i = cuda.grid(1)\n{body}\n", cuda=cuda, K=np.arange(4)
    )
    with pytest.raises(SimulationError) as caught:
        mg.cuda.jit(file["slips"])[1, 4](x, x.copy() if out is None else out, n)
    return caught.value


@pytest.mark.parametrize("value", ["'3'", "None", "(1, 2)", "x", "cuda.threadIdx"])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("int({})", "int"),
        ("math.sqrt({})", "math.sqrt"),
        ("max(1, {})", "max"),
        ("round({})", "round"),
        ("math.ldexp(1.0, {})", "math.ldexp"),
        ("cuda.popc({})", "cuda.popc"),
        ("cuda.fma({}, 1.0, 1.0)", "cuda.fma"),
        ("-{}", "the operator of -{}"),
    ],
)
def test_what_is_no_number_is_told_in_the_words_of_kernels(call, name, value):
    said = str(slip(f"    x[0] = {call.format(value)}"))
    assert f"{name.format(value)} takes numbers, not " in said
    assert "attribute" not in said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    x[0].count = 1", "no fields of records in the simulator"),
        ("    x[0].count += 1", "no fields of records in the simulator"),
        ("    j = x[0].count", "has no .count in the simulator"),
        ("    f = lambda a: a", "lambda cannot be used in the simulator"),
        ("    j = x is out", "`is` compares with None alone in the simulator"),
        ("    j = max(*(1, 2))", "cannot be used in calls in the simulator"),
        ("    x[0] = 3j", "3j cannot be used in the simulator"),
        ("    x.fill(0)", ".fill() cannot be called in the simulator"),
        ("    slips(x, out, n)", "calls itself, which Numba compiles for CUDA and minigrad does"),
        ("    a = cuda.local.array(n, np.int32)", "take the largest size that can be needed"),
        ("    a = cuda.shared.array(n, np.int32)", "is dynamic shared memory"),
    ],
)
def test_what_the_simulator_alone_lacks_is_called_so(body, words):
    assert words in str(slip(body))


@pytest.mark.parametrize("cuda", [mg.cuda, language], ids=["mg.cuda", "language"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    cuda.syncthread()", "cuda.syncthread is not known; did you mean cuda.syncthreads?"),
        ("    cuda.atomicAdd(x, 0, 1)", "atomicAdd is not known; did you mean cuda.atomic.add?"),
        (
            "    j = cuda.threadidx.x",
            "cuda.threadidx.x is not known; did you mean cuda.threadIdx.x?",
        ),
        ("    v = cuda.shfl_down(1, 2, 3)", "did you mean cuda.shfl_down_sync?"),
        ("    s = cuda.shared.zeros(3, np.float32)", "did you mean cuda.shared.array?"),
        ("    cuda.zzzzzzzzz()", "cuda.zzzzzzzzz is not known\n"),
        ("    cuda.syncthreads", "call it: cuda.syncthreads()"),
        ("    j = cuda.grid", "call it: cuda.grid(1)"),
        ("    j = cuda.popc", "call it: cuda.popc(...)"),
        ("    x[0] = float('none')", "float('none') is no number"),
    ],
)
def test_names_that_are_nearly_right(body, words, cuda):
    error = slip(body, cuda)
    assert type(error) is NotInCudaError
    assert words in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    x[cuda.threadIdx] = 1", "take one of the three: cuda.threadIdx.x"),
        ("    j = cuda.threadIdx + 1", "take one of the three: cuda.threadIdx.x"),
        ("    x[x] = 1", "use one element of it"),
        ("    x[K] = 1", "use one element of it"),
        ("    if i < n.size:\n        x[i] = 1", "n is a number, which has no .size: an array"),
        ("    if i < i.size:\n        x[i] = 1", "i is a number, which has no .size"),
        ("    x[i, n] = 1", "give one index per axis: x[i]"),
        ("    n[i] = 1", "n is an int64, which cannot be written to"),
        ("    n[i] += 1", "n is an int64, which cannot be written to"),
        ("    cuda.threadIdx[0] = 1", "cuda.threadIdx is a triple, which cannot be written to"),
        ("    x.shape[0] = 1", "x.shape is a tuple of 1, which cannot be written to"),
        ("    print('%d' % i)", "a text % an int64: a kernel has no such operation"),
        ("    x[i] = 'none'", "a text cannot be stored in an array of float32"),
        ("    x[i - 9] = 1", "guard the access: if i >= 0"),
        ("    x[i + 9] = 1", "guard the access: if i < 8"),
        ("    s = cuda.shared.array(-1, np.float32)", "is compiled, in whole numbers"),
        ("    s = cuda.shared.array(4, np.float32, 8, 9)", "takes a shape and a dtype"),
        ("    x[:] = 0", "x[:]: a slice cannot be assigned to here"),
        ("    x[1:] += 1", "a slice cannot be assigned to here"),
        ("    assert i < 2, 'beyond the end'", "got: beyond the end"),
        ("    assert i < 2, n", "got: n"),
        ("    raise ValueError('no data')", "got: ValueError('no data')"),
    ],
)
def test_values_that_are_nearly_right(body, words):
    assert words in str(slip(body))


def test_an_array_without_axes_is_no_number():
    error = slip("    if i < n:\n        x[i] = 1", n=np.array(5))
    assert "an array without axes" in str(error)
    assert "n[()]" in error.fix
    error = slip("    x[i] = n[i]", n=np.array(5))
    assert "n[i] has 1 index, the array 0 axes" in str(error)
    assert error.fix == "its one element is x[()]"


def test_dynamic_shared_memory_without_bytes():
    error = slip("    s = cuda.shared.array(0, np.float32)\n    s[i] = 1")
    assert type(error) is OutOfBoundsError
    assert "kernel[blocks, threads, 0, bytes]" in error.fix


def test_numbers_in_text():
    x = np.zeros(2, np.float32)
    kernel = define("def kernel(x):\n    x[0] = float('nan')\n    x[1] = -float('inf')\n")["kernel"]
    mg.cuda.jit(kernel)[1, 1](x)
    assert np.isnan(x[0])
    assert x[1] == -np.inf


def test_a_race_within_one_line():
    error = slip("    x[i] = x[i - 1]")
    assert type(error) is DataRaceError
    assert "read into a variable, cuda.syncthreads(), then write" in error.fix
    error = slip("    x[i] = 1\n    out[i] = x[i - 1]")
    assert "between the two lines" in error.fix


@pytest.mark.parametrize("body", ["    x[0] += 1", "    x[0] = x[0] + 1", "    x[i // 2] *= 2"])
def test_a_race_of_threads_that_change_one_element(body):
    error = slip(body)
    assert type(error) is DataRaceError
    assert "cuda.atomic.add" in error.fix
    assert "syncthreads" not in error.fix


def test_a_race_through_memory_that_two_arguments_share():
    x = np.zeros(8, np.float32)
    error = slip("    out[i + 1] = x[i]", x=x, out=x[:6])
    assert error.got == "element 1 of the memory that x and out share"


def test_the_byte_order_of_another_computer():
    x = np.zeros(4, np.dtype(np.float32).newbyteorder("S"))
    kernel = define("def kernel(x):\n    x[cuda.grid(1)] = 1\n")["kernel"]
    for launch in (mg.cuda.jit(kernel)[1, 4], lambda x: mg.simt.launch(kernel, 1, 4, (x,))):
        with pytest.raises(ArgumentTypeError, match=r"x\.astype\(x\.dtype\.newbyteorder\('='\)\)"):
            launch(x)


def test_arguments_by_name():
    kernel = define("def kernel(x, n):\n    x[cuda.grid(1)] = n\n")["kernel"]
    with pytest.raises(ArgumentTypeError, match=r"kernel\[blocks, threads\]\(x, n\)") as caught:
        mg.cuda.jit(kernel)[1, 4](np.zeros(4), n=3)
    assert caught.value.got == "n="
