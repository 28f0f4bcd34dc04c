"""linalg: solutions and factors against NumPy, gradients by differences, on every device."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from tests.ops import numeric

L = mg.linalg
RNG = np.random.default_rng(2)
SHAPES = [(3, 3), (5, 2), (2, 5), (1, 1), (1, 4), (4, 1), (20, 20), (30, 7), (7, 30)]


def least(a, b):
    return np.linalg.lstsq(a, b)[0]


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_equal_numpy(shape, dtype, device):
    a, b = (
        RNG.standard_normal(shape).astype(dtype),
        RNG.standard_normal((shape[0], 2)).astype(dtype),
    )
    with mg.device(device):
        x, residuals = L.lstsq(a, b)
        assert str(x.dtype) == dtype
        tolerance = (
            {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-9}
        )
        np.testing.assert_allclose(x.to("cpu").numpy(), least(a, b), **tolerance)
        left = ((a @ least(a, b) - b) ** 2).sum(0)
        np.testing.assert_allclose(residuals.to("cpu").numpy(), left, 1e-3, 1e-6)
        if shape[0] == shape[1]:
            found = L.solve(a, b[:, 0])
            assert found.shape == shape[1:]
            np.testing.assert_allclose(
                found.to("cpu").numpy(), np.linalg.solve(a, b[:, 0]), **tolerance
            )


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_cholesky_equals_numpy(n, device):
    a = RNG.standard_normal((3, n, n))
    a = a @ a.transpose(0, 2, 1) + np.eye(n)
    with mg.device(device):
        got = L.cholesky(a)
        np.testing.assert_allclose(got.to("cpu").numpy(), np.linalg.cholesky(a), 1e-12, 1e-12)
        tilted = a + np.triu(np.ones((n, n)), 1) - np.tril(np.ones((n, n)), -1)
        np.testing.assert_allclose(
            L.cholesky(tilted).to("cpu").numpy(), got.to("cpu").numpy(), 1e-9
        )


GRADIENTS = {
    "solve": (L.solve, [(3, 3), (3, 2)]),
    "solve of a vector": (L.solve, [(3, 3), (3,)]),
    "solve, broadcast": (L.solve, [(2, 1, 2, 2), (3, 2, 1)]),
    "lstsq, tall": (lambda a, b: L.lstsq(a, b).solution, [(4, 2), (4, 2)]),
    "lstsq, wide": (lambda a, b: L.lstsq(a, b).solution, [(2, 4), (2,)]),
    "residuals": (lambda a, b: L.lstsq(a, b).residuals, [(4, 2), (4, 2)]),
    "cholesky": (lambda a: L.cholesky(a @ a.T + 0.5 * mg.eye(3, "float64")), [(3, 3)]),
    "cholesky, not symmetric": (lambda a: L.cholesky(a + 5 * mg.eye(3, "float64")), [(3, 3)]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_both_orders_equal_differences(name):
    function, shapes = GRADIENTS[name]
    arrays = [np.random.default_rng(k + 4).standard_normal(s) for k, s in enumerate(shapes)]
    needs = [True] * len(arrays)
    numeric.check_first_order(function, arrays, needs, np.random.default_rng(1))
    numeric.check_second_order(function, arrays, needs, np.random.default_rng(1))


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
def test_compiled_equals_eager_with_its_gradients(device):
    def step(a, b):
        def f(a, b):
            c = L.cholesky(a @ a.T + mg.eye(3))
            return L.solve(a, b).sum() + c.sum() + L.lstsq(a[:, :2], b).solution.sum()

        return (L.solve(a, b), *mg.grad(f, (0, 1))(a, b))

    compiled = mg.compile(step)
    with mg.device(device):
        for _ in range(2):
            a, b = mg.randn((3, 3)) + 2 * mg.eye(3), mg.randn((3, 2))
            for got, wanted in zip(compiled(a, b), step(a, b), strict=True):
                np.testing.assert_allclose(
                    got.to("cpu").numpy(), wanted.to("cpu").numpy(), 1e-3, 1e-4
                )
        with pytest.raises(errors.ArgumentError, match="full rank"):
            compiled(a * 0, b)


def test_edges():
    assert L.solve(mg.zeros((0, 0)), mg.zeros((0,))).shape == (0,)
    assert L.solve(mg.zeros((2, 0, 0)), mg.zeros((0, 3))).shape == (2, 0, 3)
    assert L.lstsq(mg.zeros((0, 2)), mg.zeros((0, 3))).solution.tolist() == [[0.0] * 3] * 2
    assert L.cholesky(mg.zeros((0, 0))).shape == (0, 0)
    assert L.solve([[2, 1], [1, 3]], [1, 2]).dtype is mg.float32
    assert L.solve(np.array([[1e200]]), np.array([1e200])).tolist() == [1.0]
    huge = np.array([[1e200, 0.0], [0.0, 1e-200]])
    with pytest.raises(errors.ArgumentError, match="full rank"):  # singular up to rounding
        L.solve(huge, np.ones(2))
    assert np.isnan(L.solve(np.array([[np.nan]]), np.ones(1)).numpy()).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: L.solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]), errors.ArgumentError, "full rank"),
        (lambda: L.lstsq(mg.ones((3, 2)), mg.ones((3,))), errors.ArgumentError, "full rank"),
        (lambda: L.cholesky([[1.0, 2.0], [2.0, 1.0]]), errors.ArgumentError, "positive definite"),
        (lambda: L.cholesky([[np.nan]]), errors.ArgumentError, "positive definite"),
        (lambda: L.cholesky(mg.ones((2, 3))), errors.ShapeError, "square"),
        (lambda: L.solve(mg.ones((2, 3)), mg.ones((2,))), errors.ShapeError, "lstsq"),
        (lambda: L.solve([1.0], [1.0]), errors.ShapeError, "matrices"),
        (lambda: L.solve(mg.eye(3), mg.ones((2,))), errors.ShapeError, "got: .3, 3. and .2,."),
        (lambda: L.solve(mg.eye(3)), errors.ArgumentTypeError, "solve.a, b."),
        (lambda: L.lstsq(mg.eye(3), mg.ones((3,)), rcond=None), errors.ArgumentTypeError, "rcond"),
        (lambda: L.inv(mg.eye(3)), AttributeError, "mg.linalg.solve"),
    ],
)
def test_wrong_calls_say_what_is_wanted(call, error, message):
    with pytest.raises(error, match=message):
        call()
