"""Python's numbers among the arguments: one program reads them at each run, whatever they are."""

import copy
import math
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import DTypeError, RetraceWarning, TraceError

pytestmark = pytest.mark.usefixtures("interpreted_plans")
FLOATS = [0.5, 0.25, 0.125, 0.3, 0.7, 0.9]
INTS = [1, 2, 3, 4, 5, 6]


def the_x(dtype):
    """Six numbers of a dtype, some of them negative if it has such."""
    low = 0 if dtype == "uint8" else -2
    return mg.variable(np.linspace(low, 3, 6).astype(dtype))


def same(want, got, dtype):
    """Asserts that two results are equal, up to rounding, and of one type."""
    if isinstance(want, (tuple, list)):
        assert len(want) == len(got)
        for a, b in zip(want, got, strict=True):
            same(a, b, dtype)
    elif isinstance(want, mg.Variable):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        error = 1e-13 if dtype == "float64" else 2e-6
        np.testing.assert_allclose(got.numpy(), want.numpy(), error, error)
    else:
        assert type(want) is type(got)
        assert want == got


def check(f, values, programs, dtype="float32"):
    """Eager and compiled, for each value in turn; no warning, and how many programs it took.

    programs: beside the one with the value of the first call.
    """
    step, x = mg.compile(f), the_x(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if programs < 3 else "ignore", RetraceWarning)
        for value in [*values, *values]:
            same(f(x, value), step(x, value), dtype)
    assert len(step.traces) == programs + 1
    return step


def written(x, t):
    y = x * 1
    y[1:3] = t
    y.add_(t)
    return y


ONE_PROGRAM = {
    "product": lambda x, t: x * t,
    "quotient": lambda x, t: (x / t, t / (x + 5)),
    "power": lambda x, t: (x + 3.0) ** t,
    "base": lambda x, t: t ** (x * 1.0),
    "comparison": lambda x, t: (x > t, t < x, x == t),
    "where": lambda x, t: mg.where(x > 0, x * 1.0, t),
    "in place": lambda x, t: written(x * 1.0, t),
    "clip": lambda x, t: ((x * 1.0).clip(-t, t), mg.maximum(x, t), (x * 1.0).clip(t)),
    "arithmetic of Python": lambda x, t: x * (1 - t**2) / (1 + t) - abs(-t) + t // 0.1 + t % 0.3,
    "decay": lambda x, t: x * 0.999**t,
    "function of NumPy": lambda x, t: x * np.exp(t) + np.float64(2) * t + np.sqrt(t),
    "function of minigrad": lambda x, t: x * mg.exp(t) + mg.leaky_relu(x, t) + mg.elu(x, t),
    "rounded": lambda x, t: x * round(t, 1) + math.floor(t * 10) / 10,
    "filled": lambda x, t: x + mg.full((6,), t) + mg.full_like(x * 1.0, t),
    "variable": lambda x, t: (mg.variable(t) * x, mg.variable(t, dtype="float64") + 1.0),
    "sum of numbers": lambda x, t: sum([t, t, x]),
    "reductions": lambda x, t: ((x * t).mean(), (x - t).sum(), mg.softmax(x / t), mg.norm(x * t)),
    "product of matrices": lambda x, t: (x[None] * t * 1.0) @ (x[:, None] + t * 1.0),
    "smoothed labels": lambda x, t: mg.cross_entropy(
        x[None] * 1.0, mg.variable([2]), label_smoothing=0.1 * t
    ),
    "a bound that holds": lambda x, t: x * t if t < 100 else x,
    "dropout": lambda x, t: mg.dropout(mg.zeros((3,)), t / 10),
}


@pytest.mark.parametrize("values", [FLOATS, INTS], ids=["floats", "ints"])
@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_number_that_changes_is_one_program(name, values):
    check(ONE_PROGRAM[name], values, 1)


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "uint8"])
@pytest.mark.parametrize("name", ["product", "quotient", "comparison", "where"])
def test_number_takes_part_in_the_dtype_of_the_other_side(name, dtype):
    check(ONE_PROGRAM[name], FLOATS, 1, dtype)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_numpys_numbers_change_in_one_program(kind):
    check(lambda x, t: x * t * (t + 1) + t / 3, [kind(t) for t in FLOATS], 1)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_numpys_ints_change_in_one_program(kind):
    check(lambda x, t: x * t + t / 3, [kind(t) for t in INTS], 1)


