"""What people type, and what they meet: never a bare error of Python, NumPy or Numba.

Each message says what was wanted, what came, on which line of theirs, and the form that works.
"""

import functools
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors, hints, nn, optim
from minigrad.left_out import LEFT_OUT

X = mg.variable([1.0, 2.0, 3.0])
LEAF = mg.variable([1.0, 2.0], requires_grad=True)


def parameter():
    return nn.Parameter([1.0])


def added_to(y):
    y[0] += 1


def moved():
    y = LEAF * 2
    y[0] += 1


CALLS = {  # as people type it: (call, what the advice has to show)
    "np.sin(v)": (lambda: np.sin(X), "mg.sin(x)"),
    "np.arctan2(v, 1)": (lambda: np.arctan2(X, 1.0), "mg.atan2(x, y)"),
    "np.hypot(v, v)": (lambda: np.hypot(X, X), "np.hypot(x.detach().numpy())"),
    "x.size(0)": (lambda: X.size(0), "x.shape[0]"),
    "x.size()": (lambda: X.size(), "x.shape"),
    "y[0] += 1 of a result": (moved, "x[i] = x[i] + y"),
    "y[0] += 1 of a leaf": (lambda: added_to(LEAF), "write inside `with mg.no_grad():`"),
    "nn.Linear(4)": (lambda: nn.Linear(4), "Linear(inputs, outputs, bias=True"),
    "nn.Linear()": (lambda: nn.Linear(), "Linear(inputs, outputs"),
    "nn.Linear(1, 2, True, 'float32', 5)": (
        lambda: nn.Linear(1, 2, True, "float32", 5), "too many positional arguments",
    ),
    "nn.ReLU(x)": (lambda: nn.ReLU(X), "layer = ReLU(...), y = layer(x)"),
    "nn.Parameter()": (lambda: nn.Parameter(), "Parameter(data"),
    "mg.no_grad(x)": (lambda: mg.no_grad(X), "x.detach()"),
    "@mg.no_grad": (lambda: mg.no_grad(moved), "@mg.no_grad()"),
    "mg.enable_grad(x)": (lambda: mg.enable_grad(X), "above a function"),
    "mg.device()": (lambda: mg.device(), "device(name)"),
    "mg.log(x, 2)": (lambda: mg.log(X, 2), "mg.log2(x)"),
    "x.log(2)": (lambda: X.log(2), "math.log(base)"),
    "mg.exp()": (lambda: mg.exp(), "mg.exp(x)"),
    "mg.matmul(x)": (lambda: mg.matmul(X), "matmul(a, b)"),
    "mg.linear(x)": (lambda: mg.linear(X), "linear(x, w, b=None)"),
    "pow(x, 2, 3)": (lambda: pow(X, 2, 3), "modulo n"),
    "x.to('int8')": (lambda: X.to("int8"), "there is no int8"),
    "mg.zeros((-1,))": (lambda: mg.zeros((-1,)), "zeros((n, ...))"),
    "mg.ones((2, -1))": (lambda: mg.ones((2, -1)), "x.reshape"),
    "mg.randn((-1,))": (lambda: mg.randn((-1,)), "randn((n, ...))"),
    "mg.variable([1.5], 'int64')": (lambda: mg.variable([1.5], "int64"), ".to('int64')"),
    "mg.variable(2.5, 'uint8')": (lambda: mg.variable(2.5, "uint8"), ".to('uint8')"),
    "mg.full((2,), 1.5, 'int64')": (lambda: mg.full((2,), 1.5, "int64"), ".to('int64')"),
    "x.item(0)": (lambda: X.item(0), "x[0].item()"),
    "x.tolist(1)": (lambda: X.tolist(1), "tolist"),
    "x.clone(1)": (lambda: X.clone(1), "clone()"),
    "x.detach(1)": (lambda: X.detach(1), "detach()"),
    "optimizer.step(closure)": (lambda: optim.SGD([parameter()]).step(moved), "loss.backward()"),
    "optimizer.zero_grad(True)": (
        lambda: optim.SGD([parameter()]).zero_grad(True), "optimizer.zero_grad()",
    ),
    "optim.StepDecay()": (lambda: optim.StepDecay(), "StepDecay(optimizer, every"),
    "optim.LambdaSchedule(optimizer)": (
        lambda: optim.LambdaSchedule(optim.SGD([parameter()])), "function",
    ),
    "mg.grad(f)(a) of two": (lambda: mg.grad(lambda a, b: a * b)(X), "missing 1 required"),
    "mg.vjp()": (lambda: mg.vjp(), "vjp(f, *args)"),
    "mg.value_and_grad()": (lambda: mg.value_and_grad(), "value_and_grad(f"),
    "mg.hessian()": (lambda: mg.hessian(), "hessian(f"),
    "mg.from_numpy()": (lambda: mg.from_numpy(), "from_numpy(array"),
    "mg.set_default_device()": (lambda: mg.set_default_device(), "set_default_device(device)"),
    "mg.is_recording(1)": (lambda: mg.is_recording(1), "is_recording()"),
    "mg.data.load_digits(1)": (lambda: mg.data.load_digits(1), "load_digits()"),
    "mg.data.batches(x, y, 32)": (
        lambda: mg.data.batches(np.zeros(3), np.zeros(3), 32), "batch_size=32",
    ),
    "model.load_state_dict()": (lambda: nn.Linear(2, 2).load_state_dict(), "values, strict"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_call_that_does_not_fit_says_what_does(name):
    call, shown = CALLS[name]
    with pytest.raises(errors.MinigradError) as caught:
        call()
    text = str(caught.value)
    assert shown in text
    assert "where: test_typed.py:" in text
    assert not re.search(r"\bself[,)]", text)


def test_forms_of_the_advice_work():
    y = LEAF * 2
    y[0] = y[0] + 1
    y.sum().backward()
    assert (y.tolist(), LEAF.grad.tolist()) == ([3.0, 4.0], [2.0, 2.0])
    LEAF.grad = None
    with mg.no_grad():
        LEAF[0] += 1
        LEAF[0] -= 1
    ints = mg.variable([1, 2])
    ints[0] += 1
    assert ints.tolist() == [2, 2]
    assert mg.variable([1.5, -1.5]).to("int64").tolist() == [1, -1]
    assert mg.variable([1.0, 2.0], "int64").tolist() == [1, 2]
    assert mg.variable(np.array([1.5]), "int64").tolist() == [1]  # an array is converted, as astype


def test_size_is_an_int_in_all_that_takes_one():
    n = X.size
    assert (n, repr(n), n + 1, type(n + 1)) == (3, "3", 4, int)
    assert (X / n).tolist() == (X / 3).tolist()
    assert (mg.variable([1, 2]) * n).tolist() == [3, 6]
    assert (mg.full((2,), n).dtype, mg.variable(n).dtype) == (mg.int64, mg.int64)
    assert mg.zeros((n,)).shape == (3,)
    assert X[n - 1].item() == 3.0
    assert X.reshape(n).shape == X.reshape((n,)).shape == (3,)
    step = mg.compile(lambda x, n: x * n + x.size)
    for x in (X, mg.ones((4,)), X):
        assert step(x, x.size).tolist() == (x * x.size + x.size).tolist()


def test_a_user_function_that_raises_inside_keeps_its_own_error():
    def f(x):
        return x + len(3)

    with pytest.raises(TypeError, match="has no len") as caught:
        mg.grad(f)(X)
    assert not isinstance(caught.value, errors.MinigradError)

    class Broken(nn.Module):
        def __init__(self, n):
            self.n = len(n)

    with pytest.raises(TypeError, match="has no len") as caught:
        Broken(3)
    assert not isinstance(caught.value, errors.MinigradError)


# -- names that stay out --------------------------------------------------------------------------

HOMES = {
    "mg": mg, "mg.nn": nn, "mg.optim": optim, "mg.random": mg.random, "mg.linalg": mg.linalg,
    "Variable": X,
}  # fmt: skip
NAMES = [(place, name) for place, names in LEFT_OUT.items() for name in names]


@pytest.mark.parametrize(("place", "name"), NAMES)
def test_name_that_stays_out_says_what_to_write(place, name):
    with pytest.raises(AttributeError, match=re.escape(LEFT_OUT[place][name])):
        getattr(HOMES[place], name)


def test_names_are_in_one_table_only_and_the_advice_names_what_there_is():
    for place, name in NAMES:
        assert name not in hints.NAMES.get(place, {}), (place, name)
        for path in re.findall(r"\bmg((?:\.[a-zA-Z_]\w*)+)", LEFT_OUT[place][name]):
            functools.reduce(getattr, path[1:].split("."), mg)


P = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], "f4")
A = np.array([[4.0, 1.0], [1.0, 3.0]], "f4")
VALUES = {  # advice of one expression: what it gives for x, a, b, n, ...
    ("mg", "kl_div"): lambda: (P * (np.log(P) - np.log(P[::-1]))).sum(-1).mean(),
    ("mg", "cosine_similarity"): lambda: (
        (P * P[::-1]).sum(-1) / np.linalg.norm(P, axis=-1) / np.linalg.norm(P[::-1], axis=-1)
    ),
    ("mg", "inverse"): lambda: np.linalg.inv(A),
    ("mg", "cosh"): lambda: np.cosh(P),
    ("mg", "diff"): lambda: np.diff(P, axis=0),
    ("mg", "acos"): lambda: np.arccos(P),
    ("mg", "asin"): lambda: np.arcsin(P),
    ("mg", "atan"): lambda: np.arctan(P),
    ("mg", "cdist"): lambda: np.linalg.norm(P[:, None] - P[::-1][None], axis=-1),
    ("mg", "logaddexp"): lambda: np.logaddexp(P, P[::-1]),
    ("mg", "trunc"): lambda: np.trunc(P),
    ("mg", "exp2"): lambda: np.exp2(P),
    ("mg", "frac"): lambda: P - np.floor(P),
    ("mg", "xlogy"): lambda: P * np.log(P[::-1]),
    ("mg", "nansum"): lambda: P.sum(),
    ("mg.linalg", "pinv"): lambda: np.linalg.pinv(A),
}


