"""Compiled functions whose results carry a graph: one node, with a backward program."""

import copy
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import (
    GradientError,
    GraphFreedError,
    SavedValueModifiedError,
    TraceError,
)
from minigrad.tape.node import live_nodes

pytestmark = pytest.mark.usefixtures("interpreted_plans")


def floats(*shape, seed=0, **kwargs):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"), **kwargs)


def leaf(*shape, seed=0):
    return floats(*shape, seed=seed, requires_grad=True)


def equal(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=1e-6)


class TestAsEager:
    def check(self, f, leaves, calls=4, use=None):
        """Gradients of every call are those of the function itself, at the first and the others."""
        use = use or (lambda out: (out * out).sum())
        step = mg.compile(f)
        for _ in range(calls):
            found = []
            for g in (f, step):
                for x in leaves:
                    x.grad = None
                out = g(*leaves)
                loss = use(out)
                loss.backward()
                found.append([loss.detach()] + [x.grad for x in leaves])
            for a, b in zip(*found, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    equal(a, b)
        return step

    def test_arguments_and_parameters(self):
        w = nn.Parameter(np.ones((3, 2), "f4") * 0.3)
        step = mg.compile(lambda x: (x @ w).tanh())
        for k in range(4):
            x = leaf(4, 3, seed=k)
            w.grad = None
            step(x).sum().backward()
            got = x.grad.clone(), w.grad.clone()
            x.grad = w.grad = None
            (x @ w).tanh().sum().backward()
            equal(got[0], x.grad)
            equal(got[1], w.grad)
        assert len(step.traces) == 1

    def test_every_kind_of_use(self):
        a, b = leaf(3, 4), leaf(3, 4, seed=1)
        self.check(lambda a, b: a * b + a.exp(), [a, b])
        self.check(lambda a, b: a, [a, b])
        self.check(lambda a, b: a.T, [a, b])
        self.check(lambda a, b: a + b, [a, b])
        self.check(lambda a, b: a[1:, ::2] * b[0, 0], [a, b])
        self.check(lambda a, b: mg.cumsum(a, 0).sum(axis=1) + b[:, 0], [a, b])

    def test_several_results_used_in_every_way(self):
        a, b = leaf(3), leaf(3, seed=1)

        def f(a, b):
            return {"p": a * b, "q": [a.exp(), 3, (b.detach() * 2.0,)]}

        self.check(f, [a, b], use=lambda out: (out["p"] * out["q"][0]).sum())
        self.check(f, [a, b], use=lambda out: out["p"].sum())
        self.check(f, [a, b], use=lambda out: out["q"][0].sum())  # b has no gradient then
        self.check(f, [a, b], use=lambda out: (out["p"] + out["p"] * out["q"][2][0]).sum())

    def test_two_of_three_results(self):
        a, b, c = leaf(3), leaf(3, seed=1), leaf(3, seed=2)
        use = lambda out: (out[0] * out[2]).sum()  # noqa: E731
        self.check(lambda a, b, c: (a * b, c.exp(), a.tanh()), [a, b, c], use=use)

    def test_one_variable_twice_and_without_its_graph(self):
        def f(a):
            y = a * a
            return y, y, y.detach()

        step = self.check(f, [leaf(3)], use=lambda out: (out[0] * out[1] * out[2]).sum())
        y, again, flat = step(leaf(3))
        assert y is again
        assert y.requires_grad
        assert not flat.requires_grad
        assert flat.node is None

    def test_a_view_of_a_parameter(self):
        w = nn.Parameter([[1.0, 2.0], [3.0, 4.0]])
        step = mg.compile(lambda: w.T)
        for k in range(1, 5):
            step()[0].sum().backward()
            assert w.grad.tolist() == [[k, 0.0], [k, 0.0]]

    def test_functions_in_a_row(self):
        w, v = nn.Parameter([[0.5, 0.1], [0.2, 0.3]]), nn.Parameter([[1.0], [2.0]])
        first, second = mg.compile(lambda x: (x @ w).relu()), mg.compile(lambda h: (h @ v).tanh())
        x = floats(4, 2)
        for _ in range(5):
            w.grad = v.grad = None
            second(first(x) * 2.0).sum().backward()
            got = w.grad.clone(), v.grad.clone()
            w.grad = v.grad = None
            ((x @ w).relu() * 2.0 @ v).tanh().sum().backward()
            equal(got[0], w.grad)
            equal(got[1], v.grad)
        assert len(second.traces) == 1

    def test_the_gradient_inside_is_differentiated_outside(self):
        def penalty(x):
            (g,) = mg.gradients([(x * x * x).sum()], [x], create_graph=True)
            return (g * g).sum()

        self.check(penalty, [leaf(3)], use=lambda y: y)

    def test_dropout_draws_the_same_numbers_in_backward(self):
        """Also where others draw between forward and backward, or set the seed."""
        model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2))
        found = []
        for f in (model, mg.compile(model)):
            mg.manual_seed(3)
            for k in range(6):
                first, second = f(floats(5, 4)).sum(), f(floats(5, 4, seed=1)).sum()
                if k % 2:
                    mg.rand((7,))
                if k % 3 == 2:
                    mg.manual_seed(k)
                first.backward()
                second.backward()
            found.append([p.grad.clone() for p in model.parameters()])
            for p in model.parameters():
                p.grad = None
        for a, b in zip(*found, strict=True):
            equal(a, b)

    def test_a_custom_function_with_two_results(self):
        class Both(mg.Function):
            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                ctx.scale = 3.0
                return a * b, a + b

            @staticmethod
            def backward(ctx, dp, ds):
                a, b = ctx.saved
                return dp * b + ds, dp * a * ctx.scale + ds

        leaves = [leaf(3), leaf(3, seed=1)]
        self.check(lambda a, b: Both.apply(a, b), leaves, use=lambda y: (y[0] * y[1]).sum())
        self.check(lambda a, b: Both.apply(a, b)[0], leaves)


