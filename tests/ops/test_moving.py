"""Functions made of other operations: rolling, sorting, running products, filling, normalising."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.array.dtypes import DTYPES
from tests.ops import numeric
from tests.ops.cells import shown

RNG = np.random.default_rng(5)
MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])
PLACES = [2, 0, -1, 2, 2]


def added(x, source):
    out = x.copy()
    np.add.at(out, (slice(None), PLACES), source)
    return out


def ordered(x, axis=-1):
    return np.flip(np.sort(np.flip(x, axis), axis, kind="stable"), axis)


def taken(x, axis):
    return np.take_along_axis(x, np.argsort(-x, axis, kind="stable"), axis)


SHAPE = (3, 4)
CASES = {  # name: (function of mg, shapes of its inputs, what NumPy gives)
    "roll": (lambda x: mg.roll(x, 5), [SHAPE], lambda x: np.roll(x, 5)),
    "roll along": (lambda x: mg.roll(x, -1, 1), [SHAPE], lambda x: np.roll(x, -1, 1)),
    "roll two": (
        lambda x: mg.roll(x, (1, 6), (1, 0)), [SHAPE], lambda x: np.roll(x, (1, 6), (1, 0)),
    ),
    "roll twice one axis": (lambda x: x.roll((1, 1), (0, 0)), [SHAPE], lambda x: np.roll(x, 2, 0)),
    "cumprod": (lambda x: mg.cumprod(x), [SHAPE], lambda x: np.cumprod(x)),
    "cumprod along": (lambda x: x.cumprod(0), [SHAPE], lambda x: np.cumprod(x, 0)),
    "index_add": (lambda x, s: mg.index_add(x, PLACES, s, 1), [SHAPE, (3, 5)], added),
    "masked_fill": (
        lambda x: mg.masked_fill(x, MASK, 2), [SHAPE],
        lambda x: np.where(MASK, 2, x).astype(x.dtype),
    ),
    "masked_fill a row": (
        lambda x: x.masked_fill(MASK[0], 1), [SHAPE],
        lambda x: np.where(MASK[0], 1, x).astype(x.dtype),
    ),
    "sort": (lambda x: mg.sort(x), [SHAPE], lambda x: np.sort(x)),
    "sort along": (lambda x: mg.sort(x, axis=0), [SHAPE], lambda x: np.sort(x, 0)),
    "sort down": (lambda x: mg.sort(x, descending=True), [SHAPE], lambda x: -np.sort(-x)),
    "topk": (lambda x: mg.topk(x, 3)[0], [SHAPE], lambda x: -np.sort(-x)[:, :3]),
    "topk small": (lambda x: x.topk(2, 0, False)[0], [SHAPE], lambda x: np.sort(x, 0)[:2]),
    "normalize": (
        lambda x: mg.normalize(x, axis=1), [SHAPE],
        lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
    ),
    "normalize all": (
        lambda x: mg.normalize(x, axis=None), [SHAPE], lambda x: x / np.sqrt((x * x).sum()),
    ),
    "plus": (lambda x: +x, [SHAPE], lambda x: x),
    "divmod": (lambda x: divmod(x, 3)[0] + divmod(x, 3)[1], [SHAPE], lambda x: x // 3 + x % 3),
    "rdivmod": (lambda x: divmod(7, x + 1)[1], [SHAPE], lambda x: 7 % (x + 1)),
}  # fmt: skip
WHOLE = ("float32", "float64", "int32", "int64")


def drawn(shapes, dtype):
    """Different numbers, so that no order has ties, and none within 0.05 of a whole one."""
    count = sum(int(np.prod(s)) for s in shapes)
    numbers = RNG.permutation(count) + 1
    flat = numbers * 0.3 + 0.1 if dtype.startswith("float") else numbers
    cuts = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]
    return [p.reshape(s).astype(dtype) for p, s in zip(np.split(flat, cuts), shapes, strict=True)]


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("name", CASES)
def test_value_equals_numpy(name, dtype, device):
    function, shapes, wanted = CASES[name]
    arrays = drawn(shapes, dtype)
    with mg.device(device):
        got = function(*map(mg.variable, arrays))
    assert got.device == device
    with np.errstate(all="ignore"):
        expected = wanted(*arrays)
    np.testing.assert_allclose(got.to("cpu").numpy(), expected, 1e-5)
    if name.startswith("cumprod") and dtype.startswith("int"):
        assert got.dtype is mg.int64
    elif "normalize" in name and dtype.startswith("int"):
        assert got.dtype is mg.float32
    else:
        assert str(got.dtype) == dtype


@pytest.mark.parametrize("name", [n for n in CASES if "divmod" not in n])
def test_gradients_of_both_orders_equal_differences(name):
    function, shapes, _ = CASES[name]
    arrays = [a * 0.25 for a in drawn(shapes, "float64")]
    needs = [True] * len(arrays)
    numeric.check_first_order(function, arrays, needs, np.random.default_rng(1))
    numeric.check_second_order(function, arrays, needs, np.random.default_rng(2))


@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_eager(name):
    function, shapes, _ = CASES[name]
    step = mg.compile(function)
    for _ in range(2):
        inputs = [mg.variable(a) for a in drawn(shapes, "float32")]
        np.testing.assert_allclose(step(*inputs).numpy(), function(*inputs).numpy(), 1e-6)


def test_cumprod_of_zeros_has_right_derivatives():
    x = np.array([[2.0, 0.0, 3.0, 0.0, 4.0], [0.0, 1.5, -2.0, 1.0, 0.5]])
    for check in (numeric.check_first_order, numeric.check_second_order):
        check(lambda x: mg.cumprod(x, 1), [x], [True], np.random.default_rng(3))


def keys(a):
    """Ints in the order of the numbers, NaN the largest."""
    return np.unique(a, return_inverse=True)[1].reshape(a.shape)


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", [d.name for d in DTYPES])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (17,), (2, 0), (0, 3), (3, 5), (2, 3, 4)])
def test_orders_are_stable_with_nan_last(shape, dtype, device):
    a = np.random.default_rng(0).integers(0, 5, shape).astype(dtype)
    if "float" in dtype and a.size > 3:
        flat = a.reshape(-1)
        flat[::4], flat[1], flat[2] = np.nan, -np.inf, np.inf
        flat[3] = -0.0
    x = mg.variable(a, device=device)
    for axis in range(max(1, a.ndim)):
        line = a if a.ndim else a.reshape(1)
        line = line.astype("f4") if dtype == "bfloat16" else line  # NumPy sorts NaN last
        up = np.argsort(line, axis, kind="stable").reshape(shape)
        down = np.argsort(-keys(line), axis, kind="stable").reshape(shape)
        assert mg.argsort(x, axis).to("cpu").tolist() == up.tolist()
        assert mg.argsort(x, axis, descending=True).to("cpu").tolist() == down.tolist()
        sorted_ = mg.sort(x, axis=axis)
        assert sorted_.dtype is x.dtype
        np.testing.assert_array_equal(shown(sorted_), np.sort(line, axis).reshape(shape))


@pytest.mark.parametrize("n", [15, 16, 17, 32, 33, 64, 65, 129, 1000])
def test_argsort_of_any_number_of_runs_keeps_the_order_of_equals(n):
    x = RNG.integers(0, max(2, n // 8), (3, n)).astype(np.float32)
    x[:, ::7] = np.nan
    x[2].sort()
    wanted = np.argsort(x, -1, kind="stable")
    np.testing.assert_array_equal(mg.argsort(mg.variable(x)).numpy(), wanted)


def test_sort_of_many_elements_on_every_device():
    a = np.random.default_rng(1).standard_normal((3, 1500)).astype(np.float32).round(2)
    step = mg.compile(mg.argsort)
    a[:, ::7], a[0, 5:9] = np.nan, (np.inf, -np.inf, 0.0, -0.0)
    wanted = np.argsort(a, -1, kind="stable")
    for device in ("cpu", "numpy", "simt"):
        with mg.device(device):
            x = mg.variable(a)
            assert np.array_equal(mg.argsort(x).to("cpu").numpy(), wanted)
            assert np.array_equal(step(x).to("cpu").numpy(), wanted)


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_topk_of_any_size_takes_the_first_of_equals_and_nan(dtype, device):
    a = np.random.default_rng(2).integers(0, 6, (3, 40)).astype(dtype)
    if dtype != "int64":
        a[0, ::5], a[1, 3:9] = np.nan, (np.inf, -np.inf, 0.0, -0.0, -np.nan, np.inf)
    orders = np.argsort(-keys(a), 1, kind="stable"), np.argsort(keys(a), 1, kind="stable")
    steps = [mg.compile(lambda x, k=k: mg.topk(x, k)[1]) for k in (3, 40)]
    with mg.device(device):
        x = mg.variable(a)
        for k in (0, 1, 2, 3, 20, 39, 40):
            for largest, order in zip((True, False), orders, strict=True):
                for axis, given in ((1, x), (-2, x.T)):
                    values, places = mg.topk(given, k, axis=axis, largest=largest)
                    found = [v.to("cpu").numpy() for v in (values, places)]
                    found = found if axis == 1 else [v.T for v in found]
                    np.testing.assert_array_equal(found[1], order[:, :k])
                    np.testing.assert_array_equal(found[0], np.take_along_axis(a, order[:, :k], 1))
        for k, step in zip((3, 40), steps, strict=True):
            for _ in range(2):
                np.testing.assert_array_equal(step(x).to("cpu").numpy(), orders[0][:, :k])


def test_topk_gives_values_and_places_and_its_gradient_goes_there():
    x = mg.variable([[1.0, 7.0, 3.0], [9.0, 2.0, 4.0]], requires_grad=True)
    values, places = mg.topk(x, 2)
    assert values.tolist() == [[7.0, 3.0], [9.0, 4.0]]
    assert places.tolist() == [[1, 2], [0, 2]]
    assert not places.requires_grad
    values.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    assert mg.topk(x, 0)[0].shape == (2, 0)


def test_unary_plus_is_a_value_of_its_own():
    x = mg.variable([1.0], requires_grad=True)
    y = +x
    y += 1
    assert x.tolist() == [1.0]
    y.backward()
    assert x.grad.tolist() == [1.0]
    assert (+mg.variable([True, False])).tolist() == [1, 0]


def test_masked_fill_keeps_the_dtype_and_gives_a_value_its_gradient():
    value = mg.variable(2.0, requires_grad=True)
    mg.masked_fill(mg.ones((3,)), [True, True, False], value).sum().backward()
    assert value.grad.item() == 2.0
    assert mg.masked_fill(mg.variable([1, 2], "uint8"), [True, False], 7).dtype is mg.uint8
    assert mg.masked_fill([True, False], [True, True], False).tolist() == [False, False]
    assert mg.masked_fill(mg.variable([1.0]), True, -np.inf).tolist() == [-np.inf]


def test_normalize_of_zeros_has_a_finite_gradient():
    x = mg.variable([[0.0, 0.0]], dtype="float64", requires_grad=True)
    y = mg.normalize(x, axis=1, eps=0.5)
    assert y.tolist() == [[0.0, 0.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]]
    assert mg.normalize(3.0, axis=-1).item() == 1.0


def test_edges_of_roll_and_index_add():
    assert mg.roll(mg.variable(1.5), 3).item() == 1.5
    assert mg.roll(mg.zeros((0, 3)), 1, 0).shape == (0, 3)
    assert mg.cumprod(mg.zeros((2, 0)), 1).shape == (2, 0)
    assert mg.cumprod(mg.variable([True, True, False])).tolist() == [1, 1, 0]
    none = mg.index_add(mg.ones((2, 3)), mg.zeros((0,), "int64"), mg.zeros((0, 3)), 0)
    assert none.tolist() == [[1.0] * 3] * 2
    both = mg.index_add(mg.variable([True, False, False]), [1], mg.variable([True]), 0)
    assert both.tolist() == [True, True, False]


X = mg.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mg.topk(X, 4), errors.ArgumentError, "k of at most 3"),
        (lambda: mg.topk(X, -1), errors.ArgumentError, "k of at least 0"),
        (lambda: mg.topk(X, 1.5), errors.ArgumentTypeError, "an int for k"),
        (lambda: mg.sort(X, axis=2), errors.ShapeError, "sort"),
        (lambda: mg.sort(X, 1), errors.ArgumentTypeError, "argsort"),
        (lambda: mg.argsort(X, descending=1), errors.ArgumentTypeError, "True or False"),
        (lambda: mg.roll(X, 1.5), errors.ArgumentTypeError, "an int for shift"),
        (lambda: mg.roll(X, (1, 2), 0), errors.ShapeError, "one shift for each axis"),
        (lambda: mg.roll(X, 1, 2), errors.ShapeError, "axis"),
        (lambda: mg.cumprod(X, 2), errors.ShapeError, "axis"),
        (lambda: mg.normalize(X), errors.ArgumentTypeError, "axis=1"),
        (lambda: mg.normalize(X, 2), errors.ArgumentTypeError, "axis=1"),
        (lambda: mg.masked_fill(X, X, 1.0), errors.DTypeError, "mask of bools"),
        (lambda: mg.masked_fill(X, [True], X), errors.ShapeError, "mg.where"),
        (lambda: mg.masked_fill(X[0], X > 0, 1.0), errors.ShapeError, "broadcasts to"),
        (lambda: mg.masked_fill([1, 2], [True, False], 1.5), errors.DTypeError, "int64 holds"),
        (lambda: mg.masked_fill([1, 2], [True, False], np.nan), errors.DTypeError, "int64 holds"),
        (lambda: mg.index_add(X, [0, 5], X, 0), errors.BoundsError, "5 at 1"),
        (lambda: mg.index_add(X, [0], X, 0), errors.ShapeError, "but m along"),
        (lambda: mg.index_add(X, [0, 1], X.to("float64"), 0), errors.DTypeError, "float32"),
        (lambda: mg.index_add(X, 0, [0, 1], X), errors.MinigradError, "the axis comes last"),
    ],
)
def test_wrong_calls_say_what_is_wanted(call, error, message):
    with pytest.raises(error, match=message):
        call()
