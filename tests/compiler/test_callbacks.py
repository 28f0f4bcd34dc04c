"""Custom Functions that need numbers, and kernels of one's own, inside compiled steps."""

import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import RetraceWarning, ShapeError, TraceError


def floats(*shape, seed=0, **kwargs):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"), **kwargs)


class Softplus(mg.Function):
    """By NumPy, both ways; counts its calls."""

    calls = []

    @staticmethod
    def forward(ctx, x, scale):
        Softplus.calls.append("forward")
        ctx.scale = scale
        ctx.save_for_backward(x)
        return mg.variable(np.log1p(np.exp(scale * x.numpy())) / np.float32(scale))

    @staticmethod
    def backward(ctx, dy):
        Softplus.calls.append("backward")
        (x,) = ctx.saved
        return mg.variable(dy.numpy() / (1.0 + np.exp(-ctx.scale * x.numpy()))), None


def equal(a, b):
    np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)


def trained(compile, kind="step", calls=6):
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    optimizer = optim.Adam(model, learning_rate=0.05)

    def loss_of(x, y):
        return mg.cross_entropy(model[1](Softplus.apply(model[0](x), 2.0)), y)

    def step(x, y):
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if kind == "step":
        step = compile(step)
    else:
        loss_of = compile(loss_of)
    losses = []
    for k in range(calls):
        losses.append(step(floats(10, 6, seed=k), mg.variable(np.arange(10) % 3)).item())
    return losses, (step if kind == "step" else loss_of)


@pytest.mark.parametrize("kind", ["step", "loss"])
def test_a_function_over_numpy(kind):
    Softplus.calls.clear()
    wanted, _ = trained(lambda f: f, kind)
    eager = list(Softplus.calls)
    Softplus.calls.clear()
    found, step = trained(mg.compile, kind)
    equal(wanted, found)
    for name in ("forward", "backward"):
        traced = 4 if name == "forward" else 0  # until numbers are needed, at calls 1, 2, 3 and 5
        assert Softplus.calls.count(name) == eager.count(name) + traced
    text = str(step.report())
    assert "calls back into Python" in text
    assert "Softplus.forward" in text


def test_only_backward_needs_numbers():
    class Clipped(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x * 2.0)
            ctx.limit = 0.5
            return x * 3.0

        @staticmethod
        def backward(ctx, dy):
            x, double = ctx.saved
            return mg.variable(np.clip(dy.numpy(), -ctx.limit, ctx.limit) * (x + double).numpy())

    w = nn.Parameter([1.0, -2.0, 3.0])
    step = mg.compile(lambda x: (Clipped.apply(w * x).sum() * 2.0).backward())
    for k in range(5):
        x = floats(3, seed=k)
        w.grad = None
        step(x)
        got = w.grad.clone()
        w.grad = None
        (Clipped.apply(w * x).sum() * 2.0).backward()
        equal(w.grad.numpy(), got.numpy())


