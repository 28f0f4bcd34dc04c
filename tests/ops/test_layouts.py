"""Chains of views against NumPy, and exact answers about shared bytes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg


@st.composite
def chains(draw):
    """A shape and functions that act on Variables and ndarrays alike."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    steps, now = [], shape
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["permute", "slice", "reshape", "expand", "flip", "split"]))
        rank = len(now)
        if kind == "permute":
            order = tuple(draw(st.permutations(range(rank))))
            steps.append(("permute", order))
            now = tuple(now[d] for d in order)
        elif kind == "slice":
            items = []
            for n in now:
                edge = st.none() | st.integers(-n, n)
                step = draw(st.sampled_from([None, 1, 2, -1, -2]))
                items.append(slice(draw(edge), draw(edge), step))
            steps.append(("index", tuple(items)))
            now = np.empty(now)[tuple(items)].shape
        elif kind == "reshape":
            size = int(np.prod(now))
            divisors = [n for n in range(1, size + 1) if size % n == 0] or [0]
            first = draw(st.sampled_from(divisors))
            now = (first, size // first if first else 3)
            steps.append(("reshape", now))
        elif kind == "expand" and rank < 5:
            now = (draw(st.integers(1, 3)), *now)
            steps.append(("expand", now))
        elif kind == "flip":
            axis = draw(st.integers(0, rank - 1))
            steps.append(("flip", axis))
        elif kind == "split" and now[0] > 1:
            steps.append(("index", slice(1, None)))
            now = (now[0] - 1, *now[1:])
    return shape, steps


def on_numpy(a, steps):
    """The chain on an ndarray."""
    for kind, argument in steps:
        if kind == "permute":
            a = a.transpose(argument)
        elif kind == "index":
            a = a[argument]
        elif kind == "reshape":
            a = a.reshape(argument)
        elif kind == "expand":
            a = np.broadcast_to(a, argument)
        else:
            a = np.flip(a, argument)
    return a


def on_variable(x, steps):
    """The chain on a Variable."""
    for kind, argument in steps:
        if kind == "permute":
            x = x.permute(argument)
        elif kind == "index":
            x = x[argument]
        elif kind == "reshape":
            x = x.reshape(argument)
        elif kind == "expand":
            x = x.expand(argument)
        else:
            x = mg.flip(x, argument)
    return x


@settings(max_examples=250, deadline=None)
@given(chains())
def test_chain_of_views_equals_numpy_forward_and_backward(case):
    shape, steps = case
    a = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    places = on_numpy(np.arange(a.size).reshape(shape), steps)
    x = mg.variable(a, requires_grad=True)
    y = on_variable(x, steps)
    want = on_numpy(a, steps)
    assert y.shape == want.shape
    np.testing.assert_array_equal(y.numpy(), want)
    np.testing.assert_array_equal((y + 1.0).numpy(), want + 1.0)
    np.testing.assert_allclose(mg.sum(y).item(), want.sum())
    dy = np.arange(1.0, want.size + 1).reshape(want.shape)
    y.backward(mg.variable(dy))
    grad = np.bincount(places.reshape(-1), dy.reshape(-1), minlength=a.size).reshape(shape)
    np.testing.assert_allclose(x.grad.numpy(), grad)


@settings(max_examples=200, deadline=None)
@given(chains())
def test_chain_of_views_records_whether_bytes_are_shared(case):
    shape, steps = case
    x = mg.zeros(shape)
    y = on_variable(x, steps)
    if y.size and mg.memory.shares_storage(x, y):
        before = x.numpy().copy()
        with mg.no_grad():
            x += 1.0
        assert (y.numpy() == 1.0).all(), "a view shows what is written to its base"
        assert (before == 0.0).all()


slices = st.tuples(st.integers(0, 11), st.integers(0, 12), st.sampled_from([1, 2, 3, -1, -2, 5]))


def bounded(case):
    """A slice from a low, a high and a step."""
    a, b, step = case
    low, high = min(a, b), max(a, b)
    return slice(low, high, step) if step > 0 else slice(high, low - 1 if low else None, step)


@settings(max_examples=300, deadline=None)
@given(slices, slices)
def test_is_alias_is_exact_in_one_dimension(first, second):
    x = mg.zeros((12,))
    a, b = x[bounded(first)], x[bounded(second)]
    places = [set(np.arange(12)[bounded(s)]) for s in (first, second)]
    assert mg.memory.is_alias(a, b) == bool(places[0] & places[1])


@settings(max_examples=300, deadline=None)
@given(slices, slices, slices, slices, st.booleans())
def test_is_alias_is_exact_in_two_dimensions(r1, c1, r2, c2, is_transposed):
    x, n = mg.zeros((12, 12)), np.arange(144).reshape(12, 12)
    first = bounded(r1), bounded(c1)
    second = bounded(r2), bounded(c2)
    a, b = x[first], (x.T if is_transposed else x)[second]
    places = set(n[first].flat) & set((n.T if is_transposed else n)[second].flat)
    assert mg.memory.is_alias(a, b) == bool(places)


def test_is_alias_of_interleaved_columns_is_false_and_of_a_clone_true_until_written():
    x = mg.zeros((4, 4))
    assert not mg.memory.is_alias(x[:, ::2], x[:, 1::2])
    assert mg.memory.is_alias(x[:, ::2], x[1])
    y = x.clone()
    y += 1.0
    assert not mg.memory.is_alias(x, y)
