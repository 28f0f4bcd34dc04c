"""Clones, views, detached values, exports: who shares bytes with whom, and until when."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import errors
from minigrad.memory.monitor import pool_of


def used():
    return pool_of("cpu").current_bytes


def test_clones_of_clones_share_until_each_is_written():
    a = mg.ones((100,))
    before = used()
    clones = [a.clone() for _ in range(5)]
    assert used() == before
    assert a.refcount == 6
    for k, c in enumerate(clones):
        c.add_(float(k))
    assert a.refcount == 1
    assert [c.tolist()[0] for c in clones] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert a.tolist() == [1.0] * 100


def test_the_last_owner_writes_without_a_copy():
    a = mg.ones((100,))
    b = a.clone()
    address = a.data_ptr()
    b.add_(1.0)
    a.add_(1.0)
    assert a.data_ptr() == address
    c = a.clone()
    del c
    a.add_(1.0)
    assert a.data_ptr() == address


def test_a_clone_starts_at_version_0_and_does_not_follow():
    a = mg.ones((4,))
    a.add_(1.0)
    b = a.clone()
    assert (a.version, b.version) == (1, 0)
    a.add_(1.0)
    assert (a.version, b.version) == (2, 0)


def test_a_clone_of_a_small_view_copies_at_once():
    a = mg.ones((1000,))
    b = a[:10].clone()
    assert b.refcount == a.refcount == 1
    assert not mg.memory.is_alias(a, b)


def test_writes_through_a_view_or_a_detached_value_unshare_the_clone():
    for show in (lambda x: x.reshape(2, 2), lambda x: x.detach(), lambda x: x[1:3]):
        a = mg.ones((4,))
        b = a.clone()
        show(a).add_(1.0)
        assert b.tolist() == [1.0] * 4
        assert a.sum().item() > 4.0
        assert mg.memory.shares_storage(a, show(a))


def test_a_numpy_view_follows_its_variable_and_pins_it():
    a = mg.ones((4,))
    b = a.clone()
    view = a.numpy()
    assert a.data_ptr() != b.data_ptr() or a.refcount == 1  # exported bytes are not shared
    a.add_(1.0)
    assert view.tolist() == [2.0] * 4
    assert b.tolist() == [1.0] * 4
    c = a.clone()
    assert c.data_ptr() != a.data_ptr()
    del view
    gc.collect()
    d = a.clone()
    assert d.data_ptr() == a.data_ptr()


def test_a_numpy_view_keeps_the_bytes_alive():
    view = mg.arange(5).numpy()
    mg.zeros((5,), dtype="int64")
    assert view.tolist() == [0, 1, 2, 3, 4]


def test_from_numpy_shares_and_saves_copies():
    data = np.array([1.0, 2.0])
    x = mg.from_numpy(data)
    w = mg.variable([3.0, 4.0], dtype="float64", requires_grad=True)
    y = (w * x).sum()
    data[:] = 100.0
    assert x.tolist() == [100.0, 100.0]
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_from_numpy_in_a_custom_function_is_saved_as_a_copy():
    class Times(mg.Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.save_for_backward(x)
            return w * x

        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved[0], None

    data = np.array([1.0, 2.0])
    w = mg.variable([3.0, 4.0], dtype="float64", requires_grad=True)
    y = Times.apply(w, mg.from_numpy(data)).sum()
    data[:] = 100.0
    y.backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_copy_on_saved_write_costs_bytes_only_for_writes():
    x = mg.ones((1000,), requires_grad=True)
    with mg.memory.copy_on_saved_write():
        before = used()
        y = (x * x.detach()).sum()
        saved = used() - before
        with mg.no_grad():
            x.mul_(2.0)
        assert used() - before >= saved + x.nbytes
        with mg.no_grad():
            x.mul_(2.0)
            after = used()
            x.mul_(2.0)
        assert used() == after
    y.backward()
    assert x.grad.tolist() == [1.0] * 1000


def test_copy_on_saved_write_holds_for_outputs_views_and_functions():
    class Cube(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            return dy * 3.0 * ctx.saved[0] * ctx.saved[0]

    x = mg.variable([[1.0, 2.0]], dtype="float64", requires_grad=True)
    with mg.memory.copy_on_saved_write():
        e = x.exp()
        f = x.T * x.T
        g = Cube.apply(x)
        y = e.sum() + f.sum() + g.sum()
        with mg.no_grad():
            e.zero_()
            x.fill_(-5.0)
    y.backward()
    v = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(x.grad.numpy(), np.exp(v) + 2 * v + 3 * v**2)


class Cube(mg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        return dy * 3.0 * ctx.saved[0] * ctx.saved[0]


def by_no_grad(w):
    with mg.no_grad():
        w.fill_(5.0)


def by_a_step(w):
    w.grad = mg.ones_like(w)
    mg.optim.SGD([w], learning_rate=7.0).step()


def by_an_alias(w):
    w.detach().mul_(3.0)


@pytest.mark.parametrize("write", [by_no_grad, by_a_step, by_an_alias])
@pytest.mark.parametrize("cube", [lambda w: w * w * w, lambda w: w @ w @ w, Cube.apply])
def test_gradients_of_every_order_are_those_of_the_saved_values(cube, write):
    w = mg.nn.Parameter(np.array([[2.0]]))
    with mg.memory.copy_on_saved_write():
        g = cube(w)
    write(w)
    for wanted in (12.0, 12.0, 6.0):
        (g,) = mg.gradients(g.sum(), [w], create_graph=True)
        assert g.item() == wanted


def test_a_compiled_step_differentiates_saved_values_to_every_order():
    @mg.compile
    def step(x):
        with mg.memory.copy_on_saved_write():
            y = x * x * x
            by_no_grad(x)
        (first,) = mg.gradients(y.sum(), [x], create_graph=True)
        return first, mg.gradients(first.sum(), [x])[0]

    for _ in range(2):
        x = mg.variable([2.0], requires_grad=True)
        assert [g.item() for g in step(x)] == [12.0, 12.0]


def test_copies_of_a_leaf_that_are_saved_without_it_hold_to_every_order():
    x = mg.variable([2.0], requires_grad=True)
    y = x.detach()
    y /= x  # 2 / x, and x shows the quotient from now on
    z = mg.from_numpy(values := np.array([2.0]))
    z.requires_grad = True
    cube = z * z * z
    values[0] = 7.0
    for g, leaf, wanted in ((y, x, (-0.5, 0.5)), (cube, z, (12.0, 12.0))):
        for order in wanted:
            (g,) = mg.gradients(g.sum(), [leaf], create_graph=True)
            assert g.item() == order


def test_without_it_the_same_program_raises():
    x = mg.variable([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = y.sum()
    with mg.no_grad():
        y.zero_()
    with pytest.raises(errors.SavedValueModifiedError):
        z.backward()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_random_clones_views_and_writes_agree_with_numpy(steps):
    """Against a model in which clone() copies at once."""
    mine = [mg.variable(np.arange(6.0).reshape(2, 3))]
    model = [np.arange(6.0).reshape(2, 3)]
    for k, (what, i, j) in enumerate(steps):
        x, m = mine[i % len(mine)], model[i % len(model)]
        if what == 0:
            mine.append(x.clone())
            model.append(m.copy())
        elif what == 1:
            mine.append(x.T)
            model.append(m.T)
        elif what == 2:
            mine.append(x.detach())
            model.append(m)
        elif what == 3:
            row = j % m.shape[0]
            x[row] = float(k)
            m[row] = float(k)
        elif what == 4:
            x.add_(1.0)
            m += 1.0
        elif len(mine) > 1:
            del mine[i % len(mine)], model[i % len(model)]
    for x, m in zip(mine, model, strict=True):
        np.testing.assert_array_equal(x.detach().numpy(), m)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_is_alias_is_exact_for_slices_of_one_axis(data):
    n = data.draw(st.integers(1, 12))
    x = mg.arange(n)
    bound = st.integers(-n, n)
    step = st.integers(-3, 3).filter(bool)
    slices = [slice(data.draw(bound), data.draw(bound), data.draw(step)) for _ in range(2)]
    places = [set(np.arange(n)[s].tolist()) for s in slices]
    assert mg.memory.is_alias(x[slices[0]], x[slices[1]]) == bool(places[0] & places[1])
