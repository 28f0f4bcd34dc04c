"""Each construct of kernels, by the machine and by plain Python thread after thread."""

import math

import numpy as np
import pytest

from minigrad import simt
from tests.simt.programs import both, define, run_threads
from tests.simt.snippets import HELPERS, SNIPPETS

RNG = np.random.default_rng(0)
F = RNG.standard_normal(50).astype(np.float32)
M = RNG.standard_normal((7, 5))
TABLE = np.array([[1, 2, 3], [4, 5, 6]], np.int32)


@pytest.mark.parametrize("name", SNIPPETS)
def test_construct(name):
    names = {"TABLE": TABLE, "K": 7, "PAIR": (2, 3)}
    text = HELPERS + (
        "def kernel(x, m, table, out):\n    i = cuda.grid(1)\n    if i >= 50:\n        return\n"
    )
    x = F.astype(float)  # a float32 of NumPy would not become float64 as Numba's does
    both(text + SNIPPETS[name], 4, 16, [x, M, TABLE, np.full(50, -1.0)], **names)


def test_grid_of_three_axes():
    text = """
def kernel(out):
    x, y, z = cuda.grid(3)
    bx, by, bz = cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
    t = cuda.threadIdx
    if x < out.shape[0] and y < out.shape[1] and z < out.shape[2]:
        out[x, y, z] = bx + 10 * by + 100 * bz + 1000 * t.x + 10000 * t.y + 100000 * t.z
        out[x, y, z] += cuda.blockDim.y * 1000000 + cuda.gridDim.z * 10000000
"""
    both(text, (3, 2, 2), (4, 2, 3), [np.zeros((11, 4, 5), np.int64)])


def test_grid_stride_loop():
    text = """
def kernel(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] * 2
"""
    both(text, 2, 8, [F, np.zeros_like(F)])


