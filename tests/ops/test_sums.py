"""Sums of many numbers are accurate along every axis, eager and compiled.

The numbers are all 0.1: rounding then always errs to the same side, so that a sum of millions made
one by one is off by percents. The bound is that of docs/numerics.md, a block's.
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices.threads import threads
from minigrad.formulas.sums import BLOCK

TENTH = float(np.float32(0.1))
BOUND = (BLOCK + 1) * 2.0**-24


def compiled(f):
    """f, compiled: the third call runs the program."""
    step = mg.compile(f)

    def call(*arguments):
        for _ in range(2):
            step(*arguments)
        return step(*arguments)

    return call


WAYS = {"eager": lambda f: f, "compiled": compiled}
way = pytest.fixture(params=WAYS)(lambda request: WAYS[request.param])


def tenths(*shape):
    return mg.variable(np.full(shape, 0.1, np.float32))


def near(found, wanted, bound=BOUND):
    np.testing.assert_allclose(np.asarray(found.numpy(), np.float64), wanted, rtol=bound)


SHAPES = {  # of x, its view, the axes summed
    "first": ((1_000_000, 3), lambda x: x, 0),
    "first of wide rows": ((20_000, 70), lambda x: x, 0),
    "last": ((3, 1_000_000), lambda x: x, 1),
    "all": ((1_000_000, 3), lambda x: x, None),
    "middle": ((2, 300_000, 5), lambda x: x, 1),
    "first and last": ((100_000, 2, 6), lambda x: x, (0, 2)),
    "first and middle": ((3_000, 2, 90, 3), lambda x: x, (0, 2)),
    "batch and pixels": ((3_000, 3, 12, 12), lambda x: x, (0, 2, 3)),
    "transposed": ((1_000_000, 3), lambda x: x.T, 1),
    "strided": ((2_000_000, 2), lambda x: x[::2], 0),
    "reversed": ((1_000_000, 3), lambda x: x[::-1, ::-1], 0),
    "one column": ((1_000_000, 3), lambda x: x[:, 1], 0),
    "broadcast": ((1, 3), lambda x: mg.expand(x, (1_000_000, 3)), 0),
    "broadcast across": ((1_000_000, 1), lambda x: mg.expand(x, (1_000_000, 3)), 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_sum_and_mean_along_axes_and_views(name, way):
    shape, view, axis = SHAPES[name]
    x = tenths(*shape)
    count = view(x).size // view(x).sum(axis).size
    near(way(lambda x: view(x).sum(axis))(x), count * TENTH)
    near(way(lambda x: view(x).mean(axis))(x), TENTH)


@pytest.mark.parametrize("axis", [0, 1])
def test_sum_of_ten_million(axis, way):
    shape = (10_000_000, 2) if axis == 0 else (2, 10_000_000)
    near(way(lambda x: x.sum(axis))(tenths(*shape)), 10_000_000 * TENTH)


@pytest.mark.parametrize("mean", [1000.0, 10_000.0])
def test_variance_of_numbers_far_from_zero(mean, way):
    x = np.random.default_rng(0).normal(mean, 1.0, (1_000_000, 3)).astype(np.float32)
    wanted = x.astype(np.float64)
    near(way(lambda x: x.var(0, ddof=0))(mg.variable(x)), wanted.var(0), 2e-6)
    near(way(lambda x: x.std(0, ddof=0))(mg.variable(x)), wanted.std(0), 2e-6)
    near(way(lambda x: x.var(1, ddof=0))(mg.variable(x.T)), wanted.var(0), 2e-6)


def test_norm(way):
    near(way(lambda x: mg.norm(x, axis=0))(tenths(1_000_000, 3)), TENTH * 1000)


def test_running_sums(way):
    counts = np.arange(1, 1_000_001)
    near(way(lambda x: mg.cumsum(x, 0))(tenths(1_000_000, 2))[:, 1], TENTH * counts, 1e-7)
    near(way(lambda x: mg.cumsum(x, 1))(tenths(2, 1_000_000))[1], TENTH * counts, 1e-7)


def test_gradient_of_a_bias_over_a_million_rows(way):
    b = mg.nn.Parameter(np.zeros(3, np.float32))

    def gradient(x):
        ((x + b) * 0.1).sum().backward()
        found, b.grad = b.grad, None
        return found

    near(way(gradient)(tenths(1_000_000, 3)), 1_000_000 * TENTH)


def test_gradient_of_a_row_that_is_picked_a_million_times(way):
    table = mg.nn.Parameter(np.zeros((4, 3), np.float32))
    index = np.zeros(1_000_000, np.int64)
    index[::4] = 2

    def gradient(index):
        (table[index] * 0.1).sum().backward()
        found, table.grad = table.grad, None
        return found

    found = way(gradient)(mg.variable(index))
    near(found, np.array([750_000, 0, 250_000, 0])[:, None] * TENTH * np.ones(3))


def test_sums_by_index_add_to_what_is_there(way):
    x = mg.variable(np.full((2, 5), 7.0, np.float32))
    index = np.tile(np.array([[1], [3]]), (1, 500_000))
    index[1, :1000] = 0
    source = tenths(2, 500_000)
    found = way(lambda x, i, s: mg.scatter_add(x, i, s, 1))(x, mg.variable(index), source)
    wanted = np.full((2, 5), 7.0)
    wanted[0, 1] += 500_000 * TENTH
    wanted[1, 3] += 499_000 * TENTH
    wanted[1, 0] += 1000 * TENTH
    near(found, wanted)


def test_sums_over_a_long_row(way):
    x = mg.variable(np.zeros((1, 3_000_000), np.float32))
    near(way(lambda x: mg.softmax(x, 1))(x), 1 / 3_000_000)
    near(way(lambda x: mg.softmax(x, 0))(x.T), 1 / 3_000_000)


def test_gradients_of_a_layer_norm_over_many_rows(way):
    layer = mg.nn.LayerNorm(3)
    x = np.random.default_rng(0).normal(0, 1, (1_000_000, 3)).astype(np.float32)

    def gradients(x):
        (layer(x) * 0.1).sum().backward()
        found, layer.bias.grad = layer.bias.grad, None
        layer.weight.grad = None
        return found

    near(way(gradients)(mg.variable(x)), 1_000_000 * TENTH)


def test_batch_norm_far_from_zero(way):
    x = np.random.default_rng(0).normal(10_000.0, 1.0, (20_000, 2, 5, 5)).astype(np.float32)
    y = way(lambda x: mg.batch_norm(x))(mg.variable(x)).numpy().astype(np.float64)
    np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=5e-4)
    np.testing.assert_allclose(y.var((0, 2, 3)), 1, rtol=2e-5)


@pytest.mark.parametrize("stride", [1, 2])
def test_gradient_of_kernels_over_many_images(stride, way):
    layer = mg.nn.Conv2d(1, 2, 3, stride=stride, padding=1)

    def gradients(x):
        (layer(x) * 0.1).sum().backward()
        found = layer.bias.grad, layer.weight.grad
        layer.bias.grad = layer.weight.grad = None
        return found

    n, images = 100_000, tenths(100_000, 1, 4, 4)
    windows = n * (4 // stride) ** 2
    bias, weight = way(gradients)(images)
    near(bias, windows * TENTH)
    near(weight[:, :, 1, 1], windows * TENTH * TENTH, 3 * BOUND)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 4), (1, 64), (64, 1)])
def test_long_products_of_few_elements(m, n, way):
    a, b = tenths(m, 1_000_000), tenths(1_000_000, n)
    near(way(mg.matmul)(a, b), 1_000_000 * TENTH * TENTH)
    near(way(mg.matmul)(tenths(1_000_000, m).T, b), 1_000_000 * TENTH * TENTH)


def test_infinities_and_nan_stay_what_they_are(way):
    x = np.full((2_000, 4), 0.1, np.float32)
    x[700, 0] = np.inf
    x[[5, 1_900], 1] = np.inf, -np.inf
    x[1_000, 2] = np.nan
    for axis, rows in ((0, x), (1, x.T)):
        found = way(lambda x, axis=axis: x.sum(axis))(mg.variable(rows)).numpy()
        np.testing.assert_array_equal(found[:3], np.array([np.inf, np.nan, np.nan]))
        assert abs(found[3] - 2_000 * TENTH) < 1e-2


def test_the_number_of_threads_changes_no_eager_sum(monkeypatch):
    rng = np.random.default_rng(0)
    x = mg.variable(rng.normal(size=(3_000, 300)).astype(np.float32))
    index = mg.variable(rng.integers(0, 7, 3_000))
    layer = mg.nn.LayerNorm(300)

    def everything():
        y = x.detach()
        y.requires_grad = True
        (layer(y) * x).sum().backward()
        table = mg.variable(np.zeros((7, 300), np.float32), requires_grad=True)
        (table[index] * x).sum().backward()
        assert table.grad is not None
        found = [x.sum(), x.sum(0), x.sum(1), layer.weight.grad, table.grad, mg.cumsum(x, 0)]
        layer.weight.grad = layer.bias.grad = None
        return [v.numpy().copy() for v in found]

    several = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "count", count)
        several.append(everything())
    for found in several[1:]:
        for a, b in zip(several[0], found, strict=True):
            np.testing.assert_array_equal(a, b)


HOWS = ("sum", "mean", "max", "min", "prod", "any", "all")
ODD = {  # of x, its view, the axes: no size is a multiple of the number of blocks
    "all": ((600_013,), lambda x: x, None),
    "all of a view": ((3, 200_003), lambda x: x[:, 1:], None),
    "columns of tall rows": ((200_003, 3), lambda x: x, 0),
    "both ends": ((1_003, 5, 101), lambda x: x, (0, 2)),
    "wide rows": ((300, 1_031), lambda x: x, 0),
    "few long rows": ((2, 300_007), lambda x: x, 1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("name", ODD)
def test_reductions_in_blocks_take_each_element_once(name, dtype, monkeypatch):
    shape, view, axes = ODD[name]
    x = np.random.default_rng(7).integers(-4, 5, shape).astype(dtype)  # sums of these are exact
    x[..., -1] = 5  # the largest one is in the last block
    product = np.where(np.random.default_rng(8).random(shape) < 1e-5, 2, 1).astype(dtype)
    for how in HOWS:
        of = product if how == "prod" else x
        wide = np.asarray(view(of), np.float64 if dtype.startswith("float") else np.int64)
        wanted = getattr(np, how)(wide, axis=axes)
        for count in (1, 2, 5):
            monkeypatch.setattr(threads, "count", count)
            found = getattr(mg, how)(view(mg.variable(of)), axis=axes).numpy()
            near = {"rtol": 1e-6 if how == "mean" else 0, "err_msg": f"{how}, {count} threads"}
            np.testing.assert_allclose(found, wanted, **near)


INTS = {
    "int64": [[4_000_000_000, 3_000_000_000], [2**63 - 1, -(2**63)], [16777217, -16777216]],
    "int32": [[2**31 - 1, -(2**31)], [16777217, -16777216], [2**31 - 1, 2**31 - 1]],
    "uint8": [[255, 254], [255, 255], [0, 1]],
    "bool": [[True, False], [True, True], [False, False]],
}
OF_INTS = {  # name: (function, the same in float64)
    "mean": (lambda x: mg.mean(x, 1), lambda x: x.mean(1)),
    "var": (lambda x: mg.var(x, 1, ddof=0), lambda x: x.var(1)),
    "std": (lambda x: mg.std(x, 1, ddof=1), lambda x: x.std(1, ddof=1)),
    "norm": (lambda x: mg.norm(x, axis=1), lambda x: np.linalg.norm(x, axis=1)),
    "softmax": (mg.softmax, lambda x: np.exp(_log_softmax(x))),
    "log_softmax": (mg.log_softmax, lambda x: _log_softmax(x)),
    "logsumexp": (lambda x: mg.logsumexp(x, axis=1), lambda x: np.logaddexp(*x.T)),
    "layer_norm": (
        lambda x: mg.layer_norm(x, mg.ones((2,)).to(x.device), mg.zeros((2,)).to(x.device)),
        lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
    ),
    "rms_norm": (
        lambda x: mg.rms_norm(x, mg.ones((2,)).to(x.device)),
        lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
    ),
    "mse": (lambda x: mg.mse(x, mg.flip(x, 1)), lambda x: ((x - x[:, ::-1]) ** 2).mean()),
    "huber": (
        lambda x: mg.huber(x, mg.flip(x, 1), reduction="none"),
        lambda x: _huber(np.abs(x - x[:, ::-1])),
    ),
}
EXACT = ("mean", "var", "norm", "mse")


def _log_softmax(x):
    return x - np.logaddexp(*x.T)[:, None]


def _huber(d):
    return np.where(d <= 1.0, 0.5 * d * d, d - 0.5)


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", INTS)
def test_what_of_ints_becomes_floats_is_computed_in_float64(dtype, device):
    array = np.array(INTS[dtype], dtype)
    x = mg.variable(array, device=device)
    for name, (function, exact) in OF_INTS.items():
        want = exact(array.astype(np.float64)).astype(np.float32)
        for step in (function, mg.compile(function)) if device == "cpu" else (function,):
            got = step(x).to("cpu")
            assert got.dtype == mg.float32
            np.testing.assert_allclose(
                got.numpy(), want, 0 if name in EXACT else 3e-7, 0, True, name
            )
    assert mg.mean(x, None, True).shape == (1, 1)


def test_gradients_beside_rows_of_ints_are_computed_in_float64():
    x, w = mg.variable([[2**62, 2**31, -(2**62)]]), mg.ones((3,), requires_grad=True)
    gradient = mg.grad(lambda w: mg.rms_norm(x, w).sum())
    want = x.numpy()[0] / np.sqrt((x.numpy().astype(float) ** 2).mean())
    for step in (gradient, mg.compile(gradient)):
        np.testing.assert_allclose(step(w).numpy(), want, 1e-6)


LIMITS = {
    "int64": [[2**63 - 1, -(2**63), 3], [2**62, 2**62, 2**33], [-(2**63), -(2**63), -1]],
    "int32": [[2**31 - 1, -(2**31), 3], [2**31 - 1, 2**31 - 1, 2**31 - 1], [65536, 65536, 1]],
    "uint8": [[255, 255, 255], [1, 2, 0], [128, 2, 1]],
    "bool": [[True, True, False], [True, True, True], [False, False, False]],
}
OVER_AXES = {  # name: (function, the same in NumPy); int64
    "sum": (mg.sum, np.sum),
    "prod": (lambda x: mg.prod(x, axis=1), lambda x: x.prod(1)),
    "cumsum": (lambda x: mg.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: mg.cumprod(x, 0), lambda x: x.cumprod(0)),
}
WRAPPED = {  # of the operands' dtype, but int64 of bools
    "matmul": (lambda x: x @ x, lambda x: x @ x),
    "batches": (lambda x: mg.stack([x, x]) @ x, lambda x: np.stack([x, x]) @ x),
    "vectors": (lambda x: x[0] @ x[1], lambda x: x[0] @ x[1]),
    "linear": (lambda x: mg.linear(x, x), lambda x: x @ x.T),
    "outer": (lambda x: mg.outer(x[0], x[1]), lambda x: np.outer(x[0], x[1])),
    "cube": (lambda x: x**3, lambda x: x**3),
}


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", LIMITS)
def test_ints_wrap_as_those_of_numpy(dtype, device):
    array = np.array(LIMITS[dtype], dtype)
    x, wide = mg.variable(array, device=device), array.astype("int64")
    for name, (function, same) in {**OVER_AXES, **WRAPPED}.items():
        want = same(wide)
        if name in WRAPPED and dtype != "bool":
            want = want.astype(dtype)
        for step in (function, mg.compile(function)) if device == "cpu" else (function,):
            got = step(x).to("cpu").numpy()
            assert got.dtype == want.dtype, name
            np.testing.assert_array_equal(got, want, name)


@pytest.mark.parametrize("dtype", LIMITS)
def test_what_is_added_by_index_has_the_dtype_of_x(dtype):
    array = np.array(LIMITS[dtype], dtype)
    x, want = mg.variable(array), array.copy()
    np.add.at(want, [0, 0], array[1:])
    index = mg.zeros((2, 3), dtype="int64")
    for got in (
        mg.scatter_add(x, index, x[1:], axis=0),
        mg.index_add(x, index=[0, 0], source=x[1:], axis=0),
    ):
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("r", [1.2e-19, 1e-20, 1e-21, 1e-22, 1.0, 5e17])
def test_squares_of_small_and_large_numbers_are_as_exact_as_said(r, device):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 1_000)
    array = (signs * r).astype(np.float32)
    x, m = mg.variable(array, device=device), float(abs(array[0]))
    bound = max(3e-5, 4e-46 / r**2)  # that of docs/numerics.md
    for step in (mg.norm, mg.compile(mg.norm)):
        assert step(x).item() == pytest.approx(m * 1_000**0.5, bound, 0.0)
        assert (m * step(x / m)).item() == pytest.approx(m * 1_000**0.5, 3e-6, 0.0)
    exact = array.astype(np.float64)
    assert mg.std(x, ddof=0).item() == pytest.approx(exact.std(), bound, 0.0)


def test_a_power_has_an_exponent_of_its_dtype():
    x = np.array([np.finfo(np.float32).tiny, 1e-20, 0.3, 7.0, 1e30], np.float32)
    for b in (1 / 3, 0.1, 0.7):
        rounded = x.astype(np.float64) ** float(np.float32(b))
        exact = x.astype(np.float64) ** b
        for step in (lambda x, b=b: x**b, mg.compile(lambda x, b=b: x**b)):
            got = step(mg.variable(x)).numpy()
            np.testing.assert_allclose(got, rounded, 2.0**-23)
            off = 2.0**-23 + abs(b * np.log(x)) * 2.0**-25
            assert (abs(got - exact) <= off * exact).all()