class TestGraph:
    def test_the_first_result_is_as_the_others(self):
        """A graph that backward has freed is none; one that can be used is there at each call."""
        w = nn.Parameter([1.0, 2.0])

        def train(x):
            loss = (w * x).sum()
            loss.backward()
            return loss, [w * 2.0]

        for mode in ("", "check"):
            step = mg.compile(train)
            step.mode = mode
            for _ in range(4):
                loss, (other,) = step(mg.ones((2,)))
                assert loss.node is None
                assert not loss.requires_grad
                assert other.requires_grad
                assert other.node is not None

    def test_as_usual_too(self):
        w = nn.Parameter([1.0, 2.0])

        @mg.compile
        def step():
            loss = (w * w).sum()
            loss.backward()
            return loss

        step.mode = "0"
        assert step().node is None

    def test_a_returned_argument_keeps_its_freed_graph(self):
        w = nn.Parameter([1.0, 2.0])
        y = (w * w).sum()
        y.backward()
        step = mg.compile(lambda y: y)
        assert all(step(y) is y and y.node is not None for _ in range(4))

    def test_a_second_backward_raises(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: (w * x).exp().sum())
        for _ in range(4):
            loss = step(mg.ones((2,)))
            loss.backward()
            with pytest.raises(GraphFreedError):
                loss.backward()

    def test_retain_graph(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: (w * w * x).sum())
        for _ in range(4):
            w.grad = None
            loss = step(mg.ones((2,)))
            loss.backward(retain_graph=True)
            loss.backward()
            assert w.grad.tolist() == [4.0, 8.0]

    def test_a_write_to_what_is_kept_raises(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: (w * x).exp())
        for what in ("parameter", "argument", "result"):
            for _ in range(3):
                x = leaf(2)
                y = step(x)
                loss = y.sum()
                with mg.no_grad():
                    {"parameter": w, "argument": x, "result": y.detach()}[what].mul_(1.0)
                with pytest.raises(SavedValueModifiedError):
                    loss.backward()

    def test_copy_on_saved_write(self):
        w = nn.Parameter([1.0, 2.0])
        step = mg.compile(lambda x: (w * x).exp())
        for _ in range(4):
            w.grad = None
            x = mg.zeros((2,))
            with mg.memory.copy_on_saved_write():
                y = step(x)
                y.detach().fill_(7.0)
                x.fill_(5.0)
                y.sum().backward()
            assert w.grad.tolist() == [0.0, 0.0]

    def test_memory_of_numpy_is_copied(self):
        w = nn.Parameter([1.0, 1.0])
        step = mg.compile(lambda x: (w * x).sum())
        for _ in range(4):
            w.grad = None
            data = np.ones(2, "f4")
            loss = step(mg.from_numpy(data))
            data[:] = 9.0
            loss.backward()
            assert w.grad.tolist() == [1.0, 1.0]

    def test_hooks(self):
        w, seen = nn.Parameter([1.0, 2.0]), []
        handle = w.register_hook(lambda g: g * 10.0)

        @mg.compile
        def step(x):
            h = w * x
            h.register_hook(lambda g: g * 2.0)
            return h.sum()

        for _ in range(4):
            w.grad = None
            loss = step(mg.ones((2,)))
            loss.register_hook(lambda g: seen.append(g.item()))
            loss.backward()
            assert w.grad.tolist() == [20.0, 20.0]
        assert seen == [1.0] * 4
        handle.remove()
        w.grad = None
        step(mg.ones((2,))).backward()
        assert w.grad.tolist() == [2.0, 2.0]

    def test_a_hook_that_writes_a_statistic(self):
        w, norm = nn.Parameter([1.0, 2.0]), mg.zeros(())

        @mg.compile
        def step(x):
            h = w * x
            h.register_hook(lambda g: (norm.copy_((g * g).sum()), None)[1])
            return h.sum()

        for k in range(4):
            norm.fill_(-1.0)
            loss = step(mg.ones((2,)))
            assert norm.item() == -1.0
            (loss * float(k)).backward()
            assert norm.item() == 2.0 * k * k

    def test_a_hook_that_uses_grad_is_refused(self):
        w = nn.Parameter([1.0, 2.0])

        @mg.compile
        def step(x):
            h = w * x
            h.register_hook(lambda g: setattr(w, "grad", g))
            return h.sum()

        step(mg.ones((2,)))
        with pytest.raises(TraceError, match="gradient hook"):
            step(mg.ones((2,)))

    def test_the_second_derivative_raises_and_says_what_to_do(self):
        step = mg.compile(lambda x: (x * x * x).sum())
        x = leaf(3)
        step(x)
        (g,) = mg.gradients([step(x)], [x], create_graph=True)
        equal(g.detach(), 3.0 * (x * x).detach())
        with pytest.raises(GradientError, match="create_graph=True") as caught:
            g.sum().backward()
        assert "compiled" in str(caught.value)

    def test_no_grad_and_eval_run_the_forward_alone(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        net = mg.compile(model)
        for _ in range(3):
            assert net(floats(2, 3)).requires_grad
            with mg.no_grad():
                y = net(floats(2, 3))
            assert y.node is None
        plans = {len(t.plan.results) for t in net.traces}
        assert 1 in plans  # nothing is kept
        assert len(net.traces) == 2

    def test_nothing_is_left(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        net, x = mg.compile(model), floats(2, 3)
        for _ in range(4):
            net(x).sum().backward()
        gc.collect()
        before = mg.memory.stats()["current_bytes"], len(live_nodes())
        gc.disable()
        try:
            for k in range(6):
                y = net(x)
                if k % 2:
                    y.sum().backward()
                del y
            assert (mg.memory.stats()["current_bytes"], len(live_nodes())) == before
        finally:
            gc.enable()

    def test_a_manager(self):
        w = nn.Parameter([1.0, 2.0])
        gm, step = mg.GradManager([w]), mg.compile(lambda x: ((w * x).sum(), w * 2.0))
        for k in range(1, 5):
            with gm:
                loss, _ = step(mg.ones((2,)))
                gm.backward(loss)
            assert w.grad.tolist() == [k, k]
            with gm:
                loss, _ = step(mg.ones((2,)))
            with pytest.raises(GraphFreedError):
                loss.backward()

    def test_inside_another_step_of_what_was_made_outside(self):
        w = nn.Parameter([1.0])
        inner = mg.compile(lambda x: (w * x).sum())
        inner(mg.ones((1,)))
        losses = [inner(mg.ones((1,))) for _ in range(3)]
        outer = mg.compile(lambda: losses.pop().backward())
        outer()
        with pytest.raises(TraceError, match="inside a compiled step"):
            outer()

    def test_a_compiled_part_of_a_compiled_step(self):
        w = nn.Parameter([1.0])
        inner = mg.compile(lambda x: (w * x).sum())
        inner(mg.ones((1,)))
        inner(mg.ones((1,)))

        @mg.compile
        def outer(x):
            inner(x).backward()

        for k in range(1, 5):
            outer(mg.ones((1,)))
            assert w.grad.item() == k

    def test_an_argument_with_a_graph_does_not_go_on_inside(self):
        step = mg.compile(lambda x: (x * 2.0).sum().backward())
        step(leaf(3))
        with pytest.raises(TraceError, match="carries a graph"):
            step(leaf(3) * 1.0)

    def test_an_argument_comes_to_require_a_gradient_inside(self):
        def f(x):
            x.requires_grad = True
            return (x * x).sum()

        step = mg.compile(f)
        for k in range(4):
            x = floats(3, seed=k)
            for n in range(1, 3):  # the second time it does already
                step(x).backward()
                assert x.requires_grad
                equal(x.grad, 2.0 * n * x.detach())

    def test_an_error_in_backward_is_the_usual_one(self):
        class Picky(mg.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2.0

            @staticmethod
            def backward(ctx, dy):
                index = (dy * 1.0).to("int64")
                return mg.gather(mg.ones((2, 3)), index.reshape((1, 3)), 0)[0] * dy

        step, w = mg.compile(lambda x: Picky.apply(x)), leaf(3)
        for _ in range(3):
            step(w).sum().backward()
            y = step(w)
            with pytest.raises(mg.errors.MinigradError, match="index"):
                y.backward(mg.full((3,), 9.0))

    def test_another_leaf_is_found(self):
        ws = [nn.Parameter([1.0]), nn.Parameter([2.0])]
        step = mg.compile(lambda x: (ws[0] * x).sum())
        for _ in range(4):
            step(mg.ones((1,)))
        ws.reverse()
        with pytest.raises(TraceError, match="was frozen"):
            step(mg.ones((1,)))

    def test_a_graph_that_cannot_be_differentiated_raises_in_backward(self):
        class Once(mg.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2.0

            @staticmethod
            @mg.once_differentiable
            def backward(ctx, dy):
                return dy * 2.0

        def f(x):
            (g,) = mg.gradients([Once.apply(x).sum()], [x], create_graph=True)
            return g

        step, x = mg.compile(f), leaf(3)
        for _ in range(4):
            y = step(x)
            assert y.tolist() == [2.0] * 3
            with pytest.raises(GradientError, match="once_differentiable"):
                y.sum().backward()


def test_gradients_of_functions():
    step = mg.compile(lambda x: (x * x).sum())
    for k in range(4):
        x = floats(3, seed=k)
        equal(mg.grad(step)(x), 2.0 * x)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training(name):
    found = []
    for compile in (lambda f: f, mg.compile):
        mg.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
        )
        optimizer = getattr(optim, name)(model, learning_rate=0.05)
        net, losses = compile(model), []
        for k in range(8):
            x, y = floats(10, 6, seed=k), mg.variable(np.arange(10) % 3)
            loss = mg.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        found.append(losses + model[1].running_mean.tolist())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


class TestCompiledModule:
    def test_it_behaves_like_the_model(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        net = mg.compile(model)
        assert net.eval() is net
        assert not model[1].training
        assert net.train() is net
        assert net[0] is model[0]
        assert len(net) == 3
        assert list(net) == list(model)
        assert net
        net.training = False
        assert not model.training
        model.scale = 2.0
        net.scale = 3.0
        assert model.scale == net.scale == 3.0
        del net.scale
        assert not hasattr(model, "scale")
        assert list(net.state_dict()) == list(model.state_dict())

    def test_optimizers_take_it(self):
        for given in (lambda net: net, lambda net: [{"parameters": net, "learning_rate": 0.5}]):
            net = mg.compile(nn.Linear(3, 2))
            optimizer = optim.SGD(given(net), learning_rate=0.5)
            before = net.bias.numpy().copy()
            for _ in range(3):
                net(floats(4, 3)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            np.testing.assert_allclose(net.bias.numpy(), before - 6.0, rtol=1e-5)

    def test_a_copy_is_a_compiled_model_of_its_own(self):
        net = mg.compile(nn.Linear(3, 2))
        other = copy.deepcopy(net)
        assert other.weight is not net.weight
        assert other.eval() is other
