"""Rows that are columns of memory: their reductions are kernels of their own."""

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.layout import is_contiguous
from minigrad.devices.cpu import programs
from minigrad.devices.threads import threads
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, symbol
from minigrad.formulas.rows_apart import apart
from minigrad.ops import rows

OPS = {
    "softmax": mg.softmax,
    "log_softmax": mg.log_softmax,
    "logsumexp": lambda x, axis: mg.logsumexp(x, axis=axis),
}
SHAPES = [((70, 90), 0), ((8, 40, 50), 1), ((8, 40, 50), 0), ((4, 5, 30, 40), 2), ((5000, 2), 0)]
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3}


@pytest.fixture
def apart_of(monkeypatch):
    """Return a list of the programs that ran apart."""
    found, run = [], programs.Programs._rows_apart

    def noted(self, parts, program, *rest):
        found.append(program)
        run(self, parts, program, *rest)

    monkeypatch.setattr(programs.Programs, "_rows_apart", noted)
    return found


def results(op, x, axis, dy):
    """Return y and the gradient of x, of three calls: slow, recorded, by a route."""
    for _ in range(3):
        v = mg.variable(x, requires_grad=True)
        y = op(v, axis=axis)
        y.backward(mg.variable(dy))
    assert v.grad is not None
    return y.numpy(), v.grad.numpy()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", OPS)
def test_along_another_axis_as_along_the_last_of_a_copy(name, shape, axis, dtype, apart_of):
    rng = np.random.default_rng(1)
    x = (3 * rng.normal(size=shape)).astype(dtype)
    reduced = tuple(np.delete(shape, axis)) if name == "logsumexp" else shape
    dy = rng.normal(size=reduced).astype(dtype)
    y, dx = results(OPS[name], x, axis, dy)
    assert len({id(p) for p in apart_of}) >= 2, "forward and backward"
    move = (lambda a: a) if name == "logsumexp" else lambda a: np.moveaxis(a, axis, -1)
    wanted = results(OPS[name], np.moveaxis(x, axis, -1).copy(), -1, move(dy).copy())
    for found, want in zip((y, dx), wanted, strict=True):
        want = want if found.ndim < x.ndim else np.moveaxis(want, -1, axis)
        np.testing.assert_allclose(found, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", OPS)
def test_the_number_of_threads_changes_nothing(name, monkeypatch):
    x = np.random.default_rng(2).normal(size=(600, 700)).astype("f4")
    dy = np.ones((700,) if name == "logsumexp" else x.shape, "f4")
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "count", count)
        found.append(results(OPS[name], x, 0, dy))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", OPS)
def test_infinities_and_nan_stay_in_their_rows(name, bad):
    x = np.random.default_rng(3).normal(size=(80, 60)).astype("f4")
    x[7, 5] = bad
    x[:, 9] = -np.inf  # a whole row
    y = OPS[name](mg.variable(x), axis=0).numpy()
    wanted = OPS[name](mg.variable(x.T.copy()), axis=-1).numpy()
    np.testing.assert_allclose(y, wanted.T, rtol=2e-6, atol=2e-6)


def test_a_result_lies_in_memory_as_its_operand():
    x = mg.variable(np.random.default_rng(4).normal(size=(80, 60)).astype("f4"))
    y = mg.softmax(x, axis=0)
    assert is_contiguous(y.array.shape, y.array.strides)
    y = mg.softmax(mg.permute(mg.ones((20, 30, 40)), (0, 2, 1)), axis=1)
    np.testing.assert_allclose(y.numpy(), np.full((20, 40, 30), 1 / 40), rtol=1e-6)


def test_what_is_the_same_for_a_row_is_computed_once():
    softmax: Any = rows.SoftmaxRow.formula
    parts = apart(Program(("x",), [softmax(symbol("x"))]))
    assert parts is not None
    assert [how for _, how, _ in parts.steps] == ["max", "sum", None]
    assert "div" not in str(parts.outputs[0])


def test_a_formula_that_knows_its_column_is_not_taken_apart():
    x = symbol("x")
    assert apart(Program(("x",), [e.row_sum(x * e.column_of(x))])) is None
