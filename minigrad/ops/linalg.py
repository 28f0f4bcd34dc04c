"""Linear algebra: systems of equations, least squares, Cholesky factors.

Kernels compute in float64. Results are float32 for float32 and ints. Gradients use the same
operations, so there are derivatives of every order.
"""

from typing import NamedTuple

import numpy as np

from minigrad.array.dtypes import bool_, float32, float64, promote
from minigrad.array.layout import broadcast_shapes, size_of
from minigrad.devices.backend import device_of
from minigrad.errors import ShapeError
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, call, symbol
from minigrad.hints import missing, teaching
from minigrad.ops.base import Structural
from minigrad.ops.operands import constant, demand, variables
from minigrad.tape.variable import Variable

__all__ = ["cholesky", "lstsq", "solve"]
TINY = 2.0**-52  # the relative rounding step of float64
SIZE = Program(["x"], [e.absolute(symbol("x"))])
_low, _high, _least = map(symbol, ("low", "high", "least"))
HAS_FULL_RANK = Program(["low", "high", "least"], [e.logical_not(_low <= _least * _high)])
IS_POSITIVE = Program(["x"], [symbol("x") > 0.0])


def _wide(x):
    """Returns a contiguous Array of float64."""
    device = device_of(x)
    return device.contiguous(x if x.dtype is float64 else device.convert(x, float64))


class LeastSquares(Structural):
    """The smallest x with the smallest |a x - b|.  (c, m, n), (c, m, k) -> (c, n, k).

    Gradients: Golub, Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate" (1973), equation 4.12, for matrices of full rank.
    """

    samples = [
        ((2, 3, 3), (2, 3, 2)), ((1, 4, 2), (1, 4, 1)), ((1, 2, 4), (1, 2, 2)),
        ((0, 2, 2), (0, 2, 1)), ((1, 0, 0), (1, 0, 2)), ((1, 1, 1), (1, 1, 1)),
    ]  # fmt: skip

    def forward(a, b):
        device, dtype = device_of(a), promote(a.dtype, b.dtype)
        (count, m, n), k = a.shape, b.shape[2]
        rows, columns = max(m, n), min(m, n)
        x = device.empty((count, n, k), float64)
        if not columns or not count:
            device.fill(x, 0.0)
            return device.convert(x, dtype)
        factors = device.empty((count, rows + 1, columns), float64)
        rest = device.empty(b.shape, float64)
        device.solve(_wide(a), _wide(b), x, factors, rest)
        diagonal = factors.view(
            (count, columns), (factors.strides[0], 1), factors.offset + rows * columns
        )
        low, high = (device.empty((count,), float64) for _ in range(2))
        flags = device.empty((count,), bool_)
        for how, out in (("min", low), ("max", high)):
            device.reduce(SIZE, how, (diagonal,), out, diagonal.shape, (1,))
        device.elementwise(HAS_FULL_RANK, (low, high, rows * TINY), (flags,))
        demand(
            flags,
            "linalg: wanted a matrix of full rank, whose rows or columns are independent",
            f"{dtype}{[m, n]}, singular up to rounding",
            "a @ a.T + 1e-6 * mg.eye(n) is regular",
        )
        return x if dtype is float64 else device.convert(x, dtype)

    gradients = (
        lambda dy, a, b, y: _matrix_gradient(dy, a, b, y),
        lambda dy, a: LeastSquares.apply(_turned(a), dy),
    )