def test_first_value_costs_a_program():
    step, x = mg.compile(lambda x, t: x * t), mg.ones((3,))
    for _ in range(3):
        step(x, 0.5)
    for k in range(20):
        assert step(x, k / 100).tolist() == [np.float32(k / 100)] * 3
    assert len(step.traces) == 2


def test_thousand_values_warn_of_nothing():
    step, x = mg.compile(lambda x, t: x * t), mg.ones((2,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(1000):
            assert step(x, 0.999**t).tolist() == [np.float32(0.999**t)] * 2
    assert len(step.traces) == 2


def test_special_values_are_what_they_are():
    values = [0.5, math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, 1e-300]
    step, x = mg.compile(lambda x, t: x * t), mg.ones((1,))
    wide = mg.compile(lambda x, t: x * t)
    for t in values:
        with np.errstate(over="ignore"):
            want = np.float32(t)
        np.testing.assert_array_equal(step(x, t).numpy(), [want])
        assert np.signbit(step(x, t).item()) == np.signbit(want)
        np.testing.assert_array_equal(wide(x.to("float64"), t).numpy(), [t])
    assert len(step.traces) == len(wide.traces) == 2


# -- what Python decides by them -------------------------------------------------------------------


DECIDED = {  # name: (function, values, programs)
    "branch": (lambda x, t: x * t if t < 0.4 else x + t, FLOATS, 2),
    "maximum": (lambda x, t: x * max(t, 0.4), FLOATS, 2),
    "warm up": (lambda x, t: x * (t / 10 if t < 3 else 1.0), range(8), 2),
    "equality": (lambda x, t: x + 1 if t == 3 else x * t, range(6), 2),
    "of a kind": (lambda x, t: x * (2.0 if isinstance(t, float) else 3.0) * t, [0.5, 2, 0.1, 3], 2),
    "shape": (lambda x, t: mg.zeros((t, 2)) + t, [1, 2, 3], 3),
    "slice": (lambda x, t: x[:t] * t, [1, 2, 3], 3),
    "index": (lambda x, t: x[t] * t, [1, 2, -1], 3),
    "loop": (lambda x, t: sum([x * i for i in range(t)], x), [1, 2, 3], 3),
    "axis": (lambda x, t: x[:, None].sum(axis=t) * t, [0, 1], 2),
    "int": (lambda x, t: x * int(t), [0.5, 0.7, 1.5, 1.7], 2),
    "function of math": (lambda x, t: x * math.exp(t), FLOATS[:3], 3),
    "text": (lambda x, t: (x * t, f"{t:.1f}"), FLOATS[:3], 3),
    "entry": (lambda x, t: x * {1: 2.0, 2: 3.0, 3: 5.0}[t], [1, 2, 3], 3),
    "array of NumPy": (lambda x, t: x * mg.variable(np.full(6, t, "f4")), FLOATS[:3], 3),
    "result": (lambda x, t: (x * t, t + 1), FLOATS[:3], 3),
    "pair": (lambda x, t: x * divmod(t, 2)[1], [1, 2, 3], 3),
    "too large for int64": (lambda x, t: x * t, [1, 2, 2**62, 2**70], 2),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_python_decides_by_a_number_holds_at_each_call(name):
    f, values, programs = DECIDED[name]
    step, x = mg.compile(f), the_x("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        for value in [*values, *values]:
            same(f(x, value), step(x, value), "float32")
    assert len(step.traces) <= programs + 1  # one with the first value


def test_division_by_zero_raises_as_eager_does():
    step, x = mg.compile(lambda x, t: x * (1 / t)), mg.ones((1,))
    for t in (1.0, 2.0, 4.0):
        assert step(x, t).item() == 1 / t
    with pytest.raises(ZeroDivisionError):
        step(x, 0.0)
    assert step(x, 8.0).item() == 0.125


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: x + t,
        lambda x, t: t - x,
        lambda x, t: x // t,
        lambda x, t: x * (t + t - t),
        lambda x, t: x.clip(0, t),
        lambda x, t: mg.where(x > 1, x, t),
        lambda x, t: x.clone().add_(t),
    ],
)
@pytest.mark.parametrize(("dtype", "outside"), [("int32", 2**31), ("uint8", 256), ("uint8", -1)])
def test_an_int_that_the_other_side_cannot_hold_raises_as_eager_does(f, dtype, outside):
    step, x = mg.compile(f), mg.variable([1, 2], dtype=dtype)
    for t in (1, 2, 3):
        assert step(x, t).tolist() == f(x, t).tolist()
    for act in (f, step, step):
        with pytest.raises(DTypeError, match="wanted ints from"):
            act(x, outside)
    assert step(x, 4).tolist() == f(x, 4).tolist()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: mg.variable([t, 2 * t]),
        lambda x, t: mg.add(x, [t, t + t]),
        lambda x, t: mg.variable([[t, 1], (2, t)]),
        lambda x, t: mg.arange(0, 2, t),
        lambda x, t: mg.stack([x, mg.variable([t, 1])]),
    ],
)
@pytest.mark.parametrize("kind", [float, int, np.float32, np.float64, np.int32])
def test_in_a_list_it_has_the_dtype_of_the_number(f, kind):
    step, x = mg.compile(f), mg.variable([1.0, 2.0])
    for t in map(kind, (1, 2, 3)):
        got, want = step(x, t), f(x, t)
        assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())


