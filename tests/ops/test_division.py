"""//, %, divmod: whole quotients, exact for floats and ints, on every device."""

import math
from fractions import Fraction

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors

EXTREMES = [-(2**63), 2**63 - 1, -(2**63), 5, -7, 7, 0, -1, -6, 6]
OTHERS = [-1, -(2**63), 2**63 - 1, -(2**63), 3, -3, 4, 2, 3, -3]


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats_are_exact(dtype, device):
    rng = np.random.default_rng(0)
    scale = 40 if dtype == "float32" else 300
    count = 2000 if device == "cpu" else 200
    a = np.exp(rng.uniform(-scale, scale, count)) * rng.choice([-1, 1], count)
    b = np.exp(rng.uniform(-scale, scale, count)) * rng.choice([-1, 1], count)
    near = a * rng.uniform(0.001, 2, count)
    a, b = np.concatenate([a, a]).astype(dtype), np.concatenate([b, near]).astype(dtype)
    with mg.device(device), np.errstate(all="ignore"):
        x, y = mg.variable(a), mg.variable(b)
        np.testing.assert_array_equal((x % y).to("cpu").numpy(), np.remainder(a, b))
        got = (x // y).to("cpu").numpy()
        np.testing.assert_allclose(
            got, np.floor_divide(a, b), 3e-7 if dtype == "float32" else 1e-15
        )
        assert np.array_equal(got[abs(got) < 2**22], np.floor(got[abs(got) < 2**22]))
    if device == "cpu":
        exact = abs(a / b.astype("f8")) < 2**53
        pairs = zip(a[exact].tolist(), b[exact].tolist(), strict=True)
        whole = [Fraction(p) // Fraction(q) for p, q in pairs]
        assert got[exact].tolist() == np.array(whole, "f8").astype(dtype).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_are_those_of_numpy(dtype):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5.5, -5.5, tiny, -3 * tiny]
    a, b = (m.ravel().astype(dtype) for m in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((mg.variable(a) % mg.variable(b)).numpy(), np.remainder(a, b))
        got, wanted = (mg.variable(a) // mg.variable(b)).numpy(), np.floor_divide(a, b)
        np.testing.assert_array_equal(got, wanted)
        some = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[some]), np.signbit(wanted[some]))


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
def test_ints_are_those_of_numpy_at_the_ends_of_their_range(device):
    a, b = np.array(EXTREMES), np.array(OTHERS)
    with mg.device(device), np.errstate(all="ignore"):
        x, y = mg.variable(a), mg.variable(b)
        assert (x // y).to("cpu").tolist() == (a // b).tolist()
        assert (x % y).to("cpu").tolist() == (a % b).tolist()


def test_operators_take_numbers_lists_and_arrays_on_either_side():
    x = mg.variable([5.5, -5.5])
    assert (x // 2).tolist() == [2.0, -3.0]
    assert (x % 2).tolist() == [1.5, 0.5]
    assert [d.tolist() for d in divmod(x, 2)] == [[2.0, -3.0], [1.5, 0.5]]
    assert (7 // x).tolist() == [1.0, -2.0]
    assert (7 % x).tolist() == [1.5, -4.0]
    assert (np.array([4.0, 5.0], "f4") % x).tolist() == [4.0, -0.5]
    assert (np.array([8.0, 8.0], "f4") // x).tolist() == [1.0, -2.0]
    assert [d.tolist() for d in divmod(np.array([8.0, 8.0], "f4"), x)] == [[1.0, -2.0], [2.5, -3.0]]
    assert (x % [2.0, 2.0]).tolist() == [1.5, 0.5]
    assert (mg.variable([5, 6]) % 4).dtype is mg.int64
    assert (mg.variable([5, 6], "uint8") // 4).tolist() == [1, 1]
    assert (mg.variable([5, 6]) % 2.5).tolist() == [0.0, 1.0]
    assert (mg.variable([True, True]) // 1).dtype is mg.int64
    x %= 2
    assert x.tolist() == [1.5, 0.5]


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_ints_by_zero_raise_eager_and_compiled(name, device):
    function = getattr(mg, name)
    with mg.device(device):
        x = mg.variable([5, 6])
        for zero in (0, False, mg.variable([1, 0]), np.array([0, 1])):
            with pytest.raises(errors.ArgumentError, match=f"{name}: wanted ints other than 0"):
                function(x, zero)
        step = mg.compile(lambda x, y: function(x, y))
        assert (
            step(x, mg.variable([2, 5])).to("cpu").tolist()
            == function(x, [2, 5]).to("cpu").tolist()
        )
        with pytest.raises(errors.ArgumentError, match=f"{name}: wanted ints other than 0"):
            step(x, mg.variable([2, 0]))
    assert (mg.variable([1.0]) // 0).tolist() == [math.inf]
    assert math.isnan((mg.variable([1.0]) % 0).item())


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30, np.uint64(2**63 + 5)])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_ints_by_ints_that_their_dtype_lacks_raise(dtype, number):
    x = mg.variable([1, 1]).to(dtype)
    for divide in (lambda: x // number, lambda: x % number, lambda: divmod(x, number)):
        with pytest.raises(errors.DTypeError, match=r"(floor_divide|remainder): wanted ints from"):
            divide()


def test_gradient_of_a_remainder_is_that_of_either_side():
    a = mg.variable([5.5, -5.5], requires_grad=True)
    b = mg.variable([2.0, 2.0], requires_grad=True)
    (a % b).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [-2.0, 3.0]
    a.grad = None
    (a // b).sum().backward()
    assert a.grad.tolist() == [0.0, 0.0]
