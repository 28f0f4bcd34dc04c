"""Every operation of the registry against NumPy: dtypes, layouts, edge shapes, special values."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.base import Elementwise, RowWise
from tests.ops.cells import (
    DTYPE_NAMES,
    RANDOM,
    arranged,
    call,
    cells,
    draw,
    expected_dtype,
    promoted,
    public_ops,
    samples,
    shown,
)
from tests.ops.oracles import ORACLES

OPS = public_ops()
RUN = [cell for cell, reason in cells() if reason is None]
TOLERANCES = {
    "float16": {"rtol": 2e-3, "atol": 1e-3},
    "bfloat16": {"rtol": 1.6e-2, "atol": 8e-3},
    "float32": {"rtol": 3e-5, "atol": 3e-6},
    "float64": {"rtol": 1e-11, "atol": 1e-12},
}


def wide(array, name):
    """As the oracles take them: truth values count as 0 and 1."""
    kind = array.dtype.kind
    if "float" in array.dtype.name:
        return array.astype(np.float64)
    return array if kind == "b" and name == "pad" else array.astype(np.int64)


def oracle_of(name):
    """The NumPy formula of an operation."""
    if name not in ORACLES:
        pytest.fail(
            f"the operation {name!r} has no NumPy formula to be compared with: add a line "
            f'"{name}": lambda x: ... to ORACLES in tests/ops/oracles.py',
            pytrace=False,
        )
    return ORACLES[name]


def expected(op, arrays, attributes, dtype):
    """The oracle's values in the result's dtype."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
        arrays = [wide(a, op.name) for a in arrays]
        values = np.asarray(oracle_of(op.name)(*arrays, *attributes))
        if np.dtype(dtype).kind in "iu":
            whole = np.array_equal(values, np.trunc(values))
            assert whole, f"{op.name} of ints has fractions: its class says result = 'real'"
        return values.astype(dtype).astype("f4" if dtype == "bfloat16" else dtype)


def check(op, pairs, attributes):
    """Runs an op and compares values, shape and dtype."""
    variables = [v for v, _ in pairs]
    arrays = [a for _, a in pairs]
    y = call(op, variables, attributes)
    dtype = expected_dtype(op, variables, attributes)
    want = expected(op, arrays, attributes, dtype)
    assert y.dtype.name == dtype
    assert y.shape == want.shape
    got, tolerance = shown(y), TOLERANCES.get(dtype, {"rtol": 0, "atol": 0})
    np.testing.assert_allclose(got, want, **tolerance)
    for v, a in pairs:
        np.testing.assert_array_equal(v.to("cpu").numpy(), a, err_msg="an input was written to")


def test_every_operation_has_an_oracle():
    for name in set(OPS) - RANDOM:
        oracle_of(name)


def test_operation_without_an_oracle_is_told_where_to_add_one():
    with pytest.raises(pytest.fail.Exception, match="ORACLES in tests/ops/oracles"):
        oracle_of("not_there")


@pytest.mark.parametrize("cell", RUN, ids="-".join)
def test_operation_equals_numpy(cell):
    op = OPS[cell.op]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, cell.dtype)
    check(op, arranged(arrays, cell.layout), attributes)


@pytest.mark.parametrize("name", [n for n in OPS if n not in RANDOM])
def test_operation_on_every_sample_equals_numpy(name):
    op = OPS[name]
    for shapes, attributes in samples(op):
        arrays = draw(op, shapes, attributes, "float32")
        check(op, arranged(arrays, "contiguous"), attributes)


SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 30.0, -30.0, 120.0, -120.0, 1e-30, 3e5, -3e5]
)
UNARY = [n for n, op in OPS.items() if issubclass(op, Elementwise) and not issubclass(op, RowWise)
         and len(samples(op)[0][0]) == 1]  # fmt: skip
BINARY = [n for n, op in OPS.items() if issubclass(op, Elementwise) and not issubclass(op, RowWise)
          and len(samples(op)[0][0]) == 2 and n != "bce_with_logits"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary_operation_on_nan_and_infinity_equals_numpy(name, dtype):
    op = OPS[name]
    x = SPECIAL.astype(dtype)
    numbers = samples(op)[0][1]
    y = call(op, [mg.variable(x)], numbers)
    want = expected(op, [x], numbers, expected_dtype(op, [mg.variable(x)], numbers))
    rtol = 1e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(
        y.numpy(), want, rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-12
    )


@pytest.mark.parametrize("name", BINARY)
def test_binary_operation_on_nan_and_infinity_equals_numpy(name):
    op = OPS[name]
    values = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -2.0], np.float32)
    a, b = (v.reshape(-1).copy() for v in np.meshgrid(values, values))
    numbers = samples(op)[0][1]
    y = call(op, [mg.variable(a), mg.variable(b)], numbers)
    want = expected(op, [a, b], numbers, y.dtype.name)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sum", "prod", "any"])
