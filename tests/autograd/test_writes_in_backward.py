"""Code that is not the engine's runs within a backward pass: what it writes to is never missed."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import errors


def leaf(*values):
    return mg.variable(np.asarray(values, np.float64), requires_grad=True)


class Calls(mg.Function):
    """x * 1, whose backward calls a function first."""

    @staticmethod
    def forward(ctx, x, action):
        ctx.action = action
        return x * 1.0

    @staticmethod
    def backward(ctx, dy):
        ctx.action()
        return dy, None


def by_hook(y, action):
    y = y * 1.0

    def hook(g):
        action()

    y.register_hook(hook)
    return y


def by_function(y, action):
    return Calls.apply(y, action)


WAYS = {
    "hook": by_hook,
    "Function": by_function,
}
PASSES = {
    "backward": lambda loss, x: loss.backward(),
    "retain_graph": lambda loss, x: loss.backward(retain_graph=True),
    "create_graph": lambda loss, x: loss.backward(create_graph=True),
    "gradients": lambda loss, x: mg.gradients(loss, [x]),
    "gradients, create_graph": lambda loss, x: mg.gradients(loss, [x], create_graph=True),
}


def add_one(w):
    with mg.no_grad():
        w += 1.0


def step_of_an_optimizer(w):
    w.grad = mg.variable(np.ones(2))
    mg.optim.SGD([w], learning_rate=0.5).step()
    w.grad = None


def through_numpy(w):
    w.numpy(writable=True)[:] = 7.0


def through_a_view(w):
    w.detach()[0].fill_(3.0)


WRITES = {
    "no_grad": add_one,
    "optimizer": step_of_an_optimizer,
    "numpy": through_numpy,
    "view": through_a_view,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("run", PASSES)
def test_a_write_to_what_a_node_still_needs_raises_and_leaves_gradients(way, run):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = WAYS[way](x * w, lambda: add_one(w))  # x * w saved w, and runs after
    with pytest.raises(errors.SavedValueModifiedError, match=r"version 1, saved at version 0") as e:
        PASSES[run]((y * y).sum(), x)
    assert "mul saved" in str(e.value)
    assert "w += 1.0" in str(e.value)
    assert x.grad is None
    assert w.grad is None


@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_write_is_seen(write):
    x, w = leaf(1.0, 2.0), mg.nn.Parameter(mg.variable(np.array([3.0, 4.0])))
    y = by_hook(x * w, lambda: WRITES[write](w))
    with pytest.raises(errors.SavedValueModifiedError):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("way", WAYS)
def test_spans_check_as_well(way):
    w = mg.nn.Parameter(mg.variable(np.array([3.0, 4.0])))
    manager = mg.GradManager([w])
    with manager:
        y = WAYS[way](w * w, lambda: add_one(w))
        with pytest.raises(errors.SavedValueModifiedError):
            manager.backward(y.sum())
    assert w.grad is None


def test_a_node_that_saved_what_its_own_hook_writes_raises():
    x = leaf(1.0, 2.0)
    y = x * x
    y.register_hook(lambda g: add_one(x))
    with pytest.raises(errors.SavedValueModifiedError):
        y.sum().backward()
    assert x.grad is None


def test_a_write_long_before_the_node_that_needs_the_value():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    for _ in range(50):
        y = y * 2.0
    y = by_hook(y, lambda: add_one(w))
    for _ in range(50):
        y = y * 0.5
    with pytest.raises(errors.SavedValueModifiedError):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("way", WAYS)
def test_a_write_to_what_no_node_needs_any_more_is_fine(way):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = WAYS[way](x * 2.0, lambda: add_one(w)) * w  # w was used before the write
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]
    assert w.grad.tolist() == [2.0, 4.0]


def test_copies_on_saved_writes_make_such_a_write_legal():
    with mg.memory.copy_on_saved_write():
        x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
        by_hook(x * w, lambda: add_one(w)).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert w.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("way", WAYS)
def test_a_backward_within_backward_that_frees_what_the_outer_needs_raises(way):
    x = leaf(1.0, 2.0)
    h = x * x
    inner = h.sum()
    y = WAYS[way](h * 2.0, inner.backward)
    with pytest.raises(errors.GraphFreedError):
        y.sum().backward()


def test_a_gradient_kernel_that_writes_to_what_it_was_given_is_refused():
    @mg.kernel
    def double(x, out):
        out[:] = 2.0 * x

    @double.gradient
    def double_gradient(dy, x, dx):
        dx[:] = 2.0 * dy
        x[:] = 0.0

    w = leaf(1.0, 2.0)
    with pytest.raises(errors.KernelError, match="a write to x"):
        double(w).sum().backward()
    assert w.tolist() == [1.0, 2.0]
    assert w.grad is None


def test_a_compiled_step_raises_as_well():
    w = leaf(3.0, 4.0)

    @mg.compile
    def step(x):
        y = by_hook(x * w, lambda: add_one(w))
        y.sum().backward()
        return x.grad

    for _ in range(3):
        with pytest.raises(errors.SavedValueModifiedError):
            step(leaf(1.0, 2.0))
        assert w.grad is None


# -- the gradient that such code is given --------------------------------------------------------


class TimesTen(mg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 10.0

    @staticmethod
    def backward(ctx, dy):
        dy *= 10.0
        return dy


def times_ten(g):
    with mg.no_grad():
        g *= 10.0


def hooked(y):
    y = y * 1.0
    y.register_hook(times_ten)
    return y


@pytest.mark.parametrize("way", [hooked, TimesTen.apply])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("show", [lambda y: y, lambda y: y.T], ids=["flat", "view"])
def test_a_gradient_that_two_share_is_written_for_one_alone(way, is_first, show):
    """The sum hands one gradient to both of its operands."""
    a, b = leaf([1.0, 2.0], [3.0, 4.0]), leaf([1.0, 2.0], [3.0, 4.0])
    if is_first:
        q, p = b * 1.0, way(a * 1.0)
    else:
        p, q = way(a * 1.0), b * 1.0
    scale = mg.variable(np.array([[1.0, 2.0], [4.0, 5.0]]))
    (show(p + q) * show(scale)).sum().backward()
    assert a.grad.tolist() == [[10.0, 20.0], [40.0, 50.0]]
    assert b.grad.tolist() == [[1.0, 2.0], [4.0, 5.0]]


@pytest.mark.parametrize("way", [hooked, TimesTen.apply])
def test_a_broadcast_gradient_is_written_too(way):
    a, b = leaf([1.0, 2.0], [3.0, 4.0]), leaf([1.0, 2.0], [3.0, 4.0])

    def first_alone(g):
        g[0, 0] = 7.0

    b.register_hook(first_alone)
    (way(a * 1.0) + b).sum().backward()  # each gradient is one number at four places
    assert a.grad.tolist() == [[10.0, 10.0], [10.0, 10.0]]
    assert b.grad.tolist() == [[7.0, 1.0], [1.0, 1.0]]


def test_the_upstream_gradient_of_the_caller_is_not_written():
    a, dy = leaf(1.0, 2.0), mg.variable(np.array([1.0, 2.0]))
    hooked(a).backward(dy)
    assert dy.tolist() == [1.0, 2.0]
    assert a.grad.tolist() == [10.0, 20.0]


def test_a_hook_of_a_leaf_writes_for_its_leaf_alone():
    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    a.register_hook(times_ten)
    ((a + b) * mg.variable(np.array([1.0, 2.0]))).sum().backward()
    assert a.grad.tolist() == [10.0, 20.0]
    assert b.grad.tolist() == [1.0, 2.0]


def test_a_callback_of_a_manager_writes_for_its_parameter_alone():
    a, b = (mg.nn.Parameter(mg.variable(np.array([1.0, 2.0]))) for _ in range(2))
    manager = mg.GradManager([a], [lambda p, g: times_ten(g)])
    manager.attach([b])
    with manager:
        manager.backward(((a + b) * mg.variable(np.array([1.0, 2.0]))).sum())
    assert a.grad.tolist() == [10.0, 20.0]
    assert b.grad.tolist() == [1.0, 2.0]


def test_with_a_graph_of_gradients_too():
    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    p, q = a * a, b * b
    p.register_hook(lambda g: g * 10.0)

    def keep_and_write(g):
        with mg.no_grad():
            g.mul_(10.0)

    q.register_hook(keep_and_write)
    w = leaf(1.0, 2.0)
    first = mg.gradients([((p + q) * w).sum()], [a, b], create_graph=True)
    assert [g.tolist() for g in first] == [[20.0, 80.0], [20.0, 80.0]]
    (second,) = mg.gradients([first[0].sum()], [a])
    assert second.tolist() == [20.0, 40.0]


def test_what_a_hook_returned_and_writes_to_later_does_not_change_the_gradient():
    a, kept = leaf(1.0, 2.0), []

    def replace(g):
        kept.append(g * 1.0)
        return kept[0]

    def write_later(g):
        times_ten(kept[0])

    first = a * 1.0
    first.register_hook(write_later)
    second = first * 1.0
    second.register_hook(replace)
    second.sum().backward()
    assert kept[0].tolist() == [10.0, 10.0]
    assert a.grad.tolist() == [1.0, 1.0]


def test_a_compiled_step_writes_for_one_alone():
    @mg.compile
    def step(a, b):
        p, q = hooked(a * 1.0), TimesTen.apply(b * 1.0)
        r = b * 2.0
        loss = ((p + q + r) * mg.variable([1.0, 2.0]).to("float64")).sum()
        return mg.gradients([loss], [a, b])

    for _ in range(3):
        a, b = step(leaf(1.0, 2.0), leaf(1.0, 2.0))
        assert a.tolist() == [10.0, 20.0]
        assert b.tolist() == [12.0, 24.0]