def _turned(x):
    return call("permute", x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _matrix_gradient(dy, a, b, x):
    z = LeastSquares.apply(_turned(a), dy)
    da = -(z @ _turned(x))
    m, n = a.shape[1:]
    if m > n:  # the residual changes with the columns of a
        da = da + (b - a @ x) @ _turned(LeastSquares.apply(a, z))
    if m < n:
        da = da + LeastSquares.apply(_turned(a), x) @ _turned(dy - _turned(a) @ z)
    return da


class CholeskyFactor(Structural):
    """The lower L with L L^T = (a + a^T) / 2.  (c, n, n) -> (c, n, n).

    The gradient is symmetric: Murray, "Differentiation of the Cholesky decomposition" (2016).
    """

    samples = [((2, 3, 3),), ((1, 1, 1),), ((1, 5, 5),), ((0, 2, 2),), ((1, 0, 0),)]

    def forward(a):
        device, (count, n, _) = device_of(a), a.shape
        out = device.empty(a.shape, float64)
        if not a.size:
            return device.convert(out, a.dtype)
        device.cholesky(_wide(a), out)
        flags = device.empty((count, n), bool_)
        device.elementwise(IS_POSITIVE, (out.view((count, n), (n * n, n + 1)),), (flags,))
        demand(
            flags,
            "linalg.cholesky: wanted a positive definite matrix",
            f"{a.dtype}{[n, n]}, with an eigenvalue of at most 0, or NaN",
            "a + 1e-6 * mg.eye(n) lifts the eigenvalues; a @ a.T has none below 0",
        )
        return out if a.dtype is float64 else device.convert(out, a.dtype)

    gradients = (lambda dy, y: _factor_gradient(dy, y),)


def _factor_gradient(dy, y):
    n = y.shape[-1]
    if not y.size:
        return dy
    half = constant(np.tri(n) - 0.5 * np.eye(n), near=y).to(y.dtype)
    inside = half * (_turned(y) @ call("tril", dy))
    turned = LeastSquares.apply(_turned(y), inside)
    product = LeastSquares.apply(_turned(y), _turned(turned))
    return 0.5 * (product + _turned(product))


def _matrices(name, *given):
    """Returns Variables of floats, each with at least two axes."""
    matrices = []
    for x in variables(name, *given):
        if x.ndim < 2:
            raise ShapeError(f"{name}: wanted matrices (..., m, n)", f"{x.shape}")
        matrices.append(x if x.dtype.is_float else x.to(float32))
    return matrices


def _square(name, a):
    if a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"{name}: wanted square matrices (..., n, n)",
            f"{a.shape}",
            "mg.linalg.lstsq(a, b) for others" if name == "linalg.solve" else None,
        )


def _solved(name, a, b):
    b = b if isinstance(b, Variable) else variables(name, a, b)[1]
    is_vector = b.ndim == 1
    a, b = _matrices(name, a, call("reshape", b, (b.shape[0], 1)) if is_vector else b)
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(
            f"{name}: wanted a (..., m, n) and b (..., m, k) or (m,)",
            f"{a.shape} and {b.shape[:1] if is_vector else b.shape}",
        )
    outer = broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    flat = [
        call("reshape", call("expand", v, (*outer, *v.shape[-2:])), (size_of(outer), *v.shape[-2:]))
        for v in (a, b)
    ]
    x = LeastSquares.apply(*flat)
    shape = (*outer, a.shape[-1], *(() if is_vector else b.shape[-1:]))
    left = flat[1] - flat[0] @ x
    return call("reshape", x, shape), left, (*outer, *(() if is_vector else b.shape[-1:]))


@teaching
def solve(a, b):
    """Finds x with a @ x = b.  (..., n, n), (..., n, k) or (n,) -> (..., n, k) or (..., n).

    Leading axes broadcast. It uses Householder reflections, which need no pivots.

    Raises:
        ShapeError: a is not square, or b has another number of rows.
        ArgumentError: a is singular up to rounding.

    >>> import minigrad as mg
    >>> mg.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]).tolist()
    [1.0, 0.5]
    """
    a, b = variables("linalg.solve", a, b)
    if a.ndim > 1:
        _square("linalg.solve", a)
    return _solved("linalg.solve", a, b)[0]


class Solution(NamedTuple):
    """The result of `lstsq`: the solution, and the sums of squared residuals."""

    solution: Variable
    residuals: Variable


@teaching
def lstsq(a, b):
    """Finds the x that minimises |a @ x - b|; of several, the one with the smallest |x|.

    (..., m, n), (..., m, k) or (m,) -> a named tuple: solution (..., n, k) or (..., n), and
    residuals (..., k) or (...), for each column the sum of the squares of a @ x - b.

    Raises:
        ShapeError: a and b have different numbers of rows.
        ArgumentError: the columns of a (its rows, if those are fewer) are linearly dependent.

    >>> import minigrad as mg
    >>> x, residuals = mg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> round(x.item(), 6), round(residuals.item(), 6)
    (2.0, 2.0)
    """
    x, left, shape = _solved("linalg.lstsq", a, b)
    return Solution(x, call("reshape", call("sum", left * left, 1, False), shape))


@teaching
def cholesky(a):
    """Finds the lower triangular L with L @ L.T = a.  (..., n, n) -> (..., n, n).

    a must be positive definite. If it is not symmetric, (a + a.T) / 2 is used instead, so the
    gradient is symmetric.

    Raises:
        ShapeError: a is not square.
        ArgumentError: a is not positive definite.

    >>> import minigrad as mg
    >>> mg.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]]).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    (a,) = _matrices("linalg.cholesky", a)
    _square("linalg.cholesky", a)
    flat = call("reshape", a, (size_of(a.shape[:-2]), *a.shape[-2:]))
    return call("reshape", CholeskyFactor.apply(flat), a.shape)


def __getattr__(name):
    raise missing("mg.linalg", name, "mg.linalg has no", known=__all__)
