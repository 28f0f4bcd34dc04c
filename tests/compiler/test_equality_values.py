"""Compiled functions without training: values of every kind, sizes at the edge, derivatives."""

import minigrad as mg
from minigrad import nn, optim
from tests.compiler.twins import check

ROW = "max", "min", "sum", "prod", "argmax", "argmin"
COLUMN = "max", "min", "mean", "norm", "logsumexp"
NAN, INF = float("nan"), float("inf")


def agree(function, *calls, things=(), programs=1):
    """A function of the arguments of some calls, eager and compiled."""
    check(lambda wrap: (wrap(function), list(things), calls), 6, programs=programs)


def test_not_a_number_and_infinity_spread_as_usual():
    def step(x):
        s = x.reshape(2, 4)
        names = "exp log sqrt tanh sigmoid relu abs sign erf gelu sin floor reciprocal"
        found = [getattr(mg, name)(x) for name in names.split()]
        found += [getattr(s, how)(axis=1) for how in ROW]
        found += [getattr(s, how)(axis=0) for how in COLUMN]
        found += [s.var(axis=1, ddof=ddof) for ddof in (0, 1)]
        found += [mg.softmax(s), mg.log_softmax(s), mg.logsumexp(s), mg.cumsum(x), s.sum()]
        found += [mg.maximum(x, 0.0), mg.minimum(0.0, x), mg.where(x > 0, x, -x), x == x, x != x]
        return [*found, x.clip(-1.0, 1.0), x / 0.0, x * 0.0, x**2, x**0.5, 1.0 / x]

    first = mg.variable([1.0, NAN, INF, -INF, 0.0, -0.0, 1e-30, 3e38])
    agree(step, (first,), (mg.variable([NAN] * 4 + [INF] * 4),))


def test_gradients_of_numbers_that_are_none():
    def make(wrap):
        w = mg.ones((8,), requires_grad=True)

        @wrap
        def step(x):
            w.grad = None
            (mg.softmax(w * x) + mg.relu(x * w) + mg.maximum(w, x)).sum().backward()

        def taken(x):
            step(x)
            found, w.grad = w.grad, None
            return found

        x = mg.variable([1.0, NAN, INF, -INF, 0.0, -0.0, 2.0, 3.0])
        return taken, [w], [(x,), (mg.arange(8) * 0.5,)]

    check(make, 7)


def test_no_rows():
    def make(wrap):
        net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.LayerNorm(4))
        opt, manager = optim.SGD(net, 0.1, momentum=0.9), mg.GradManager(net.parameters())

        @wrap
        def step(x):
            with manager:
                y = net(x)
                loss = (y * y).sum()
                manager.backward(loss)
            opt.step()
            opt.zero_grad()
            y = y.detach()
            joined = mg.concatenate([x, x], axis=1), mg.stack([y, y], axis=0)
            return loss, y, mg.softmax(y), y.sum(axis=0), y.mean(), x[:, 2:4], joined, x.T @ y

        return step, [net, opt], [(mg.zeros((0, 8)),), (mg.ones((3, 8)),)]

    check(make, 10, programs=2)


def test_axes_of_one_element_and_scalars():
    def step(x, y, s):
        found = [x + y, x @ y, (x * y).sum(axis=0), mg.softmax(x), s * x, s + s, x.max(axis=1)]
        found += [s.sum(), x.reshape(()), mg.layer_norm(y, mg.ones((1,)), mg.zeros((1,)))]
        return [*found, mg.softmax(s), x.T, x.var(ddof=0), mg.concatenate([x, y]), s.exp(), x[0, 0]]

    agree(step, (mg.randn((1, 1)), mg.randn((1, 1)), mg.randn(())))


def test_integers_and_bools():
    def step(i, b):
        found = [i + 1, i / 2, i.sum(axis=1), i.max(axis=0), b & (i > 3), ~b, i.to("float32") * 2.5]
        found += [b.sum(), i.mean(), mg.where(b, i, 0), b.any(axis=0), i.cumsum(axis=1), -i, abs(i)]
        found += [i * i, i.argmax(axis=1), (i == 3).to("uint8"), i.prod(axis=1), b.to("float64")]
        return [*found, i.to("int32") * 2, i.min(), b.all(axis=1), i.T + i[0, 0], mg.sqrt(abs(i))]

    agree(step, (mg.randint(-9, 9, (3, 4)), mg.randint(0, 2, (3, 4)) > 0))


