"""A common offset of 10,000 costs a row no more digits than its float32 numbers have lost by it."""

import numpy as np
import pytest

import minigrad as mg

RNG = np.random.default_rng(5)
X = (RNG.normal(size=(6, 40)) + 1e4).astype(np.float32)
LABELS = RNG.integers(0, 40, 6)
TARGET = RNG.dirichlet(np.ones(40), 6).astype(np.float32)
CENTRED = X.astype(float) - 1e4  # exact


def labelled(**options):
    """cross_entropy with labels."""
    return lambda x: mg.cross_entropy(x, LABELS, **options)


CASES = {  # name: (function, largest error of the value, of the gradient)
    "softmax": (lambda x: mg.softmax(x) ** 2, 1e-7, 1e-7),
    "log_softmax": (lambda x: mg.log_softmax(x), 1e-6, 1e-6),
    "logsumexp": (lambda x: mg.logsumexp(x, axis=1) - 1e4, 6e-4, 1e-6),
    "cross_entropy": (labelled(), 1e-6, 1e-7),
    "cross_entropy of rows": (labelled(reduction="none"), 2e-6, 1e-6),
    "cross_entropy, smoothed": (labelled(label_smoothing=0.2), 1e-6, 1e-7),
    "cross_entropy, weighted": (labelled(weight=np.ones(40, np.float32) * 0.5), 1e-6, 1e-7),
    "cross_entropy, ignoring": (labelled(ignore_index=int(LABELS[0])), 1e-6, 1e-7),
    "cross_entropy of probabilities": (lambda x: mg.cross_entropy(x, TARGET), 1e-6, 1e-7),
}


def both(function, x):
    """Value and gradient of the sum of it."""
    y = function(x)
    return y.detach(), mg.gradients(y.sum(), x)


def check(name, x, run=both):
    function, *bounds = CASES[name]
    shift = 1e4 if name == "logsumexp" else 0.0  # the value of the centred row, less what is taken
    exact = mg.variable(CENTRED, device="cpu", requires_grad=True)
    value, gradient = both(function, exact)
    wanted = value.numpy() + shift, gradient.numpy()
    for got, want, bound in zip(run(function, x), wanted, bounds, strict=True):
        np.testing.assert_allclose(got.to("cpu").numpy(), want, 0, bound)


@pytest.mark.parametrize("name", CASES)
def test_eager_and_compiled_keep_the_digits(name):
    x = mg.variable(X, requires_grad=True)
    check(name, x)
    step = mg.compile(lambda x: both(CASES[name][0], x))
    step(x)
    check(name, x, lambda _, x: step(x))


@pytest.mark.parametrize("name", ["log_softmax", "logsumexp", "cross_entropy"])
def test_the_simulated_gpu_keeps_the_digits(name):
    with mg.device("simt"):
        check(name, mg.variable(X, requires_grad=True))


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize(("dtype", "big"), [("float32", 89.0), ("float64", 710.0)])
def test_the_gradient_of_logsumexp_beside_inf_is_0(device, dtype, big):
    rows = np.array([[np.inf, big, 1.0], [-np.inf, big, -np.inf], [-np.inf] * 3], dtype)
    x = mg.variable(rows, requires_grad=True, device=device)

    def gradient(x):
        return mg.gradients(mg.logsumexp(x, axis=1).sum(), x)

    want = [[np.nan, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0] * 3]  # exp(x - logsumexp), 0 of only -inf
    for step in (gradient, mg.compile(gradient)) if device == "cpu" else (gradient,):
        np.testing.assert_array_equal(step(x).to("cpu").numpy(), want)


@pytest.mark.parametrize("device", ["cpu", "numpy", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_logsumexp_beside_infinities_are_those_of_its_limit(device, dtype):
    inf, nan = np.inf, np.nan
    p = 1.0 / (1.0 + np.e)  # softmax of (1, 2)
    cases = {  # a row: logsumexp, its gradient, the gradient of (1, 2, 3) * that
        (inf, 1.0, 2.0): (inf, [nan, 0.0, 0.0], [nan, 0.0, 0.0]),
        (inf, -inf, 1.0): (inf, [nan, 0.0, 0.0], [nan, 0.0, 0.0]),
        (inf, inf, 1.0): (inf, [nan, nan, 0.0], [nan, nan, 0.0]),
        (-inf, 1.0, 2.0): (2.0 - np.log(1 - p), [0.0, p, 1 - p], [0.0, p * (p - 1), p * (1 - p)]),
        (-inf, -inf, 3.0): (3.0, [0.0, 0.0, 1.0], [0.0] * 3),
        (-inf, -inf, -inf): (-inf, [0.0] * 3, [0.0] * 3),
        (nan, inf, -inf): (nan, [nan] * 3, [nan] * 3),
        (1e38, -1e38, 0.0): (1e38, [1.0, 0.0, 0.0], [0.0] * 3),
    }
    x = mg.variable(np.array(list(cases), dtype), device=device)
    weights = mg.variable(np.array([1.0, 2.0, 3.0], dtype), device=device)
    first = mg.grad(lambda x: mg.logsumexp(x, axis=1).sum())
    second = mg.grad(lambda x: (first(x) * weights).sum())
    for k, order in enumerate((lambda x: mg.logsumexp(x, axis=1), first, second)):
        want = np.array([row[k] for row in cases.values()], dtype)
        for step in (order, mg.compile(order)):
            np.testing.assert_allclose(step(x).to("cpu").numpy(), want, 3e-6, 1e-7)


def test_a_saturated_binary_loss_is_its_limit():
    x = mg.variable([np.inf, np.inf, -np.inf, -np.inf, 1e4, -1e4])
    t = mg.variable([1.0, 0.0, 0.0, 1.0, 0.999, 0.001])
    found = mg.bce_with_logits(x, t, reduction="none").numpy()
    np.testing.assert_allclose(found, [0, np.inf, 0, np.inf, 10, 10], 1e-4)


def test_the_standard_deviation_of_equal_values_has_gradients_0():
    for x in ([2.0, 2.0, 2.0], [0.0, 0.0]):
        x = mg.variable(x, requires_grad=True)
        (first,) = mg.gradients(mg.std(x, ddof=0), [x], create_graph=True)
        (second,) = mg.gradients(first.sum(), [x])
        assert first.tolist() == second.tolist() == [0.0] * x.size


def test_a_power_of_0_is_flat_and_its_slope_has_a_slope():
    a = mg.variable([0.0, 2.0, np.inf, np.nan, 1e-40, -4.0], requires_grad=True)
    b = mg.zeros((6,)).requires_grad_()
    (da,) = mg.gradients((a**b).sum(), [a], create_graph=True)
    assert da.tolist() == [0.0] * 6
    (mixed,) = mg.gradients(da.sum(), [b])
    assert mixed.tolist() == [0.0, 0.5, 0.0, 0.0, 0.0, -0.25]  # 1 / a where that is a number


def test_a_product_with_an_infinite_factor_has_the_product_of_the_others():
    x = mg.variable([np.inf, 2.0, 3.0], requires_grad=True)
    (first,) = mg.gradients(x.prod(), [x], create_graph=True)
    assert first.tolist() == [6.0, np.inf, np.inf]
    (second,) = mg.gradients(first.sum(), [x])
    assert second.tolist() == [5.0, np.inf, np.inf]
