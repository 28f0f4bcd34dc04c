"""Matrix products: any layout, broadcast batches, no needless copies; BLAS, NumPy and our own."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.cpu import blas
from minigrad.devices.cpu.own_matmul import state
from minigrad.devices.threads import threads
from minigrad.errors import DTypeError, ShapeError

RNG = np.random.default_rng(0)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}

# how a matrix (..., m, n) may lie in memory: a maker of the ndarray and of the Variable over it
LAYOUTS = {
    "plain": lambda x: mg.variable(x),
    "transposed": lambda x: mg.variable(np.ascontiguousarray(x.swapaxes(-1, -2))).permute(
        (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    ),
    "part of wider rows": lambda x: mg.variable(
        np.concatenate([x - 9, x, x - 7], axis=-1)
    )[..., x.shape[-1] : 2 * x.shape[-1]],
    "every second row": lambda x: mg.variable(np.repeat(x, 2, axis=-2))[..., ::2, :],
    "every second column": lambda x: mg.variable(np.repeat(x, 2, axis=-1))[..., ::2],
    "backwards": lambda x: mg.variable(np.ascontiguousarray(x[..., ::-1, ::-1]))[..., ::-1, ::-1],
    "rows last": lambda x: mg.variable(np.ascontiguousarray(np.moveaxis(x, -2, 0))).permute(
        (*range(1, x.ndim - 1), 0, x.ndim - 1)
    ),
}  # fmt: skip


def close(y, want):
    assert y.shape == want.shape
    assert y.dtype.numpy == want.dtype
    bound = TOLERANCE[want.dtype.name]
    np.testing.assert_allclose(y.numpy(), want, rtol=bound, atol=bound * 10)


def normal(*shape, dtype="float32"):
    return RNG.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, LAYOUTS)), ids=" @ ".join)
def test_matmul_of_any_layouts_equals_numpy(layouts, dtype):
    for a_shape, b_shape in (((5, 7), (7, 4)), ((3, 5, 7), (3, 7, 4))):
        a, b = normal(*a_shape, dtype=dtype), normal(*b_shape, dtype=dtype)
        x, y = LAYOUTS[layouts[0]](a), LAYOUTS[layouts[1]](b)
        np.testing.assert_array_equal(x.numpy(), a)
        close(x @ y, a @ b)
        with blas.use_own():
            close(x @ y, a @ b)


SHAPES = [
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((5, 1), (1, 4)),
    ((7,), (7,)),
    ((7,), (7, 4)),
    ((5, 7), (7,)),
    ((7,), (3, 7, 4)),
    ((3, 5, 7), (7,)),
    ((2, 5, 7), (7, 4)),
    ((5, 7), (2, 7, 4)),
    ((3, 1, 5, 7), (2, 7, 4)),
    ((3, 1, 5, 7), (1, 2, 7, 4)),
    ((2, 3, 1, 5, 7), (1, 4, 7, 6)),
    ((1, 5, 7), (3, 7, 1)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_matmul_broadcasts_like_numpy(a_shape, b_shape):
    a, b = normal(*a_shape), normal(*b_shape)
    close(mg.variable(a) @ mg.variable(b), np.asarray(a @ b))
    with blas.use_own():
        close(mg.variable(a) @ mg.variable(b), np.asarray(a @ b))


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((0, 7), (7, 4)),
        ((5, 0), (0, 4)),
        ((5, 7), (7, 0)),
        ((0, 0), (0, 0)),
        ((0, 5, 7), (0, 7, 4)),
        ((0, 5, 7), (7, 4)),
        ((3, 5, 0), (3, 0, 4)),
        ((0,), (0,)),
    ],
)
def test_matmul_of_empty_sizes_equals_numpy(a_shape, b_shape):
    a, b = np.ones(a_shape, np.float32), np.ones(b_shape, np.float32)
    close(mg.variable(a) @ mg.variable(b), np.asarray(a @ b))
    with blas.use_own():
        close(mg.variable(a) @ mg.variable(b), np.asarray(a @ b))


def test_matmul_over_no_terms_overwrites_what_memory_held():
    with mg.memory.poison():
        for _ in range(3):
            y = mg.ones((50, 0)) @ mg.ones((0, 50))
            assert y.sum().item() == 0
            del y


def test_matmul_of_an_expanded_batch_reads_one_matrix():
    a, b = normal(5, 7), normal(4, 7, 3)
    x = mg.variable(a).unsqueeze(0).expand((4, 5, 7))
    with mg.memory.timeline() as timeline:
        y = x @ mg.variable(b)
    close(y, a @ b)
    assert sum(e.bytes for e in timeline if e.kind == "alloc") <= 2 * 4 * 7 * 3 * 4 + 4 * 5 * 3 * 4


def allocations(function):
    function()  # kernels are made, and what is remembered of layouts
    with mg.memory.timeline() as timeline:
        y = function()
    found = sorted((e.bytes for e in timeline if e.kind == "alloc"), reverse=True)
    del y
    return found


@pytest.mark.parametrize("layout", ["plain", "transposed", "part of wider rows", "rows last"])
def test_matmul_copies_no_operand_that_blas_can_read(layout):
    a, b = normal(16, 64, 64), normal(16, 64, 64)
    x, y = LAYOUTS[layout](a), LAYOUTS[layout](b)
    assert allocations(lambda: x @ y) == [16 * 64 * 64 * 4]


@pytest.mark.parametrize("layout", ["every second column", "backwards"])
def test_matmul_copies_one_matrix_at_a_time_where_it_must(layout):
    a, b = normal(16, 64, 64), normal(16, 64, 64)
    x, y = LAYOUTS[layout](a), mg.variable(b)
    result, *copies = allocations(lambda: x @ y)
    assert result == 16 * 64 * 64 * 4
    assert copies == [64 * 64 * 4] * 16


def test_matmul_own_copies_one_matrix_at_a_time_where_it_must():
    x, y = mg.variable(normal(4, 32, 32)), LAYOUTS["transposed"](normal(4, 32, 32))
    with blas.use_own():
        result, *copies = allocations(lambda: x @ y)
        assert allocations(lambda: y @ x) == [result], "a may have any strides"
    assert (result, copies) == (4 * 32 * 32 * 4, [32 * 32 * 4] * 4)


def test_matmul_gradients_of_broadcast_and_transposed_operands():
    a, b = normal(2, 1, 5, 7, dtype="float64"), normal(3, 4, 7, dtype="float64")
    x = mg.variable(a, requires_grad=True)
    y = mg.variable(b, requires_grad=True)
    dy = normal(2, 3, 5, 4, dtype="float64")
    (x @ y.permute((0, 2, 1))).backward(mg.variable(dy))
    want = (dy @ b).sum(1, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)
    want = (dy.swapaxes(-1, -2) @ a).sum(0)
    np.testing.assert_allclose(y.grad.numpy(), want, rtol=1e-12, atol=1e-12)


def test_linear_adds_its_bias_and_equals_numpy():
    x, w, b = normal(2, 6, 7), normal(4, 7), normal(4)
    variables = mg.variable(x), mg.variable(w), mg.variable(b)
    close(mg.linear(*variables), x @ w.T + b)
    with blas.use_own():
        close(mg.linear(*variables), x @ w.T + b)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("use_own", [False, True])
def test_matmul_carries_nan_and_infinities(value, use_own):
    a, b = np.ones((9, 6), np.float32), np.eye(6, dtype=np.float32)
    a[2, 3] = value
    with np.errstate(invalid="ignore"):
        want = a @ b
    if use_own:
        with blas.use_own():
            y = mg.variable(a) @ mg.variable(b)
    else:
        y = mg.variable(a) @ mg.variable(b)
    np.testing.assert_array_equal(y.numpy()[2], want[2])
    np.testing.assert_array_equal(np.delete(y.numpy(), 2, 0), np.delete(a, 2, 0) @ b)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_matmul_of_integers_is_exact_and_wraps_as_numpy(dtype):
    high = {"int64": 2**40, "int32": 2**20, "uint8": 256, "bool": 2}[dtype]
    a, b = (RNG.integers(0, high, s).astype(dtype) for s in ((3, 5, 7), (7, 4)))
    y = mg.variable(a) @ mg.variable(b)
    want = a.astype(np.int64) @ b.astype(np.int64)
    want = want if dtype == "bool" else want.astype(dtype)
    np.testing.assert_array_equal(y.numpy(), want)


def test_matmul_of_two_float_dtypes_raises():
    with pytest.raises(DTypeError, match="one floating point dtype"):
        mg.ones((2, 2)) @ mg.ones((2, 2), dtype="float64")


@pytest.mark.parametrize(
    ("a_shape", "b_shape"), [((2, 3), (2, 3)), ((2, 2, 3), (3, 3, 4)), ((), (2,)), ((2,), (3,))]
)
def test_matmul_of_shapes_that_do_not_fit_raises(a_shape, b_shape):
    with pytest.raises(ShapeError):
        mg.ones(a_shape) @ mg.ones(b_shape)


# -- our own kernel ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("m", [1, 3, 4, 6, 33])
@pytest.mark.parametrize("k", [1, 255, 256, 257, 600])
def test_own_product_equals_blas_around_its_block_sizes(m, k, dtype):
    a, b = mg.variable(normal(m, k, dtype=dtype)), mg.variable(normal(k, 17, dtype=dtype))
    with blas.use_own():
        own = a @ b
    close(own, (a @ b).numpy())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_own_product_of_large_matrices_is_the_same_for_any_number_of_threads(monkeypatch, count):
    monkeypatch.setattr(threads, "count", count)
    rng = np.random.default_rng(1)
    a, b = (mg.variable(rng.normal(size=s).astype("f4")) for s in ((131, 200), (200, 90)))
    with blas.use_own():
        own = (a @ b).numpy()
    np.testing.assert_allclose(own, a.numpy() @ b.numpy(), rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(threads, "count", 1)
    with blas.use_own():
        np.testing.assert_array_equal(own, (a @ b).numpy())


def test_use_own_calls_no_blas_ends_with_its_block_and_nests(monkeypatch):
    a = mg.ones((2, 3))

    def forbidden(name):
        raise AssertionError("BLAS was called")

    with monkeypatch.context() as patch, blas.use_own():
        patch.setattr(blas, "gemm", forbidden)
        with blas.use_own():
            pass
        assert state.is_used
        assert (a @ a.T).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert not state.is_used


def test_own_product_trains(monkeypatch):
    x, w = normal(6, 5), normal(5, 4)

    def gradient():
        v = mg.variable(w, requires_grad=True)
        (mg.variable(x) @ v).square().sum().backward()
        return v.grad.numpy().copy()

    want = gradient()
    with blas.use_own():
        np.testing.assert_allclose(gradient(), want, rtol=1e-4)


# -- without BLAS symbols ------------------------------------------------------------------------

FALLBACK = """
import numpy as np, minigrad as mg
from minigrad.devices import loader
from minigrad.devices.cpu import blas
assert not blas.find_blas()
rng = np.random.default_rng(0)
for s, t in (((5, 7), (7, 4)), ((3, 1, 5, 7), (2, 7, 4)), ((7,), (7, 4)), ((5, 0), (0, 4))):
    a, b = rng.normal(size=s), rng.normal(size=t)
    for dtype in "f4", "f8":
        x, y = a.astype(dtype), b.astype(dtype)
        np.testing.assert_allclose((mg.variable(x) @ mg.variable(y)).numpy(), x @ y, rtol=1e-5)