@pytest.mark.parametrize(("place", "name"), VALUES)
def test_advice_of_one_expression_gives_what_the_name_elsewhere_gives(place, name):
    x, y = mg.variable(P), mg.variable(P[::-1].copy())
    a, b = (mg.variable(A), y) if name in ("inverse", "pinv") else (x, y)
    names = {"mg": mg, "x": x, "y": y, "a": a, "b": b, "p": x, "log_q": mg.log(y), "n": 2, "m": 2}
    got = eval(LEFT_OUT[place][name], names)
    np.testing.assert_allclose(got.numpy(), VALUES[place, name](), 1e-5, 1e-6)


def test_advice_for_lstm_and_gru_is_that_of_their_papers():
    x, size = mg.randn((5, 3, 2)), 4
    h = c = mg.zeros((5, size))

    class Cell:
        linear = nn.Linear(2 + size, 4 * size)

    names = {"mg": mg, "x": x, "t": 0, "h": h, "c": c, "self": Cell}
    lines = LEFT_OUT["mg.nn"]["LSTM"].partition(": ")[2]
    exec(lines, names)
    i, _, g, o = np.split(Cell.linear(mg.concatenate([x[:, 0], h], 1)).detach().numpy(), 4, 1)
    wanted = 1 / (1 + np.exp(-o)) * np.tanh(1 / (1 + np.exp(-i)) * np.tanh(g))
    np.testing.assert_allclose(names["h"].detach().numpy(), wanted, 1e-5, 1e-6)
    Cell.gates, Cell.linear = nn.Linear(2 + size, 2 * size), nn.Linear(2 + size, size)
    exec(LEFT_OUT["mg.nn"]["GRU"].partition(": ")[2], names)
    assert names["h"].shape == (5, size)
