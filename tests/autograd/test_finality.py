"""`backward_telling`: which gradients are complete, while the pass runs."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors
from minigrad.tape.backward import backward_telling


def ones(y):
    return mg.ones(y.shape, dtype=y.dtype)


def tell(y):
    """Return [(leaf, its gradient)] as they are told, after the pass."""
    told = []
    backward_telling(y, ones(y), lambda leaf, g: told.append((leaf, mg.Variable(g).numpy().copy())))
    return told


@pytest.mark.parametrize("is_observed", [False, True])
def test_each_leaf_is_told_once_with_the_gradient_that_it_gets(is_observed):
    a, b, c = (mg.variable([2.0, 3.0], requires_grad=True) for _ in range(3))
    y = ((a * b).tanh() * a + (c + c) * c).sum()
    if is_observed:
        with mg.debug.detect_anomaly():
            told = tell(y)
    else:
        told = tell(y)
    assert {id(leaf) for leaf, _ in told} == {id(a), id(b), id(c)}
    assert len(told) == 3
    for leaf, g in told:
        np.testing.assert_array_equal(g, leaf.grad.numpy())


def test_a_leaf_is_told_before_the_nodes_behind_it_go_backward():
    first, last = (mg.variable([2.0], requires_grad=True) for _ in range(2))
    events = []
    hidden = first * 3.0
    hidden.register_hook(lambda g: events.append("hidden"))
    y = hidden * last
    backward_telling(y, ones(y), lambda leaf, g: events.append(leaf))
    assert [e if e == "hidden" else {id(first): 1, id(last): 2}[id(e)] for e in events] == [
        2,
        "hidden",
        1,
    ]


def test_a_leaf_with_hooks_and_one_without_a_gradient_are_left_out():
    a, b, c = (mg.variable([2.0], requires_grad=True) for _ in range(3))
    a.register_hook(lambda g: g * 10.0)
    y = a * b + c.detach() * b
    assert [id(leaf) for leaf, _ in tell(y)] == [id(b)]
    assert (a.grad.tolist(), c.grad) == ([20.0], None)


def test_an_error_of_the_callback_leaves_every_gradient():
    a, b = (mg.variable([2.0], requires_grad=True) for _ in range(2))
    y = (a * b) * b
    with pytest.raises(ZeroDivisionError):
        backward_telling(y, ones(y), lambda leaf, g: 1 / 0)
    assert a.grad is b.grad is None


def test_a_graph_that_was_freed_inside_is_named_as_ever():
    a, b = (mg.variable([2.0], requires_grad=True) for _ in range(2))
    inner = a.exp()
    y, other = inner * b, inner.sum()
    freed = []

    def free(leaf, g):
        if not freed:
            freed.append(leaf)
            other.backward()  # it frees what exp saved

    with pytest.raises(errors.GraphFreedError, match="freed what exp saved"):
        backward_telling(y, ones(y), free)
