"""Results of elementwise operations lie in memory as their operands do."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.array.layout import contiguous_strides

SHAPE = (20, 30, 40)
ORDERS = [(0, 2, 1), (1, 2, 0), (2, 1, 0)]


def variable_in(a, order):
    """Return a leaf, and the elements of `a` as a view of it: their axes lie in this order."""
    base = mg.variable(a.transpose(order).copy(), requires_grad=True)
    return base, base.permute(tuple(np.argsort(order)))


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape or SHAPE).astype("f4")


PROGRAMS = {
    "number": lambda x, y: x * 2.0,
    "unary": lambda x, y: mg.tanh(x),
    "binary": lambda x, y: x * y,
    "a row": lambda x, y: x * y[0, 0],
    "bools": lambda x, y: mg.where(x > y, x, y),
    "chain": lambda x, y: (x * y + mg.exp(x)) / (1 + y * y),
}


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_copies(name, order):
    a, b, found = drawn(1), drawn(2), []
    for which in ((0, 1, 2), order):
        for _ in range(3):  # slow, recorded, by a route
            (p, x), (q, y) = variable_in(a, which), variable_in(b, which)
            out = PROGRAMS[name](x, y)
            (first,) = mg.gradients((out * out).sum(), [x], create_graph=True)
            second = mg.gradients((first * first).sum(), [p, q])
        back = tuple(np.argsort(which))
        grads = [None if g is None else g.numpy().transpose(back) for g in second]
        found.append([out.numpy(), first.numpy(), *grads])
    rtol = 2e-6 if name == "a row" else 0  # the row's gradient is a sum, in the order of memory
    for one, other in zip(*found, strict=True):
        if one is not None:  # y has no part in it
            np.testing.assert_allclose(one, other, rtol=rtol)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_axes_of_a_result_lie_in_the_order_of_its_operands(order):
    base, x = variable_in(drawn(3), order)
    _, y = variable_in(drawn(4), order)
    for out in (x * 2.0, mg.exp(x), x + y, x > y, x * mg.ones((40,)), x * x.sum()):
        assert out.array.strides == x.array.strides
    (gradient,) = mg.gradients((x * y).sum(), [base])
    assert gradient.array.strides == contiguous_strides(base.shape)


def test_other_layouts_give_c_order():
    x = mg.variable(drawn(5, 80, 90))
    others = [
        x.T + mg.variable(drawn(6, 90, 80)),  # two orders
        mg.flip(x.T, 0) * 2.0,
        x.T[::2] * 2.0,  # gaps
        mg.ones((90, 1)).T.expand(80, 90) * 2.0,
        x[:4, :5].T * 2.0,  # small
    ]
    for out in others:
        assert out.array.is_contiguous


def test_writes_reach_the_result_alone():
    a = drawn(7, 80, 90)
    x = mg.variable(a)
    y = x.T * 1.0
    z = y.clone()
    y += 1.0
    y[3] = 0.0
    wanted = a.T + 1
    wanted[3] = 0
    np.testing.assert_array_equal(y.numpy(), wanted)
    np.testing.assert_array_equal(z.numpy(), a.T)
    np.testing.assert_array_equal(x.numpy(), a)


def test_a_write_before_backward_is_noticed():
    x = mg.variable(drawn(8, 80, 90), requires_grad=True)
    y = mg.exp(x.T)  # its gradient needs y
    loss = (y * 2.0).sum()
    with mg.no_grad():
        y += 1.0
    with pytest.raises(mg.errors.SavedValueModifiedError):
        loss.backward()


@pytest.mark.parametrize("optimizer", [mg.optim.SGD, mg.optim.Adam])
def test_an_optimizer_takes_gradients_of_any_order(optimizer):
    a, found = drawn(9, 80, 90), []
    for turned in (False, True):
        w = mg.nn.Parameter(mg.variable(a.T.copy()).T if turned else mg.variable(a))
        step = optimizer([w], learning_rate=0.1)
        for _ in range(3):
            step.zero_grad()
            (mg.tanh(w) * w).sum().backward()
            step.step()
        found.append(w.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-7)
