"""Clipping of gradients and parameters."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import errors, nn


def parameters(*gradients):
    found = []
    for k, g in enumerate(gradients):
        values = np.asarray(g)
        p = nn.Parameter(np.zeros(values.shape, values.dtype), name=f"p{k}")
        p.grad = mg.variable(values)
        found.append(p)
    return found


def test_global_norm_keeps_the_direction_and_is_returned_before_clipping():
    ps = parameters(np.array([3.0, 0.0]), np.array([[4.0]]))
    assert mg.optim.clip_grad_norm_(ps, 1.0) == pytest.approx(5.0)
    np.testing.assert_allclose(ps[0].grad.numpy(), [0.6, 0.0])
    np.testing.assert_allclose(ps[1].grad.numpy(), [[0.8]])


def test_norm_per_parameter_changes_the_direction():
    ps = parameters(np.array([3.0, 0.0]), np.array([[4.0]]), np.array([0.5]))
    assert mg.optim.clip_grad_norm_per_param_(ps, 1.0) == pytest.approx([3.0, 4.0, 0.5])
    assert [p.grad.numpy().ravel().tolist() for p in ps] == [[1.0, 0.0], [1.0], [0.5]]


def test_gradients_below_the_threshold_are_not_touched():
    values = np.random.default_rng(0).standard_normal(100).astype("f4")
    ps = parameters(values)
    norm = float(np.linalg.norm(values.astype("f8")))
    grad, version = ps[0].grad, ps[0].grad.version
    assert mg.optim.clip_grad_norm_(ps, norm) == pytest.approx(norm, rel=1e-12)
    mg.optim.clip_grad_norm_per_param_(ps, 100.0)
    assert ps[0].grad is grad
    assert grad.version == version
    np.testing.assert_array_equal(grad.numpy(), values)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.lists(st.floats(-1e6, 1e6, width=32), min_size=0, max_size=40), min_size=1, max_size=5
    ),
    st.floats(1e-3, 1e3),
    st.sampled_from(["f4", "f8"]),
)
def test_clipped_norm_is_at_most_the_threshold(lists, bound, dtype):
    ps = parameters(*(np.array(values, dtype) for values in lists))
    before = np.concatenate([p.grad.numpy().astype("f8") for p in ps])
    norm = mg.optim.clip_grad_norm_(ps, bound)
    assert norm == pytest.approx(np.linalg.norm(before), rel=1e-6, abs=1e-30)
    after = np.concatenate([p.grad.numpy().astype("f8") for p in ps])
    np.testing.assert_allclose(
        after, before * min(1.0, bound / norm if norm else 1.0), rtol=1e-5, atol=1e-37
    )


def test_both_dtypes_are_clipped_together():
    ps = parameters(np.array([3.0], "f4"), np.array([4.0]))
    assert mg.optim.clip_grad_norm_(ps, 2.5) == pytest.approx(5.0)
    assert [p.grad.item() for p in ps] == [1.5, 2.0]


def test_norm_of_huge_numbers_does_not_overflow():
    ps = parameters(np.array([3e200, 4e200]), np.array([12e200]))
    assert mg.optim.clip_grad_norm_(ps, 13.0) == pytest.approx(13e200)
    np.testing.assert_allclose(ps[0].grad.numpy(), [3.0, 4.0])


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("clip", [mg.optim.clip_grad_norm_, mg.optim.clip_grad_norm_per_param_])
def test_non_finite_gradients_raise_and_are_named(clip, wrong):
    ps = parameters(np.array([30.0]), np.array([1.0, wrong]))
    with pytest.raises(errors.NonFiniteError, match="'p1'") as caught:
        clip(ps, 1.0)
    assert "'p0'" not in str(caught.value)
    assert ps[0].grad.item() == 30.0


def test_non_finite_gradients_can_be_let_through():
    ps = parameters(np.array([30.0]), np.array([1.0, math.inf]))
    assert mg.optim.clip_grad_norm_(ps, 1.0, error_if_nonfinite=False) == math.inf
    np.testing.assert_array_equal(ps[0].grad.numpy(), [0.0])
    np.testing.assert_array_equal(ps[1].grad.numpy(), [0.0, math.nan])


def test_missing_gradients_are_left_out():
    model = nn.Linear(2, 1)
    assert mg.optim.clip_grad_norm_(model, 1.0) == 0.0
    model.bias.grad = mg.variable([3.0])
    assert mg.optim.clip_grad_norm_(model, 1.0) == pytest.approx(3.0)
    assert model.bias.grad.item() == pytest.approx(1.0)
    assert mg.optim.clip_grad_norm_(model.bias, 0.0) == pytest.approx(1.0)
    assert model.bias.grad.item() == 0.0


def test_values_are_clipped_one_by_one():
    ps = parameters(np.array([-5.0, 0.5, 7.0, math.nan]))
    mg.optim.clip_grad_value_(ps, 1.0)
    np.testing.assert_array_equal(ps[0].grad.numpy(), [-1.0, 0.5, 1.0, math.nan])


def test_parameters_are_clipped_and_stay_the_same_ones():
    model = nn.Linear(3, 2)
    ids = [p.id for p in model.parameters()]
    mg.optim.clip_params_(model, -0.1, None)
    mg.optim.clip_params_(model, None, 0.1)
    assert all(np.abs(p.numpy()).max() <= np.float32(0.1) for p in model.parameters())
    mg.optim.clip_params_(model.weight, 0.05, 0.05)
    assert set(model.weight.numpy().ravel()) == {np.float32(0.05)}
    assert [p.id for p in model.parameters()] == ids
    assert all(p.is_leaf and p.requires_grad for p in model.parameters())


P = nn.Parameter([1.0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: mg.optim.clip_grad_norm_(P, -1.0), errors.ArgumentError, "at least 0"),
        (lambda: mg.optim.clip_grad_norm_(P, "1"), errors.ArgumentTypeError, "a number"),
        (lambda: mg.optim.clip_grad_norm_(3, 1.0), errors.ArgumentTypeError, "a Module"),
        (lambda: mg.optim.clip_grad_norm_([1.0], 1.0), errors.ArgumentTypeError, "float among"),
        (lambda: mg.optim.clip_grad_value_(P, math.nan), errors.ArgumentError, "at least 0"),
        (lambda: mg.optim.clip_params_(P, 1.0, -1.0), errors.ArgumentError, "low <= high"),
    ],
)
def test_bad_arguments_raise(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_clipping_gradients_is_a_write():
    p = nn.Parameter([1.0])
    p.grad = mg.variable([5.0])
    with mg.no_grad():
        kept = p.grad.clone()
    version = p.grad.version
    mg.optim.clip_grad_norm_([p], 1.0)
    assert p.grad.version == version + 1
    assert kept.item() == 5.0