a, b = rng.normal(size=(5, 7)), rng.normal(size=(5, 4))
np.testing.assert_allclose((mg.variable(a).T @ mg.variable(b)).numpy(), a.T @ b)
x, w, c = rng.normal(size=(6, 7)), rng.normal(size=(4, 7)), rng.normal(size=4)
np.testing.assert_allclose(mg.linear(*map(mg.variable, (x, w, c))).numpy(), x @ w.T + c)
v = mg.variable(w, requires_grad=True)
x3 = rng.normal(size=(2, 6, 7))
(mg.variable(x3) @ v.T).sum().backward()
np.testing.assert_allclose(v.grad.numpy(), np.ones((4, 12)) @ x3.reshape(12, 7))
print("ok")
"""


def test_matmul_without_blas_symbols_takes_numpy():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FALLBACK],
        capture_output=True, text=True, check=False, env=os.environ | {"MINIGRAD_BLAS": "numpy"},
    )  # fmt: skip
    assert done.stdout == "ok\n", done.stderr


def test_blas_of_numpy_is_found_in_the_wheels_for_this_machine():
    config = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    if "scipy-openblas" not in config["name"]:
        pytest.skip(f"NumPy was built with {config['name']}, whose symbols are not known")
    assert blas.find_blas()


@pytest.mark.parametrize("layout", ["contiguous", "heads_of_a_permuted_projection"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_many_small_products_are_the_same_over_any_number_of_threads(layout, count, monkeypatch):
    monkeypatch.setattr(threads, "count", count)
    rng = np.random.default_rng(3)
    if layout == "contiguous":
        a, b = (mg.variable(rng.normal(size=s)) for s in ((37, 32, 48), (37, 48, 40)))
    else:
        qkv = mg.permute(mg.variable(rng.normal(size=(5, 40, 2, 7, 32))), (2, 0, 3, 1, 4))
        a, b = qkv[0], mg.permute(qkv[1], (0, 1, 3, 2))
    np.testing.assert_allclose((a @ b).numpy(), a.numpy() @ b.numpy(), rtol=1e-12, atol=1e-12)


@pytest.fixture(params=[2, 3])
def sharing(request, monkeypatch):
    """Share each product, however small, among this many threads; return a list of the parts."""
    monkeypatch.setattr(blas, "ALONE", 0)
    monkeypatch.setattr(blas, "SHARED", 1)
    monkeypatch.setattr(threads, "count", request.param)
    parts, run = [], threads.run

    def noted(function, argument_lists):
        parts.append(len(argument_lists))
        run(function, argument_lists)

    monkeypatch.setattr(threads, "run", noted)
    return parts


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("layout", ["plain", "transposed", "part of wider rows"])
@pytest.mark.parametrize(("m", "k", "n"), [(100, 7, 33), (33, 7, 100), (5, 7, 3), (1, 40, 70)])
def test_shared_products_equal_numpy(m, k, n, layout, dtype, sharing):
    a, b, row = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), normal(n, dtype=dtype)
    x, y = LAYOUTS[layout](a), LAYOUTS[layout](b)
    for _ in range(3):  # slow path, recorded, route
        close(x @ y, a @ b)
        close(mg.linear(x, y.T, mg.variable(row)), a @ b + row)
    assert len(sharing) >= 6
    assert set(sharing) == {threads.count}


def test_shared_batches_and_sums_over_batches_equal_numpy(sharing):
    a, b, g = normal(6, 20, 7), normal(7, 33), normal(6, 20, 33)
    many = normal(6, 7, 33)
    x, y, z = mg.variable(a), mg.variable(b), mg.variable(many)
    close(x @ z, a @ many)
    dx, dy = mg.grad(lambda x, y: ((x @ y) * mg.variable(g)).sum(), (0, 1))(x, y)
    close(dx, g @ b.T)
    close(dy, np.einsum("bmk,bmn->kn", a, g))
    assert sharing


def test_products_of_both_dtypes_in_turn_are_led_at_one_board(sharing):
    a, boards = normal(40, 40), set()
    for dtype in ["float32", "float64"] * 3:
        b = a.astype(dtype)
        close(mg.variable(b) @ mg.variable(b), b @ b)
        boards.add(threads._board)
    assert len(boards) == 1


def test_blas_wakes_no_threads_of_its_own_in_any_big_product(monkeypatch):
    count, during = [8], []
    functions = {"get": lambda: count[0], "set": lambda n: count.__setitem__(0, n)}
    monkeypatch.setattr(blas, "_counts", functions.__getitem__)
    gemm, run = blas.gemm, threads.run

    def noting(function):
        return lambda *arguments: (during.append(count[0]), function(*arguments))

    monkeypatch.setattr(blas, "gemm", lambda dtype: noting(gemm(dtype)))
    monkeypatch.setattr(threads, "run", noting(run))
    for size in (90, 200):  # alone, and shared
        x = mg.variable(normal(size, size))
        close(x @ x, x.numpy() @ x.numpy())
    assert during
    assert set(during) == {1}
    assert count == [8]