def test_more_blocks_than_a_wave_holds():
    text = """
def kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = i * 3 + cuda.blockIdx.x
"""
    out = np.zeros(100_000, np.int64)
    simt.launch(define(text)["kernel"], 98, 1024, (out,))
    i = np.arange(out.size)
    assert (out == i * 3 + i // 1024).all()


def test_strided_and_reversed_arguments():
    text = """
def kernel(a, b, c, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i, 0] = a[i] + b[i, 1] * c[2, i]
"""
    base = RNG.standard_normal((20, 6))
    both(text, 1, 32, [base[:10, 0][::-1], base[::2], base.T, np.zeros((10, 3))[:, ::2]])


def test_constants_global_arrays_and_closures():
    text = """
def kernel(out):
    i = cuda.grid(1)
    t = cuda.const.array_like(TABLE)
    out[i] = TABLE[i % 2, i % 3] + t[0, 1] + module.K
"""
    import types

    out = np.zeros(6)
    space = define(text, TABLE=TABLE, module=types.SimpleNamespace(K=100))
    simt.launch(space["kernel"], 1, 6, (out,))
    assert (out == [TABLE[i % 2, i % 3] + 102 for i in range(6)]).all()

    def make(step):
        def kernel(out):
            i = cuda.grid(1)
            out[i] = i * step

        return kernel

    from minigrad.simt.language.language import cuda

    for step in (3, 4):
        simt.launch(make(step), 1, 6, (out,))
        assert (out == np.arange(6) * step).all()


def test_a_changed_global_is_seen():
    text = """
def kernel(out):
    out[cuda.grid(1)] = K
"""
    space, out = define(text, K=1), np.zeros(3)
    simt.launch(space["kernel"], 1, 3, (out,))
    space["K"] = 2
    simt.launch(space["kernel"], 1, 3, (out,))
    assert (out == 2).all()


def test_changed_device_function_is_seen():
    text = (
        "def inner(x):\n    return x + 1\n\n\ndef kernel(out):\n    out[cuda.grid(1)] = inner(1)\n"
    )
    space, out = define(text), np.zeros(3)
    simt.launch(space["kernel"], 1, 3, (out,))
    space["inner"] = define("def inner(x):\n    return x + 5\n")["inner"]
    simt.launch(space["kernel"], 1, 3, (out,))
    assert (out == 6).all()


def test_bits_of_numbers_as_others():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    bits = x[i].view(np.int32)
    out[i] = np.int32(bits ^ np.int32(1)).view(np.float32)
"""
    x, out = F[:8].copy(), np.zeros(8, np.float32)
    simt.launch(define(text)["kernel"], 1, 8, (x, out))
    assert (out.view(np.int32) == (x.view(np.int32) ^ 1)).all()


def test_local_arrays():
    text = """
def kernel(x, out):
    i = cuda.grid(1)
    acc = cuda.local.array((2, 3), np.float32)
    for a in range(2):
        for b in range(3):
            acc[a, b] = x[i + a * 3 + b]
    if i % 2:
        acc[1, 2] += 10
    acc[i % 2, i % 3] *= 2  # by each thread's own index
    if i > 4:
        acc[0, 0] = np.float64(0.1)
    s = np.float32(0)
    for a in range(2):
        for b in range(3):
            s += acc[a, b] * np.float32(a + 1)
    out[i] = s + acc[(i + 1) % 2, 0] + acc.shape[1]
"""
    out = np.zeros(9, np.float32)
    simt.launch(define(text)["kernel"], 3, 3, (F, out))
    for i in range(9):
        acc = F[i : i + 6].reshape(2, 3).copy()
        acc[1, 2] += 10 if i % 2 else 0
        acc[i % 2, i % 3] *= 2
        acc[0, 0] = 0.1 if i > 4 else acc[0, 0]
        s = np.float32(0)
        for a in range(2):
            for b in range(3):
                s += acc[a, b] * np.float32(a + 1)
        assert out[i] == s + acc[(i + 1) % 2, 0] + np.float32(3)


@pytest.mark.parametrize("index", ["k", "(k + i) % 3"])
def test_local_arrays_in_loops_of_different_length(index):
    text = f"""
def kernel(out):
    i = cuda.grid(1)
    for r in range(i):
        acc = cuda.local.array(3, np.int64)
        one = cuda.local.array(1, np.int64)
        one[0] = r
        for k in range(3):
            acc[{index}] = r * 10 + k
        out[i] = out[i] * 2 + acc[0] + acc[1] * acc[2]
    if i:  # what threads wrote that have left the loop before others
        out[i] += one[0] + acc[i % 3]
"""
    out, wanted = np.zeros(6, np.int64), np.zeros(6, np.int64)
    simt.launch(define(text)["kernel"], 1, 6, (out,))
    run_threads(text, 1, 6, [wanted])
    assert (out == wanted).all()


def test_zeros_have_signs():
    text = """
def kernel(out):
    i = cuda.grid(1)
    v = 0.0
    if i % 2:
        v = -0.0
    out[i] = v
"""
    out = np.ones(4)
    simt.launch(define(text)["kernel"], 1, 4, (out,))
    assert np.signbit(out).tolist() == [False, True, False, True]


def test_pointers():
    text = """
def kernel(first, p, q, n):
    i = cuda.grid(1)
    if i < n:
        q[i] = p[i] + p[i - 1]  # a pointer does not count from the end
    elif i > n:
        r = first if i % 2 else p
        q[i] = r[i - 5]
"""
    data = np.arange(10, dtype=np.float32)
    out = np.zeros(8, np.float32)
    first, p = simt.Pointer(data, np.float32), simt.Pointer(data, np.float32, 8)
    arguments = first, p, simt.Pointer(out, np.float32), 4
    simt.launch(define(text)["kernel"], 1, 8, arguments)
    assert out.tolist() == [3, 5, 7, 9, 0, 0, 3, 2]


def test_four_at_once():
    text = """
def kernel(p, q):
    i = 4 * cuda.grid(1)
    a, b, c, d = load4(p, i)
    store4(q, i, d, c, b, a)
"""
    from minigrad.simt.language.language import load4, store4

    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    space = define(text, load4=load4, store4=store4)
    simt.launch(space["kernel"], 2, 2, (simt.Pointer(x, np.float32), simt.Pointer(out, np.float32)))
    assert (out.reshape(4, 4) == x.reshape(4, 4)[:, ::-1]).all()


def test_numba_names():
    numba_cuda = pytest.importorskip("numba.cuda")
    from numba import float32, int64

    text = """
def kernel(x, out):
    i = grid(1)
    s = shared.array(4, float32)
    s[threadIdx.x] = x[i]
    syncthreads()
    out[i] = s[3 - threadIdx.x] + numba_cuda.laneid * int64(2)
"""
    names = {k: getattr(numba_cuda, k) for k in ("grid", "shared", "threadIdx", "syncthreads")}
    space = define(text, float32=float32, int64=int64, numba_cuda=numba_cuda, **names)
    x, out = np.arange(8, dtype=np.float32), np.zeros(8)
    simt.launch(space["kernel"], 2, 4, (x, out))
    assert out.tolist() == [3, 4, 5, 6, 7, 8, 9, 10]


def test_numba_functions():
    numba_cuda = pytest.importorskip("numba.cuda")

    @numba_cuda.jit(device=True)
    def double(x):
        return x * 2

    @numba_cuda.jit
    def kernel(x):
        x[numba_cuda.grid(1)] = double(x[numba_cuda.grid(1)])

    x = np.arange(4.0)
    simt.launch(kernel, 1, 4, (x,))
    assert x.tolist() == [0, 2, 4, 6]


def test_print(capsys):
    text = "def kernel(x):\n    i = cuda.grid(1)\n    if i > 1:\n        print('value', x[i], i)\n"
    simt.launch(define(text)["kernel"], 1, 4, (np.arange(4),))
    assert capsys.readouterr().out == "value 2 2\nvalue 3 3\n"


def test_mathematics():
    names = (
        *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin"),
        *("acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "erf", "erfc", "fabs", "ceil"),
        *("floor", "trunc", "gamma", "lgamma", "degrees", "radians"),
    )
    text = "def kernel(x, out):\n    i = cuda.grid(1)\n"
    text += "".join(f"    out[{k}, i] = math.{name}(x[i])\n" for k, name in enumerate(names))
    x = np.array([0.1, 0.5, 0.9])
    out = np.zeros((len(names), 3))
    simt.launch(define(text)["kernel"], 1, 3, (x, out))
    wanted = [[getattr(math, name)(v) for v in x] for name in names]
    np.testing.assert_allclose(out, wanted, rtol=1e-14)
