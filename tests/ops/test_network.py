"""Convolution, pooling, normalisation, attention, einsum and joining: what no sample shows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.kernels.window import Window
from minigrad.ops import convolution
from tests.ops import numeric, oracles


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_conv2d_with_any_window_equals_its_definition(kernel, stride, padding, dilation, groups, b):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((2, 4, 7, 8)), rng.standard_normal((2, 4 // groups, *kernel))
    bias = rng.standard_normal(2) if b else None
    window = Window(kernel, stride, padding, dilation)
    want = oracles.conv(x, w, np.zeros(2) if bias is None else bias, window, groups)
    y = mg.conv2d(mg.variable(x), mg.variable(w), bias, stride, padding, dilation, groups)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-10, atol=1e-12)


def test_conv2d_saves_its_inputs_only():
    x = mg.zeros((2, 3, 8, 8), requires_grad=True)
    w = mg.zeros((4, 3, 3, 3), requires_grad=True)
    y = mg.conv2d(x, w, padding=1)
    assert y.node.saved_bytes == x.nbytes + w.nbytes
    with_frozen = mg.conv2d(x, w.detach(), padding=1)
    assert with_frozen.node.saved_bytes == w.nbytes


def test_conv2d_image_by_image_equals_all_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((5, 2, 6, 6), (3, 2, 3, 3), (3,))]

    def function(x, w, b):
        return mg.conv2d(x, w, b, padding=1)

    dy = rng.standard_normal((5, 3, 6, 6))
    y = numeric.value_of(function, arrays)
    grads = numeric.gradients_of(function, arrays, [True] * 3, dy)
    monkeypatch.setattr(convolution, "COLUMNS", 1)
    np.testing.assert_allclose(numeric.value_of(function, arrays), y, rtol=1e-12)
    pieces = numeric.gradients_of(function, arrays, [True] * 3, dy)
    for g, h in zip(grads, pieces, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-10, atol=1e-12)


def test_conv2d_of_no_images_gives_none_and_zero_gradients():
    x = mg.zeros((0, 2, 5, 5), requires_grad=True)
    w = mg.ones((3, 2, 3, 3), requires_grad=True)
    y = mg.conv2d(x, w)
    assert y.shape == (0, 3, 3, 3)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert not w.grad.numpy().any()


def test_conv1d_second_order_equals_differences():
    rng = np.random.default_rng(1)
    arrays = [
        rng.standard_normal((2, 3, 7)),
        rng.standard_normal((2, 3, 3)),
        rng.standard_normal(2),
    ]
    numeric.check_second_order(
        lambda x, w, b: mg.conv1d(x, w, b, stride=2, padding=1), arrays, [True] * 3, rng
    )


def test_max_pool2d_sends_the_gradient_of_a_tie_to_the_first():
    x = mg.ones((1, 1, 2, 4), requires_grad=True)
    mg.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool2d_takes_nan_for_the_largest_and_minus_infinity_for_a_value(dtype):
    x = np.array([[[[1.0, np.nan, -np.inf, -np.inf], [np.nan, 9.0, -np.inf, -np.inf]]]], dtype)
    y = mg.max_pool2d(mg.variable(x), 2)
    np.testing.assert_array_equal(y.numpy(), [[[[np.nan, -np.inf]]]])


@pytest.mark.parametrize("function", [mg.max_pool2d, mg.avg_pool2d])
def test_pooling_second_order_equals_differences(function):
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((2, 2, 6, 5))]
    numeric.check_first_order(lambda x: function(x, 3, 2, 1), arrays, [True], rng)
    numeric.check_second_order(lambda x: mg.square(function(x, 3, 2, 1)), arrays, [True], rng)


def test_batch_norm_moves_running_values_in_place_as_documented():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 3, 2)).astype(np.float32)
    mean, var = mg.zeros((3,)), mg.ones((3,))
    mg.batch_norm(mg.variable(x), None, None, mean, var, momentum=0.25)
    axes = (0, 2)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.mean(axes), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.var(axes, ddof=1), rtol=1e-5)
    assert mean.version == var.version == 1
    before = mean.tolist()
    mg.batch_norm(mg.variable(x), None, None, mean, var, training=False)
    assert mean.tolist() == before


def test_batch_norm_in_evaluation_uses_running_values():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]])
    mean, var = mg.variable([1.0, 2.0]), mg.variable([4.0, 9.0])
    y = mg.batch_norm(x, None, None, mean, var, training=False, eps=0.0)
    np.testing.assert_allclose(y.numpy(), [[0, 0], [1, 2 / 3]], rtol=1e-6)


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2)])
def test_batch_norm_second_order_equals_differences(shape):
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(shape), rng.standard_normal(3), rng.standard_normal(3)]
    numeric.check_first_order(mg.batch_norm, arrays, [True] * 3, rng)
    numeric.check_second_order(mg.batch_norm, arrays, [True] * 3, rng)


def attention(q, k, v, mask=None):
    """By its formula, in NumPy."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return oracles.softmax(scores) @ v


def test_attention_with_masks_equals_its_formula():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, d)) for n, d in ((3, 4), (5, 4), (5, 6)))
    run = mg.scaled_dot_product_attention
    inputs = [mg.variable(a) for a in (q, k, v)]
    np.testing.assert_allclose(run(*inputs).numpy(), attention(q, k, v), rtol=1e-10)
    mask = rng.random((3, 5)) < 0.6
    mask[:, 0] = True
    want = attention(q, k, v, mask)
    np.testing.assert_allclose(run(*inputs, mask=mask).numpy(), want, rtol=1e-10)
    added = np.where(mask, 0.0, -np.inf)
    np.testing.assert_allclose(run(*inputs, mask=added).numpy(), want, rtol=1e-10)
    causal = attention(q, k, v, np.tri(3, 5, dtype=bool))
    np.testing.assert_allclose(run(*inputs, is_causal=True).numpy(), causal, rtol=1e-10)