def test_layouts_indexing_and_writes():
    few = mg.variable([3, 0, -1, 2])

    def step(a, b, c, x, i, y):
        found = [a @ b + c, a.T * 2.0, b.sum(axis=0), x[i], x[:, 1], x[1:, ::2], x[::-1] + x]
        found += [x[..., None], x[[0, 2]], mg.gather(x, i[:, None] + 1, 1)]
        z = x.clone()
        z[1], z[:, 2] = 0.0, y
        z[0, 1:3] += 1.0
        z[i] = z[i] * 0.5
        y.mul_(0.5)
        y[1:] = y[:-1]  # overlaps itself
        c.copy_(c[::-1])
        return [*found, z, y, a, c]

    def make(wrap):
        big, c, y = mg.randn((9, 10)), mg.randn((6, 7)), mg.randn((4,))
        return (
            wrap(step),
            [big, c, y],
            [(big[:6, 1:5], mg.randn((7, 4)).T, c, big[5:, 2:8], few, y)],
        )

    check(make, 6)


def test_arguments_that_share_memory():
    def step(x, y, z):
        x.add_(1.0)
        return (x * y).sum(), x + z, y * 2.0, z

    def make(wrap):
        b = mg.randn((10,))
        return wrap(step), [b], [(b[:6], b[2:8], b[2:8])]

    check(make, 6)


def test_derivatives_inside():
    class Cube(mg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved
            return dy * x * x * 3.0

    def step(x):
        def f(x):
            return (mg.sin(x) * x + Cube.apply(x)).sum()

        def g(x):
            return mg.softmax(x * x)

        row = x[0]
        y, pull = mg.vjp(g, x)
        found = [*mg.value_and_grad(f)(x), mg.hvp(f, x, mg.ones_like(x)), mg.jvp(g, x, x * 2.0)]
        return [
            *found,
            y,
            pull(x),
            mg.jacobian(g)(row),
            mg.hessian(lambda x: mg.tanh(x).prod())(row),
        ]

    agree(step, (mg.randn((2, 3)),))


def test_gradients_of_arguments():
    def step(x, w):
        (x @ w).square().mean().backward()
        return x.grad

    def make(wrap):
        x, w = (mg.randn(shape).requires_grad_() for shape in ((3, 4), (4, 2)))
        return wrap(step), [x, w], [(x, w)]

    check(make, 6, programs=2)  # without gradients, and with them


def test_modes():
    def make(wrap):
        net = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))

        @wrap
        def inside(x):
            with mg.no_grad():
                one = net(x)
            with mg.inference():
                return one, net(x), net.valid()(x)

        look = wrap(net)

        def step(x):
            found = inside(x)
            with mg.no_grad():
                found = (*found, look(x))
            with mg.inference():
                return (*found, look(x))

        return step, [net], [(mg.randn((12, 8)),)]

    check(make, 8, programs=3)


def test_random_numbers_and_modules_made_inside():
    def step(x):
        noisy = nn.Dropout(0.5)(x)
        return mg.rand((3,)) + x, mg.randn((3, 2)), mg.randint(0, 9, (4,)), noisy

    agree(step, (mg.ones((3,)),), (mg.zeros((3,)),))


def test_state_across_calls():
    def make(wrap):
        w, h, count = mg.randn((8, 8)) * 0.3, mg.zeros((5, 8)), mg.zeros((), "int64")

        @wrap
        def step(x):
            new = mg.tanh(x + h @ w)
            h.copy_(new)
            count.add_(1)
            return h, count, new * 2.0, w[1:]

        return step, [h, count, w], [(mg.randn((5, 8)),), (mg.randn((5, 8)),)]

    check(make)


def test_dtypes_and_shapes_are_programs_of_their_own():
    def step(x):
        return mg.softmax(x * 2) if x.dtype.is_float else x * 2

    calls = [(mg.ones((3, 2), dtype),) for dtype in ("float32", "float64", "int64")]
    agree(step, *calls, (mg.ones((2, 2)),), (mg.ones((3, 2)).T,), programs=5)
