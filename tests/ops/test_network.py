"""Convolution, pooling, normalisation, attention: what no sample shows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.devices.cpu import blas, structural
from minigrad.devices.threads import threads
from minigrad.devices.window import Window
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
    mg.batch_norm(mg.variable(x), running_mean=mean, running_var=var, training=True, momentum=0.25)
    axes = (0, 2)
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.mean(axes), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * x.var(axes, ddof=1), rtol=1e-5)
    assert mean.version == var.version == 1
    before = mean.tolist()
    mg.batch_norm(mg.variable(x), running_mean=mean, running_var=var, training=False)
    assert mean.tolist() == before


def test_batch_norm_in_evaluation_uses_running_values():
    x = mg.variable([[1.0, 2.0], [3.0, 4.0]])
    mean, var = mg.variable([1.0, 2.0]), mg.variable([4.0, 9.0])
    y = mg.batch_norm(x, running_mean=mean, running_var=var, training=False, eps=0.0)
    np.testing.assert_allclose(y.numpy(), [[0, 0], [1, 2 / 3]], rtol=1e-6)


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2)])
def test_batch_norm_second_order_equals_differences(shape):
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(shape), rng.standard_normal(3), rng.standard_normal(3)]

    def normalised(x, w, b):
        return mg.batch_norm(x, weight=w, bias=b)

    numeric.check_first_order(normalised, arrays, [True] * 3, rng)
    numeric.check_second_order(normalised, arrays, [True] * 3, rng)


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


SEES = np.array([[True, False, True], [False, False, False]])  # query 1 sees no key
BIAS = np.where(SEES, 0.0, -np.inf)


def attended(attend, mask, dtype, device="cpu", q=None):
    """The result, and the gradients of q, k and v."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((n, 4)).astype(dtype) for n in (2, 3, 3)]
    arrays[0] = arrays[0] if q is None else q.astype(dtype)
    leaves = [mg.variable(a, requires_grad=True, device=device) for a in arrays]
    y = attend(*leaves, mask)
    (y * y).sum().backward()
    return [g.to("cpu").numpy() for g in (y.detach(), *(x.grad for x in leaves))]


@pytest.mark.parametrize(
    ("dtype", "device"), [("float32", "cpu"), ("float64", "cpu"), ("float32", "simt")]
)
def test_attention_of_a_query_that_sees_no_key_is_zero_for_every_kind_of_mask(dtype, device):
    attend = mg.scaled_dot_product_attention
    want = attended(attend, mg.variable(SEES, device=device), dtype, device)
    assert not want[0][1].any()
    assert all(np.isfinite(g).all() for g in want)
    for learned in (False, True):
        mask = mg.variable(BIAS.astype(dtype), requires_grad=learned, device=device)
        for step in (attend, mg.compile(attend)) if device == "cpu" else (attend,):
            for g, w in zip(attended(step, mask, dtype, device), want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
        if learned:
            assert not mask.grad.to("cpu").numpy()[~SEES].any()


@pytest.mark.parametrize("mask", [SEES, BIAS])
def test_second_derivatives_of_attention_where_a_query_sees_no_key(mask):
    rng = np.random.default_rng(0)
    leaves = [mg.variable(rng.standard_normal((n, 4)), requires_grad=True) for n in (2, 3, 3)]
    mask = mg.variable(mask)
    assert mg.debug.gradgradcheck(
        lambda q, k, v: mg.scaled_dot_product_attention(q, k, v, mask), leaves
    )


@pytest.mark.parametrize("mask", [SEES, BIAS])
def test_what_a_query_that_sees_no_key_holds_does_not_affect_the_rest(mask):
    q = np.array([[1.0, -1.0, 0.5, 2.0], [np.nan, np.inf, 1.0, 0.0]])
    attend, mask = mg.scaled_dot_product_attention, mg.variable(mask)
    y, _, _, got = attended(attend, mask, "float64", q=q)
    want = attended(attend, mask, "float64", q=np.where(np.isfinite(q), q, 0.0))
    np.testing.assert_array_equal(y, want[0])
    np.testing.assert_array_equal(got, want[3])
    assert np.isfinite(got).all()


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e31), ("float64", 1e300)])
def test_attention_hides_keys_however_low_the_visible_scores_are(dtype, size):
    q, k = mg.variable([[1.0]], dtype=dtype), mg.variable([[-size], [1.0]], dtype=dtype)
    v = mg.variable([[1.0], [2.0]], dtype=dtype)
    for mask in ([[True, False]], [[0.0, -np.inf]]):
        assert mg.scaled_dot_product_attention(q, k, v, mask).tolist() == [[1.0]]


def test_attention_takes_a_mask_without_axes():
    q, k, v = mg.randn((2, 3)), mg.randn((4, 3)), mg.randn((4, 2))
    plain = mg.scaled_dot_product_attention(q, k, v)
    for mask in (True, 0.0):
        np.testing.assert_allclose(
            mg.scaled_dot_product_attention(q, k, v, mg.variable(mask)), plain, rtol=1e-5
        )
    for mask in (False, -np.inf):
        hidden = mg.scaled_dot_product_attention(q, k, v, mg.variable(mask))
        assert hidden.tolist() == [[0.0] * 2] * 2


def test_conv2d_side_by_side_equals_one_range(monkeypatch):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((5, 4, 6, 6), (6, 2, 3, 3), (6,))]

    def function(x, w, b):
        return mg.conv2d(x, w, b, padding=1, groups=2)

    dy = rng.standard_normal((5, 6, 6, 6))
    y = numeric.value_of(function, arrays)
    grads = numeric.gradients_of(function, arrays, [True] * 3, dy)
    monkeypatch.setattr(structural, "SPLIT", 1)
    monkeypatch.setattr(threads, "count", 2)  # ranges of 2 and 3 images
    np.testing.assert_allclose(numeric.value_of(function, arrays), y, rtol=1e-12)
    for g, h in zip(grads, numeric.gradients_of(function, arrays, [True] * 3, dy), strict=True):
        np.testing.assert_allclose(h, g, rtol=1e-10, atol=1e-12)


def test_matrix_products_within_single_threaded_blocks_leave_the_number_of_threads():
    before = blas._counts("get")()
    with blas.single_threaded, blas.single_threaded:
        assert blas._counts("get")() == 1
    assert blas._counts("get")() == before