def test_attention_of_a_query_that_sees_nothing_is_zero_with_finite_gradients():
    q = mg.ones((2, 3), requires_grad=True)
    mask = np.array([[True, False], [False, False]])
    y = mg.scaled_dot_product_attention(q, mg.ones((2, 3)), mg.ones((2, 3)), mask=mask)
    assert y.tolist() == [[1.0] * 3, [0.0] * 3]
    y.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


EQUATIONS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "i,i->": [(3,), (3,)],
    "ii->i": [(3, 3)],
    "ii": [(3, 3)],
    "iji->j": [(2, 3, 2)],
    "...ij,...jk->...ik": [(5, 2, 3), (3, 4)],
    "...i->...": [(2, 3, 4)],
    "b...,b...->...": [(2, 3, 4), (2, 1, 4)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "ij->": [(2, 3)],
    "ijk->kji": [(2, 3, 4)],
    "i,j,k->ijk": [(2,), (3,), (4,)],
    "ij,jk,kl,lm->im": [(2, 5), (5, 3), (3, 6), (6, 2)],
    "bhqd,bkhd->bhqk": [(2, 2, 3, 4), (2, 5, 2, 4)],
    "ij,kj,ij->ik": [(2, 3), (4, 3), (2, 3)],
    ",ij->ij": [(), (2, 3)],
    "ij,jk->ki": [(0, 3), (3, 2)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_equals_numpy_with_gradients_by_differences(equation):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in EQUATIONS[equation]]

    def function(*xs):
        return mg.einsum(equation, *xs)

    want = np.einsum(equation, *arrays)
    got = numeric.value_of(function, arrays)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    numeric.check_first_order(function, arrays, [True] * len(arrays), rng)


def test_einsum_of_one_variable_with_itself_adds_both_gradients():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    mg.einsum("ij,ij->", x, x).backward()
    assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeat_and_split_equal_numpy(axis):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = mg.variable(a)
    counts = list(range(a.shape[axis]))
    for repeats in (3, 0, counts):
        got, want = mg.repeat(x, repeats, axis), np.repeat(a, repeats, axis)
        assert got.shape == want.shape
        np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(mg.repeat(x, 2).numpy(), np.repeat(a, 2))
    for sections in (1, 2, 3, 5):
        parts = mg.split(x, sections, axis)
        wanted = np.array_split(a, sections, axis)
        assert [p.shape for p in parts] == [w.shape for w in wanted]
        for part, want in zip(parts, wanted, strict=True):
            np.testing.assert_array_equal(part.numpy(), want)
    for cuts in ([1], [0, 2], [2, 1], [9], [-1]):
        parts = mg.split(x, cuts, axis)
        wanted = np.split(a, cuts, axis)
        assert [p.shape for p in parts] == [w.shape for w in wanted]


@pytest.mark.parametrize("widths", [1, (1, 2), ((1, 0), (0, 2))])
def test_pad_takes_numpys_forms_of_widths(widths):
    a = np.arange(6.0).reshape(2, 3)
    got = mg.pad(mg.variable(a), widths, -1.0)
    np.testing.assert_array_equal(got.numpy(), np.pad(a, widths, constant_values=-1.0))


def test_concatenate_promotes_dtypes_and_casts_gradients_back():
    x = mg.variable(np.ones(2, np.float32), requires_grad=True)
    y = mg.variable(np.ones(1), requires_grad=True)
    z = mg.concatenate([x, y, mg.variable([3])])
    assert z.dtype is mg.float64
    assert z.tolist() == [1.0, 1.0, 1.0, 3.0]
    z.sum().backward()
    assert x.grad.dtype is mg.float32
    assert y.grad.dtype is mg.float64


def test_concatenate_of_the_same_variable_adds_its_gradients():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = mg.concatenate([x, x * 2.0, x])
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_stack_second_order_equals_differences():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3)), rng.standard_normal((2, 3))]
    numeric.check_second_order(
        lambda a, b: mg.square(mg.stack([a, b * a], 1)), arrays, [True] * 2, rng
    )


def test_prod_gradient_with_zeros_multiplies_the_others():
    x = mg.variable([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]], requires_grad=True)
    mg.prod(x, 1).sum().backward()
    assert x.grad.tolist() == [[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]


def test_max_shares_the_gradient_of_ties_and_norm_has_none_at_0():
    x = mg.variable([2.0, 2.0, 1.0], requires_grad=True)
    mg.max(x).backward()
    assert x.grad.tolist() == [0.5, 0.5, 0.0]
    z = mg.zeros((3,), requires_grad=True)
    mg.norm(z).backward()
    assert z.grad.tolist() == [0.0, 0.0, 0.0]


def test_argmax_takes_the_first_of_equals_and_the_first_nan():
    assert mg.argmax(mg.variable([1.0, 3.0, 3.0])).item() == 1
    assert mg.argmin(mg.variable([1.0, float("nan"), 0.0, float("nan")])).item() == 1


def test_cumsum_of_float32_stays_accurate():
    x = np.full(200_000, 0.1, np.float32)
    y = mg.cumsum(mg.variable(x), 0).numpy()
    np.testing.assert_allclose(y[-1], x.astype(float).sum(), rtol=1e-6)
