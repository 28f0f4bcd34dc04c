"""Gradients that are zero by definition are 0 whatever arrives, also inf and NaN."""

from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.formulas.expression import Expression
from minigrad.ops.gradient_plan import ElementwisePlan
from minigrad.tape.node import Node

INF, NAN = np.inf, np.nan
X = np.array([0.3, 1.0, -1.0, 2.5])
DY = np.array([INF, NAN, -INF, 1.0])


def written(write):
    def f(x):
        h = x * 1.0
        write(h)
        return h

    return f


def ones(x):
    return mg.ones((4,), x.dtype, x.device)


def replace(h):
    h[:] = ones(h)


ZERO = {  # functions whose gradient is 0 everywhere
    "sign": mg.sign,
    "round": mg.round,
    "floor": mg.floor,
    "ceil": mg.ceil,
    "fill_": written(lambda h: h.fill_(2.0)),
    "zero_": written(lambda h: h.zero_()),
    "copy_": written(lambda h: h.copy_(ones(h))),
    "x[:] = y": written(replace),
    "dropout of everything": lambda x: mg.dropout(x, 1.0),
}
MASKS = {  # functions with a gradient of 0 at some places: where it is not, dy arrives
    "relu": (mg.relu, X > 0),
    "clip": (lambda x: mg.clip(x, -0.5, 2.0), (X >= -0.5) & (X <= 2.0)),
    "maximum": (lambda x: mg.maximum(x, 0.5 * ones(x)), X > 0.5),
    "minimum": (lambda x: mg.minimum(x, 0.5 * ones(x)), X < 0.5),
    "where": (lambda x: mg.where(x > 0.5, x, 0.0), X > 0.5),
    "abs at 0": (lambda x: mg.abs(mg.where(x > 0.5, x, 0.0)), X > 0.5),
    "x[1] = y": (written(lambda h: h.__setitem__(1, 3.0)), np.arange(4) != 1),
    "slice": (lambda x: mg.concatenate([x[:2], ones(x)[:2]]), np.arange(4) < 2),
    "pad": (lambda x: mg.pad(x[:2], (0, 2)), np.arange(4) < 2),
    "max": (lambda x: mg.max(mg.stack([x, ones(x) * 0.5]), axis=0), X > 0.5),
    "tril": (lambda x: mg.tril(x.reshape(2, 2)).reshape(4), np.arange(4) != 1),
}
ALL = {**{name: (f, X < -9) for name, f in ZERO.items()}, **MASKS}


def gradients(f, x, dy):
    """First order without a graph, with one, and the gradient of that for dy."""
    y = f(x)
    (plain,) = mg.gradients([y], [x], dy=[dy], retain_graph=True)
    (first,) = mg.gradients([y], [x], dy=[dy], create_graph=True)
    (second,) = mg.gradients([first], [dy], dy=[dy.detach()])
    return [plain, first.detach(), second]


def leaves(device="cpu", dtype="float64"):
    found = (mg.variable(v.astype(dtype), device=device) for v in (X, DY))
    return [v.requires_grad_() for v in found]


def check(name, found):
    passes = ALL[name][1]
    for g in found:
        got = g.to("cpu").numpy()
        np.testing.assert_array_equal(got, np.where(passes, DY.astype(got.dtype), 0.0), name)


@pytest.mark.parametrize("name", ALL)
def test_what_arrives_does_not_matter_where_the_gradient_is_zero(name):
    check(name, gradients(ALL[name][0], *leaves()))


@pytest.mark.parametrize("name", ["floor", "copy_", "relu", "x[1] = y"])
def test_on_the_simulated_gpu(name):
    check(name, gradients(ALL[name][0], *leaves("simt", "float32")))


def test_in_a_compiled_step():
    @mg.compile
    def step(x, dy):
        return {name: gradients(f, x, dy) for name, (f, _) in ALL.items()}

    for _ in range(3):
        for name, found in step(*leaves()).items():
            check(name, found)


def test_a_gradient_that_is_a_number_is_that_number_whatever_arrives():
    two = SimpleNamespace(
        name="two", inputs=("x",), gradient_formulas=(Expression("constant", 2.0),)
    )
    plan, (x, dy) = ElementwisePlan(two, 1), leaves()
    (first,) = plan.backward_graph(Node(plan, (x,)), dy)
    assert first.tolist() == [2.0] * 4
    (second,) = mg.gradients([first], [dy], dy=[dy.detach()])
    assert second.tolist() == [0.0] * 4


# -- losses --------------------------------------------------------------------------------------

LOGITS = np.array([[NAN, 1.0, 2.0], [INF, 1.0, 0.0], [0.0, 1.0, -INF], [1.0, 2.0, 3.0]])
LABELS = [-100, -100, 1, 2]


@pytest.mark.parametrize("weight", [None, np.ones(3), np.array([1.0, 2.0, 3.0])])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_rows_that_are_ignored_get_zeros_whatever_stands_in_them(weight, reduction):
    """PyTorch gives NaN there: 0 * NaN."""

    def loss(x, labels):
        return mg.cross_entropy(
            x, labels, weight=weight, ignore_index=-100, reduction=reduction
        ).sum()

    x, kept = (mg.variable(v, requires_grad=True) for v in (LOGITS, LOGITS[2:]))
    a, b = loss(x, LABELS), loss(kept, LABELS[2:])
    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12)
    assert np.isfinite(a.item())
    a.backward()
    b.backward()
    assert x.grad[:2].tolist() == [[0.0] * 3] * 2
    np.testing.assert_allclose(x.grad[2:].numpy(), kept.grad.numpy(), 1e-12)


def test_a_class_with_logit_minus_infinity_and_weights():
    """As without weights, and as PyTorch: -0.1345, 0.1224, -0.1674 (and 0 at -inf)."""
    x = mg.variable(LOGITS[2:], requires_grad=True)
    mg.cross_entropy(x, [1, 2], weight=np.ones(3)).backward()
    wanted = [[0.13447071, -0.13447071, 0.0], [0.04501529, 0.12236424, -0.16737952]]
    np.testing.assert_allclose(x.grad.numpy(), wanted, 1e-6)


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2.0, 3.0])])
def test_ignored_rows_to_second_order_and_compiled(weight):
    def f(x):
        loss = mg.cross_entropy(x, LABELS, weight=weight, ignore_index=-100)
        (first,) = mg.gradients([loss], [x], create_graph=True)
        (second,) = mg.gradients([(first * first).sum()], [x])
        return first.detach(), second

    finite = np.where(np.isfinite(LOGITS), LOGITS, 0.5)  # -inf counts to second order
    rows = np.where(np.arange(4)[:, None] < 2, NAN, finite)
    wanted = f(mg.variable(finite, requires_grad=True))
    step = mg.compile(f)
    for run in (f, step, step, step):
        for got, right in zip(run(mg.variable(rows, requires_grad=True)), wanted, strict=True):
            np.testing.assert_allclose(got.numpy()[2:], right.numpy()[2:], 1e-12)
            assert got.tolist()[:2] == [[0.0] * 3] * 2
