"""A check that fails in the middle of a program: what is as it was, and what the error says."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import BoundsError, NonFiniteError

TABLE = mg.variable([1.0, 2.0, 3.0])
ROWS = mg.variable([[1.0, 2.0]] * 2)


def fails(step, *args):
    """The text of the BoundsError that a call raises."""
    with pytest.raises(BoundsError) as caught:
        step(*args)
    return str(caught.value)


@pytest.mark.parametrize("where", ["before", "between", "after"])
def test_gradients_are_those_that_eager_execution_leaves(where):
    found = []
    for compile in (lambda f: f, mg.compile):
        w = nn.Parameter(np.ones(40, "f4"))

        def step(x, i, w=w):
            y = (w * w * x).sum()
            if where == "before":
                y = y + TABLE[(y * 0.0 + i).to("int64")].sum() * 0.0
            w.grad = None
            if where == "between":
                y = y + TABLE[(y * 0.0 + i).to("int64")].sum() * 0.0
            y.backward()
            if where == "after":
                y = y.detach() + TABLE[(y.detach() * 0.0 + i).to("int64")].sum()
            return y.detach()

        step = compile(step)
        for k in range(5):
            step(mg.full((40,), 1.0 + k), mg.variable([0.0]))
        fails(step, mg.full((40,), 100.0), mg.variable([7.0]))
        found.append(None if w.grad is None else w.grad.tolist()[0])
        step(mg.full((40,), 3.0), mg.variable([0.0]))
        assert w.grad.tolist() == [6.0] * 40
    assert found[0] == found[1]


def test_a_gradient_that_was_added_to_is_named():
    w = nn.Parameter([1.0, 2.0], name="weight")

    @mg.compile
    def step(i):
        (w * 2.0).sum().backward()  # here
        return TABLE[(w.grad * 0.0 + i).to("int64")]

    for _ in range(4):
        step(mg.variable([0.0]))
    version = w.grad.version
    text = fails(step, mg.variable([7.0]))
    assert "updated before: the gradient of 'weight', by backward at test_failures.py" in text
    assert "as they were: all other arrays and gradients" in text
    assert (w.grad.tolist(), w.grad.version) == ([10.0, 10.0], version + 1)


def test_a_gradient_that_was_half_written_is_none_and_that_is_said():
    w, h = nn.Parameter([1.0, 2.0], name="weight"), mg.zeros((2,))

    @mg.compile
    def step(i):
        h.add_(1.0)
        w.grad = None
        (w * h).sum().backward()
        return TABLE[(w.grad * 0.0 + i).to("int64")]

    for _ in range(4):
        step(mg.variable([0.0]))
    text = fails(step, mg.variable([7.0]))
    assert "the gradient of 'weight', None now" in text
    assert "as they were: all other arrays and gradients" in text
    assert w.grad is None
    assert h.tolist() == [5.0, 5.0]


def test_a_gradient_that_nothing_wrote_keeps_its_version():
    w, h = nn.Parameter([1.0, 2.0]), mg.zeros((2,))

    @mg.compile
    def step(i):
        h.add_(1.0)
        y = TABLE[(h * 0.0 + i).to("int64")]
        (w * y).sum().backward()

    for _ in range(4):
        step(mg.variable([0.0]))
    before = w.grad.tolist(), w.grad.version
    text = fails(step, mg.variable([7.0]))
    assert "every .grad" in text
    assert "gradient of" not in text
    assert (w.grad.tolist(), w.grad.version) == before


def test_gradients_of_a_manager_are_named():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    manager = mg.GradManager(model.parameters())

    @mg.compile
    def step(x):
        with manager:
            manager.backward(model(x).sum())
        optim.clip_grad_norm_(model, 1.0)

    for _ in range(4):
        step(mg.ones((3, 2)))
    with pytest.raises(NonFiniteError) as caught:
        step(mg.full((3, 2), float("nan")))
    text = str(caught.value)
    assert "the gradients of '0.weight', '0.bias', '2.weight' and 1 more, by backward" in text
    assert "every .grad" not in text


CHECKS = {
    "index": lambda i: TABLE[i],
    "gather": lambda i: mg.gather(TABLE, i, 0),
    "embedding": lambda i: mg.embedding(ROWS, i),
    "one_hot": lambda i: mg.one_hot(i, 2),
    "cross_entropy": lambda i: mg.cross_entropy(ROWS, i),
}


@pytest.mark.parametrize("name", CHECKS)
def test_after_a_write_the_error_names_the_operation(name):
    h = mg.zeros((2,))

    @mg.compile
    def step(i):
        h.add_(1.0)
        return CHECKS[name]((h * 0.0 + i).to("int64"))

    for _ in range(4):
        step(mg.variable([0.0, 1.0]))
    text = fails(step, mg.variable([0.0, 7.0]))
    assert text.startswith(f"{name}: wanted")
    assert "updated before: 'h'" in text or "updated before: 'float32[2] of add_'" in text
