"""Gradients of every differentiable operation against central differences, to second order."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.base import Elementwise
from tests.ops import numeric
from tests.ops.cells import arranged, call, draw, public_ops, samples

OPS = public_ops()


def is_differentiable(op):
    """Whether the class says how its inputs get gradients."""
    if op.name == "concatenate":
        return True
    if issubclass(op, Elementwise):
        return bool(op.gradient_formulas)
    return op.gradients is not None


DIFFERENTIABLE = [n for n, op in OPS.items() if is_differentiable(op)]
CONSTANT = {"batch_norm": (3, 4)}  # inputs that are made from x: their gradient goes through x


def problem(name, which=0):
    """(function, inputs, which need gradients, random generator) of one sample."""
    op = OPS[name]
    shapes, attributes = samples(op)[which]
    arrays = draw(op, shapes, attributes, "float64")
    if name == "batch_norm":
        arrays[3], arrays[4] = arrays[0].mean(0), arrays[0].var(0)
    needs = [a.dtype.kind == "f" and k not in CONSTANT.get(name, ()) for k, a in enumerate(arrays)]
    rules = getattr(op, "gradient_formulas", None) or getattr(op, "gradients", None)
    if name != "concatenate":
        needs = [n and k < len(rules) and rules[k] is not None for k, n in enumerate(needs)]
    if name == "cast":
        attributes = ("float64",)

    def function(*inputs):
        if name == "batch_norm":  # the statistics are x's own
            x = inputs[0].detach()
            inputs = (*inputs[:3], mg.mean(x, 0), mg.var(x, 0, ddof=0))
        return call(op, inputs, attributes)

    return function, arrays, needs, np.random.default_rng(11)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_order_on_every_sample_equals_differences(name):
    for which in range(len(samples(OPS[name]))):
        numeric.check_first_order(*problem(name, which))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order_equals_differences(name):
    numeric.check_second_order(*problem(name))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_through_other_layouts_equal_contiguous_ones(name):
    function, arrays, needs, rng = problem(name)
    y = numeric.value_of(function, arrays)
    dy = rng.standard_normal(y.shape)
    plain = numeric.gradients_of(function, arrays, needs, dy)
    pairs = arranged(arrays, "transposed")
    inputs = [mg.variable(0.0) if n else v for (v, _), n in zip(pairs, needs, strict=True)]
    bases = []
    for k, (a, n) in enumerate(zip(arrays, needs, strict=True)):
        if n:
            bases.append(mg.variable(np.ascontiguousarray(a.T), requires_grad=True))
            inputs[k] = bases[-1].T
    upstream = mg.variable(np.repeat(dy, 2, -1))[..., ::2] if dy.ndim else mg.variable(dy)
    function(*inputs).backward(upstream)
    for base, g in zip(bases, [g for g in plain if g is not None], strict=True):
        assert base.grad.shape == base.shape
        np.testing.assert_allclose(base.grad.numpy().T, g, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_float32_have_the_inputs_dtype(name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, "float32")
    needs = problem(name)[2]
    inputs = numeric.leaves(arrays, needs)
    y = call(op, inputs, attributes)
    y.backward(mg.ones(y.shape, y.dtype))
    for x, n in zip(inputs, needs, strict=True):
        assert (x.grad is not None) == n
        assert not n or (x.grad.dtype is x.dtype and x.grad.shape == x.shape)


@pytest.mark.parametrize("name", [n for n in OPS if n not in DIFFERENTIABLE])
def test_operation_without_gradient_records_nothing(name):
    op = OPS[name]
    shapes, attributes = samples(op)[0]
    arrays = draw(op, shapes, attributes, "float64")
    y = call(op, [mg.variable(a, requires_grad=True) for a in arrays], attributes)
    assert y.node is None
    assert not y.requires_grad


def test_numeric_oracle_finds_a_wrong_gradient():
    class Wrong(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved
            return dy * x * 2.001

    arrays = [np.array([0.5, -1.0, 2.0])]
    with pytest.raises(AssertionError):
        numeric.check_first_order(Wrong.apply, arrays, [True], np.random.default_rng(0))