def test_reduction_with_nan_equals_numpy(name):
    x = np.array([[1.0, np.nan, 3.0, np.nan], [4.0, 2.0, 7.0, 7.0]], np.float32)
    for axis in (0, 1, None):
        want = getattr(np, name)(x, axis=axis)
        np.testing.assert_array_equal(getattr(mg, name)(mg.variable(x), axis=axis).numpy(), want)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_extremes_at_any_place_of_any_size_equal_numpy(name, dtype):
    # sizes at which vectors, fours of rows and blocks of 33 and 128 end, or nearly do
    rng = np.random.default_rng(3)
    ours, theirs = getattr(mg, name), getattr(np, name)
    for n in (1, 4, 5, 8, 31, 33, 34, 38, 67, 127, 128, 129, 300):
        x = rng.integers(-2 if n % 2 else 0, 3, (n, 5)).astype(dtype)  # ties
        for k in range(5):
            place = rng.integers(n)
            if dtype == "int64":
                x[place, k] = np.iinfo(dtype).max if k % 2 else np.iinfo(dtype).min
            else:
                x[place, k] = (np.nan, -np.nan, np.inf, -np.inf, 0.5)[k]
                x[place // 2, 0] = -np.nan  # the first of two
        want = theirs(x, axis=0)
        for axis, values in ((0, x), (1, np.ascontiguousarray(x.T))):
            np.testing.assert_array_equal(ours(mg.variable(values), axis=axis).numpy(), want)


@pytest.mark.parametrize("how", ["max", "min"])
def test_extremes_of_only_infinities_and_ties_are_the_first(how):
    sign = -1.0 if how == "max" else 1.0
    x = mg.variable(np.full((40, 3), sign * np.inf, np.float32))
    for axis in (0, 1):
        assert set(getattr(mg, how)(x, axis=axis).tolist()) == {sign * np.inf}
        assert set(getattr(mg, f"arg{how}")(x, axis=axis).tolist()) == {0}


PAIRS = [(a, b) for k, a in enumerate(DTYPE_NAMES) for b in DTYPE_NAMES[k + 1 :]]


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
def test_sum_of_two_dtypes_follows_the_promotion_rules(dtypes):
    a, b = (np.array([1, 0, 1]).astype(d) for d in dtypes)
    y = mg.variable(a) + mg.variable(b)
    assert y.dtype.name == promoted(*dtypes)
    np.testing.assert_array_equal(y.tolist(), (a.astype(float) + b.astype(float)).tolist())


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("sign", [1, -1])
def test_extremes_of_ints_along_the_first_axis(dtype, sign):
    values = (sign * np.arange(1, 13).reshape(3, 4)).astype(dtype)  # no 0 among them
    x = mg.variable(values)
    assert mg.max(x, axis=0).tolist() == values.max(0).tolist()
    assert mg.min(x, axis=0).tolist() == values.min(0).tolist()


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("power", [2, 3])
def test_squares_and_cubes_are_products_to_the_bit(power, device):
    edges = [-np.inf, -1e13, -0.0, 0.0, 1e20, np.inf, np.nan]
    x = np.append(np.random.default_rng(0).normal(size=200), edges).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x * x if power == 2 else x * x * x
        in_one = np.power(x.astype(np.float64), power).astype(np.float32)
    assert power == 2 or (in_one != wanted)[:200].sum() > 20  # it rounds twice, which shows
    with mg.device(device):
        as_number = mg.pow(mg.variable(x), float(power))
        of_each = mg.pow(mg.variable(x), mg.variable(np.full_like(x, power)))
    for y in (as_number.to("cpu"), of_each.to("cpu")):
        np.testing.assert_array_equal(y.numpy().view(np.uint32)[:-1], wanted.view(np.uint32)[:-1])
        assert np.isnan(y.numpy()[-1])


EDGES = [0.0, 1.0, 2.5, 3.0, 0.5, 7.0, 101.0, 2.0**24, 2.0**24 - 1, 1e-45, 1e-30, 3.4e38, np.inf]


def test_float32_powers_are_those_of_float64_rounded_once():
    rng = np.random.default_rng(5)
    special = np.float32([*EDGES, *(-x for x in EDGES), np.nan, 0.99999994, 1.0000001])
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    a = np.append(a, np.exp(8 * rng.normal(size=20_000))).astype(np.float32)
    b = np.append(b, 6 * rng.normal(size=20_000)).astype(np.float32)
    other = b != 3  # cubes are products
    with np.errstate(all="ignore"):
        wanted = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    found = mg.pow(mg.variable(a), mg.variable(b)).numpy()
    np.testing.assert_array_equal(found[other], wanted[other])
    of_zeros = np.signbit(found) == np.signbit(wanted)
    assert of_zeros[~np.isnan(wanted)].all()
    for number in (4.0, -3.0, 2.5, 0.3):
        x = a[-20_000:]
        with np.errstate(all="ignore"):
            wanted = np.power(x.astype(np.float64), np.float64(np.float32(number)))
            wanted = wanted.astype(np.float32)
        found = mg.pow(mg.variable(x), number).numpy()
        np.testing.assert_array_equal(found, wanted, err_msg=str(number))