def test_number_that_is_kept_is_compared_by_value():
    kept, x = [], mg.ones((1,))

    def f(x, t):
        kept.append(t * 1)
        return x * t

    step = mg.compile(f)
    for t in (0.5, 0.25, 0.125, 0.5):
        assert step(x, t).item() == t
    for t in kept:  # what traces left there computes as the number that it was
        assert isinstance(t, float)
        assert (x * t).item() == (1.0 + x * t - 1.0).item() == mg.full((), t).item() == t


def test_numbers_in_trees_and_by_keyword():
    @mg.compile
    def step(x, weights, *more, rate, **others):
        return x * weights["a"][1] + more[0] * rate + others["b"]["c"]

    x = mg.ones((1,))
    for k in range(8):
        got = step(x, {"a": [0, k / 2]}, k + 1, rate=0.1 * k, b={"c": -k})
        assert got.item() == pytest.approx(k / 2 + (k + 1) * 0.1 * k - k, abs=1e-5)
    assert len(step.traces) == 2


def test_bools_are_no_numbers():
    step, x = mg.compile(lambda x, flag: x * 2 if flag else x), mg.ones((1,))
    for flag in (True, False, True, False):
        assert step(x, flag).item() == 1 + flag
    assert len(step.traces) == 2


def test_gradients_flow_and_numbers_are_saved_for_backward():
    w = mg.variable([1.0, 2.0], requires_grad=True)

    def f(t, u):
        loss = ((w * t) ** u).sum() + (w / t).sum()
        loss.backward()
        gradient, w.grad = w.grad.detach(), None
        return loss.detach(), gradient

    step = mg.compile(f)
    for k in range(6):
        same(f(0.5 + k, 1.5 + k / 10), step(0.5 + k, 1.5 + k / 10), "float32")
    assert len(step.traces) == 2


def test_two_compiled_functions_and_copies_keep_their_numbers_apart():
    step = mg.compile(lambda x, t: x * t)
    x = mg.ones((1,))
    for k in range(4):
        step(x, 0.1 * k)
    other = copy.copy(step)
    for k in range(4):
        assert other(x, 2.0 * k).item() == 2.0 * k
        assert step(x, 3.0 * k).item() == 3.0 * k


def test_numbers_that_a_loop_finds_in_a_list_are_frozen_and_a_change_raises():
    scale = [1.0]
    step = mg.compile(lambda x, t: x * sum(scale) * t)
    x = mg.ones((1,))
    for t in (0.1, 0.2):
        step(x, t)
    scale[0] = 2.0
    with pytest.raises(TraceError, match="was frozen then"):
        step(x, 0.3)


def test_backward_of_an_earlier_call_has_the_number_of_that_call():
    w = mg.variable([1.0, 2.0], requires_grad=True)
    step = mg.compile(lambda x, t: (x * w * t).sum())
    x = mg.ones(2)
    for t in FLOATS:
        step(x, t)
    first, second = step(x, 2.0), step(x, 3.0)
    first.backward()
    assert w.grad.tolist() == [2.0, 2.0]
    second.backward()
    assert w.grad.tolist() == [5.0, 5.0]