def test_several_outputs_and_inputs():
    class Split(mg.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.shape = a.shape
            order = np.argsort(a.numpy())
            index = mg.variable(order)
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(index)
            return mg.variable(a.numpy()[order]), index, mg.variable(b.numpy() * 2.0)

        @staticmethod
        def backward(ctx, da, _, db):
            (index,) = ctx.saved
            out = np.zeros(ctx.shape, "f4")
            out[index.numpy()] = da.numpy()
            return mg.variable(out), mg.variable(2.0 * db.numpy())

    def f(a, b, w):
        s, index, d = Split.apply(a, b)
        assert not index.requires_grad
        return (s * w).sum() + (index * w).sum() + d.sum()

    step = mg.compile(f)
    for k in range(4):
        a, b, w = (floats(4, seed=3 * k + n, requires_grad=True) for n in range(3))
        for g in (f, step):
            a.grad = b.grad = w.grad = None
            g(a, b, w).backward()
            if g is f:
                wanted = [x.grad.clone() for x in (a, b, w)]
        for x, y in zip(wanted, (a, b, w), strict=True):
            equal(x.numpy(), y.grad.numpy())


def test_two_calls_before_backward_keep_apart():
    """What forward leaves on ctx is that of the call, whose backward may come later."""
    w = nn.Parameter([1.0, 2.0])
    f = mg.compile(lambda x: Softplus.apply(w * x, 1.0).sum())
    for k in range(4):
        a, b = floats(2, seed=k), floats(2, seed=k + 9)
        w.grad = None
        first, second = f(a), f(b)
        second.backward()
        first.backward(retain_graph=True)
        first.backward()
        got = w.grad.clone()
        w.grad = None
        (2.0 * Softplus.apply(w * a, 1.0).sum() + Softplus.apply(w * b, 1.0).sum()).backward()
        equal(w.grad.numpy(), got.numpy())


def test_other_shapes_are_noted_first():
    f = mg.compile(lambda x: Softplus.apply(x, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RetraceWarning)
        for n in (3, 3, 3, 4, 4, 4, 3, 4):
            x = floats(n, seed=n)
            equal(np.log1p(np.exp(x.numpy())), f(x).numpy())
    assert len(f.traces) == 2


def test_another_shape_than_when_traced_raises():
    class Positive(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return mg.variable(x.numpy()[x.numpy() > 0.0])

    total = mg.zeros(())

    @mg.compile
    def step(x):
        y = Positive.apply(x)
        total.add_(y.sum())
        return y

    x = mg.variable([1.0, -1.0, 2.0])
    for _ in range(3):
        assert step(x).tolist() == [1.0, 2.0]
    with pytest.raises(ShapeError, match=r"Positive\.forward") as caught:
        step(mg.variable([1.0, 1.0, 2.0]))
    assert "(3,)" in str(caught.value)
    assert total.item() == 9.0
    assert total.version == 3
    assert step(x).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_exceptions_come_out_and_what_was_before_is_said(error):
    raising = []

    class Touchy(mg.Function):
        @staticmethod
        def forward(ctx, x):
            x.numpy()
            if raising:
                raise raising[0]
            return mg.variable(x.numpy())

    before, after = mg.zeros(()), mg.zeros(())

    @mg.compile
    def step(x):
        before.add_(1.0)
        y = Touchy.apply(x)
        after.add_(1.0)
        return y * 2.0

    x = mg.ones((3,))
    for _ in range(4):
        assert step(x).tolist() == [2.0] * 3
    raising.append(error)
    with pytest.raises(type(error)) as caught:
        step(x)
    assert caught.value is error
    assert (before.item(), before.version) == (5.0, 5)
    assert (after.item(), after.version) == (4.0, 4)
    assert "before the error" in "".join(getattr(error, "__notes__", []))
    raising.clear()
    assert step(x).tolist() == [2.0] * 3
    assert after.item() == 5.0


def test_order_of_effects():
    order, state = [], mg.zeros((1,))

    class Look(mg.Function):
        @staticmethod
        def forward(ctx, x):
            order.append((x.numpy().item(), state.numpy().item()))
            return mg.variable(x.numpy())

    @mg.compile
    def step(x):
        state.fill_(1.0)
        y = Look.apply(x)
        state.fill_(2.0)
        z = Look.apply(y * 0.0 + 7.0)
        state.fill_(3.0)
        Look.apply(x + 1.0)
        return z

    for k in range(4):
        order.clear()
        state.fill_(0.0)
        step(mg.full((1,), float(k)))
        assert order[-3:] == [(float(k), 1.0), (7.0, 2.0), (k + 1.0, 3.0)]


def test_a_kernel_of_ones_own():
    @mg.kernel
    def cube(x, out):
        for i in range(x.size):
            out.flat[i] = x.flat[i] ** 3

    @cube.gradient
    def cube_gradient(dy, x, dx):
        for i in range(x.size):
            dx.flat[i] = dy.flat[i] * 3 * x.flat[i] ** 2

    w = nn.Parameter([1.0, 2.0])
    step = mg.compile(lambda x: cube(w * x).sum().backward())
    for k in range(5):
        x = floats(2, seed=k)
        w.grad = None
        step(x)
        equal(3.0 * w.numpy() ** 2 * x.numpy() ** 3, w.grad.numpy())
    assert "cube.forward" in str(step.report())


def test_a_function_that_writes_its_input_is_refused():
    class Dirty(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(float(x.numpy().sum()))
            return x

    step = mg.compile(lambda x: Dirty.apply(x * 1.0))
    step(mg.ones((2,)))
    with pytest.raises(TraceError, match="writes to its input"):
        step(mg.ones((2,)))
