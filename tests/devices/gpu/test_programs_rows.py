"""Row programs on the simulated GPU, watched, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.devices.gpu import binding
from minigrad.devices.gpu.rows import row_launch
from minigrad.formulas import expression as e
from minigrad.formulas.expression import Program, symbol
from minigrad.ops import rows as formulas
from tests.devices.gpu.layouts import arranged, numbers, on, watched

x, y, w = symbol("x"), symbol("y"), symbol("w")
LENGTHS = [1, 2, 3, 4, 10, 12, 31, 32, 33, 64, 100, 127, 128, 129, 300, 1023, 1024, 1025]


def rows(program, modes, inputs, shape, outs=None, dtype="f4"):
    """(results, the forms of its launches)."""
    program = Program(program.inputs, program.outputs)
    full = {"store": shape, "row": (*shape[:-1], 1), "columns": shape[-1:]}
    outs = outs or [np.empty(full[mode], dtype) for mode in modes]
    targets = [on(watched, o) if isinstance(o, np.ndarray) else o for o in outs]
    operands = [on(watched, a) if isinstance(a, np.ndarray) else a for a in inputs]
    watched.rows(program, modes, operands, targets, shape)
    return [watched.to_numpy(t) for t in targets], [key[1] for key in program.kernels]


def softmax(a):
    exponential = np.exp(a - a.max(-1, keepdims=True))
    return exponential / exponential.sum(-1, keepdims=True)


def close(got, want, size=1):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=3e-6 * size**0.5)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("count", [1, 5, 16])
def test_softmax(n, count):
    a = numbers(np.random.default_rng(n), (count, n), "f4") * 5
    (got,), (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
    close(got, softmax(a.astype("f8")))
    assert form.units
    assert form.vector == (n % 4 == 0)


@pytest.mark.parametrize("how", ["every row", "all of them"])
def test_rows_that_begin_between_vectors(how):
    rng = np.random.default_rng(0)
    a = numbers(rng, (9, 13), "f4")[:, :12] if how == "every row" else numbers(rng, 109, "f4")[1:]
    a = a.reshape(9, 12) if a.ndim == 1 else a
    (got,), (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
    close(got, softmax(a.astype("f8")))
    assert not form.vector


@pytest.mark.parametrize("n", [5, 64, 300, 1000, 1025])
def test_many_rows(n):
    """With many rows a part of a warp takes a row, not a block."""
    a = numbers(np.random.default_rng(n), (23, n), "f4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_launch, "MANY", 0)
        (got,), (form,) = rows(formulas.LogSoftmaxRow.program, ("store",), (a,), a.shape)
    close(got, np.log(softmax(a.astype("f8"))))
    assert form.team <= 32 or n > 700


@pytest.mark.parametrize("n", [1, 4, 33, 512, 2050])
def test_rows_that_are_read_again(monkeypatch, n):
    """As if they did not fit in registers."""
    monkeypatch.setattr(row_launch, "REGISTERS", 0)
    a = numbers(np.random.default_rng(n), (5, n), "f4")
    (got,), (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
    close(got, softmax(a.astype("f8")))
    assert not form.units


def test_rows_that_do_not_fit_in_registers():
    a = numbers(np.random.default_rng(0), (2, 20000), "f4")
    (got,), (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
    close(got, softmax(a.astype("f8")))
    assert not form.units


def test_whole_teams_need_no_conditions():
    a = numbers(np.random.default_rng(0), (8, 64), "f4")
    _, (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
    assert form.whole
    _, (form,) = rows(formulas.SoftmaxRow.program, ("store",), (a[:7],), (7, 64))
    assert not form.whole


def layer_norm(a, weight, bias, eps=1e-5):
    centred = a - a.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


LAYER_NORM_GRADIENT = Program(
    ["dy", "x", "w", "eps"],
    formulas.LayerNormRow.gradient(*map(symbol, ("dy", "x", "w", "eps"))),
)


def layer_norm_gradient(dy, a, weight, eps=1e-5):
    centred = a - a.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    normal, g = centred * scale, dy * weight
    mean = (g * normal).mean(-1, keepdims=True)
    dx = scale * (g - g.mean(-1, keepdims=True) - normal * mean)
    return dx, (dy * normal).reshape(-1, a.shape[-1]).sum(0), dy.reshape(-1, a.shape[-1]).sum(0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 7, 32, 96, 257, 768])
def test_layer_norm(n, dtype):
    rng = np.random.default_rng(n)
    a, weight, bias = (numbers(rng, s, dtype) for s in ((3, 4, n), n, n))
    inputs = (a, weight, bias, 1e-5)
    (got,), _ = rows(formulas.LayerNormRow.program, ("store",), inputs, a.shape, dtype=dtype)
    want = layer_norm(*(v.astype("f8") for v in (a, weight, bias)))
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("count", [1, 3, 40, 200])
@pytest.mark.parametrize("n", [1, 10, 64, 300])
def test_sums_over_the_rows(monkeypatch, n, count, again):
    if again:
        monkeypatch.setattr(row_launch, "REGISTERS", 0)
    rng = np.random.default_rng(n)
    dy, a, weight = (numbers(rng, s, "f4") for s in ((count, n), (count, n), n))
    modes = ("store", "columns", "columns")
    got, _ = rows(LAYER_NORM_GRADIENT, modes, (dy, a, weight, 1e-5), a.shape)
    want = layer_norm_gradient(*(v.astype("f8") for v in (dy, a, weight)))
    if n == 1:  # 1 / sqrt(eps) multiplies what rounding left of 0
        got, want = got[2:], want[2:]
    for mine, right in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-5 * count**0.5)


def test_sums_over_no_rows_are_0():
    program = Program("x", [x * 2.0])
    (got,), _ = rows(program, ("columns",), (np.empty((0, 5), "f4"),), (0, 5))
    np.testing.assert_array_equal(got, np.zeros(5))


@pytest.mark.parametrize("n", [1, 2, 10, 33, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(n, smoothing):
    rng = np.random.default_rng(n)
    a, labels = numbers(rng, (13, n), "f4") * 3, rng.integers(0, n, (13, 1))
    (got,), _ = rows(formulas.CrossEntropyRow.program, ("row",), (a, labels, smoothing), a.shape)
    logs = np.log(softmax(a.astype("f8")))
    chosen = np.take_along_axis(logs, labels, 1)
    want = -(1 - smoothing) * chosen - smoothing * logs.mean(1, keepdims=True)
    close(got, want)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("n", [4, 10, 300, 1024])
def test_in_place(monkeypatch, n, again):
    if again:
        monkeypatch.setattr(row_launch, "REGISTERS", 0)
    a = numbers(np.random.default_rng(0), (9, n), "f4")
    target = on(watched, a)
    watched.rows(
        Program("x", formulas.SoftmaxRow.program.outputs), ("store",), (target,), (target,), a.shape
    )
    close(watched.to_numpy(target), softmax(a.astype("f8")))


@pytest.mark.parametrize("n", [3, 40, 700])
def test_an_input_of_one_value_a_row_may_be_the_output(n):
    """Every thread of the row reads it, one writes it."""
    rng = np.random.default_rng(0)
    a, total = numbers(rng, (70, n), "f4"), numbers(rng, (70, 1), "f4")
    program = Program("xy", [e.row_sum(x * y) + y])
    target = on(watched, total)
    same = target.view(target.shape, target.strides)
    watched.rows(program, ("row",), (on(watched, a), same), (target,), a.shape)
    want = (a * total).sum(1, keepdims=True, dtype="f8") + total
    close(watched.to_numpy(target), want, n)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.integers(1, 7), max_size=3), st.sampled_from([1, 3, 8, 20, 132]))
def test_any_layouts(data, leading, n):
    shape = (*leading, n)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    kinds = st.sampled_from(["plain", "shifted", "turned", "stepped", "reversed", "broadcast"])
    a = arranged(rng, shape, data.draw(st.sampled_from(["f4", "f8", "i4", "?"])), data.draw(kinds))
    b = arranged(rng, shape, "f4", data.draw(kinds))
    out = arranged(rng, shape, "f4", data.draw(st.sampled_from(["plain", "turned", "stepped"])))
    program = Program("xy", [x - e.row_max(x) * y, e.row_mean(x * y), x + y])
    modes = ("store", "row", "columns")
    one = np.empty((*leading, 1), "f4")
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(binding, "SMALL", 0)
        if data.draw(st.booleans()):
            patch.setattr(row_launch, "REGISTERS", 0)
        got, _ = rows(program, modes, (a, b), shape, [out, one, np.empty(n, "f4")])
    p, q = a.astype("f8"), b.astype("f8")
    want = [
        p - p.max(-1, keepdims=True) * q,
        (p * q).mean(-1, keepdims=True),
        (p + q).reshape(-1, n).sum(0),
    ]
    for mine, right in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, right, rtol=2e-5, atol=2e-4)


def test_nan_and_infinity_show():
    a = numbers(np.random.default_rng(0), (4, 70), "f4")
    a[1, 20], a[2, 3], a[3] = np.nan, np.inf, -np.inf
    program = Program("x", [e.row_max(x), e.row_sum(x)])
    (largest, total), _ = rows(program, ("row", "row"), (a,), a.shape)
    np.testing.assert_array_equal(largest, a.max(1, keepdims=True))
    np.testing.assert_allclose(total, a.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_of_nothing():
    program = Program("x", [e.row_max(x), e.row_sum(x)])
    (largest, total), _ = rows(program, ("row", "row"), (np.empty((3, 0), "f4"),), (3, 0))
    np.testing.assert_array_equal(largest, np.full((3, 1), -np.inf))
    np.testing.assert_array_equal(total, np.zeros((3, 1)))
    program, inputs = (
        Program("xy", [e.row_sum(x) + y]),
        (np.empty((3, 0), "f4"), np.ones((3, 1), "f4")),
    )
    (got,), _ = rows(program, ("row",), inputs, (3, 0))
    np.testing.assert_array_equal(got, np.ones((3, 1)))
    (got,), forms = rows(formulas.SoftmaxRow.program, ("store",), (np.empty((0, 4), "f4"),), (0, 4))
    assert got.shape == (0, 4)
    assert not forms


def test_formulas_without_reductions():
    """As the gradient of a cross entropy whose row sums came before."""
    a = numbers(np.random.default_rng(0), (6, 10), "f4")
    program = Program("xy", [e.where(e.equal(e.column_of(x), y), x, 0.0)])
    labels = np.arange(6)[:, None]
    (got,), _ = rows(program, ("store",), (a, labels), a.shape)
    np.testing.assert_array_equal(got, np.where(np.arange(10) == labels, a, 0))


def test_costly_values_are_computed_once():
    """The exponential of a softmax waits in registers between its sum and the quotient."""
    _, (form,) = rows(formulas.SoftmaxRow.program, ("store",), (np.ones((4, 64), "f4"),), (4, 64))
    text = row_launch.rows_text(formulas.SoftmaxRow.program, form).text
    assert text.count("exp_of_negative_f4(") == 1
    assert text.count("load4(") == 1
    assert text.count(" / ") == 1  # the inverse of the sum, once a row


def test_more_rows_than_the_launch_has_blocks(monkeypatch):
    monkeypatch.setattr(row_launch, "MOST_BLOCKS", 2)
    for n in (10, 300):
        a = numbers(np.random.default_rng(0), (100, n), "f4")
        (got,), _ = rows(formulas.SoftmaxRow.program, ("store",), (a,), a.shape)
        close(got, softmax(a.astype("f8")))
