"""Row kernels: the largest of a row, the exponential below it, values kept for the next pass."""

from typing import Any

import numpy as np
import pytest

from minigrad.array.array import ndarray
from minigrad.array.dtypes import float32, float64
from minigrad.devices import loader
from minigrad.devices.backend import device_named
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, symbol
from minigrad.formulas.row_codegen import rows_text
from minigrad.ops import rows as ops

CPU = device_named("cpu")
DTYPES = {"float32": float32, "float64": float64}
X = symbol("x")
softmax: Any = ops.SoftmaxRow.formula
cross_entropy_gradient: Any = ops.CrossEntropyRow.gradient


def array(values, dtype=float32):
    return CPU.from_numpy(np.asarray(values, dtype.name), dtype)


def rows(output, x, mode="store", dtype=float32):
    """One formula of x along its rows."""
    x = array(x, dtype)
    shape = x.shape if mode == "store" else (*x.shape[:-1], 1)
    out = CPU.empty(shape, dtype)
    CPU.rows(Program(["x"], [output]), (mode,), (x,), (out,), x.shape)
    return np.array(ndarray(out))


def stored_text(output, names, in_place=False):
    p = Program(names, [output])
    return rows_text(
        p, ("store",), (float32,) * (len(names) + 1), (1,) * (len(names) + 1), in_place
    )[0]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("columns", [1, 2, 7, 8, 33, 260])
def test_largest_of_a_row(name, columns):
    x = np.random.default_rng(columns).normal(size=(5, columns)).astype(name)
    x[1] = -np.abs(x[1]) * 1e30
    x[2], x[3, 0], x[4, -1] = -np.inf, np.inf, 1e-40
    found = rows(e.row_max(X), x, "row", DTYPES[name])
    np.testing.assert_array_equal(found, x.max(1, keepdims=True))


@pytest.mark.parametrize("name", DTYPES)
def test_softmax_of_extremes(name):
    x = np.zeros((6, 19), name)
    x[0, 3], x[1, 3] = 1e30, -1e30
    x[2, :] = -np.inf
    x[2, 5] = 4.0
    x[3, 2], x[4, 2], x[5, 2] = np.nan, np.inf, -np.copysign(np.nan, 1)
    y = rows(softmax(X), x, dtype=DTYPES[name])
    one = np.eye(19, dtype=name)
    np.testing.assert_array_equal(y[0], one[3])
    np.testing.assert_allclose(y[1], (1 - one[3]) / 18, rtol=1e-6)
    np.testing.assert_array_equal(y[2], one[5])
    assert np.isnan(y[3:]).any(1).all()
    assert np.isnan(y[3]).all()


@pytest.mark.parametrize(("name", "low"), [("float32", -87.32), ("float64", -708.38)])
def test_exponential_below_a_maximum_is_as_exact_as_exp(name, low):
    x = np.concatenate([[0.0], np.linspace(low, 0.0, 20_001), -np.geomspace(1e-30, 1.0, 999)])
    x = x.astype(name)[None]
    got = rows(e.exp(X - e.row_max(X)), x, dtype=DTYPES[name])
    want = np.exp(x.astype(np.longdouble))
    error = np.abs(got - want) / np.spacing(want.astype(name))
    assert error.max() < 1.1
    assert got[0, 0] == 1.0


@pytest.mark.parametrize(("name", "low"), [("float32", -87.4), ("float64", -708.5)])
def test_exponential_far_below_a_maximum_is_zero(name, low):
    x = np.array([[0.0, low, -1e4, -1e30, -np.inf, low, low, low, low]], name)
    got = rows(e.exp(X - e.row_max(X)), x, dtype=DTYPES[name])
    np.testing.assert_array_equal(got, [[1.0] + [0.0] * 8])


def test_exponential_of_what_rounding_put_above_0_is_1():
    function = loader.load(
        '@jit("f4(f4)")\ndef kernel(x):\n    return exp_of_negative_f4(x)\n', ("mathematics.f4",)
    ).kernel
    assert function(np.float32(1e22)) == 1.0
    assert function(np.float32(np.inf)) == 1.0
    assert np.isnan(function(np.float32(np.nan)))


def test_costly_value_waits_in_the_output():
    text = stored_text(softmax(X), ["x"])
    assert text.count("exp_of_negative_f4(") == 1
    assert "= out0[" in text


def test_costly_value_waits_in_place_if_the_input_is_read_no_more():
    text = stored_text(softmax(X * symbol("y")), ["x", "y"], in_place=True)
    assert text.count("exp_of_negative_f4(") == 1


def test_costly_value_is_computed_again_where_it_would_overwrite_what_is_read():
    again = X * softmax(X)
    assert stored_text(again, ["x"], in_place=True).count("exp_of_negative_f4(") == 2
    x = np.random.default_rng(3).normal(size=(4, 21)).astype("f4")
    wide = np.exp(x.astype("f8"))
    want = x * wide / wide.sum(1, keepdims=True)
    data = array(x)
    CPU.rows(Program(["x"], [again]), ("store",), (data,), (data,), data.shape)
    np.testing.assert_allclose(ndarray(data), want, rtol=1e-5)
    np.testing.assert_allclose(rows(again, x), want, rtol=1e-5)


def test_each_output_keeps_a_value_of_its_own():
    x, y = np.random.default_rng(4).normal(size=(2, 3, 17)).astype("f4")
    a, b = e.exp(X), e.tanh(symbol("y"))
    total = e.row_sum(a * b)
    p = Program(["x", "y"], [a / total, b / total, a + b])
    inputs, outs = (array(x), array(y)), [CPU.empty(x.shape, float32) for _ in range(3)]
    CPU.rows(p, ("store",) * 3, inputs, outs, x.shape)
    wide_a, wide_b = np.exp(x.astype("f8")), np.tanh(y.astype("f8"))
    sums = (wide_a * wide_b).sum(1, keepdims=True)
    for out, want in zip(outs, (wide_a / sums, wide_b / sums, wide_a + wide_b), strict=True):
        np.testing.assert_allclose(ndarray(out), want, rtol=2e-5)


def test_gradient_of_cross_entropy_computes_each_exponential_once():
    formula = cross_entropy_gradient(symbol("dy"), X, symbol("label"), 0.1)
    text = stored_text(formula, ["dy", "x", "label"])
    assert text.count("exp_of_negative_f4(") == 1
