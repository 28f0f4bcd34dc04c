"""Compiled training is eager training: 50 steps of every layer, optimizer and way to write a step.

Each case joins several features, since a program takes a second to make. After calls 1, 2, 3, 4, 7
and 50 all that a step leaves behind is compared: parameters, buffers, their versions, gradients,
optimizer state, learning rates, random numbers; and after each call what it returned.
"""

import pytest

import minigrad as mg
from minigrad import nn, optim
from tests.compiler.networks import (
    Attention,
    Recurrent,
    Residual,
    cnn,
    images,
    mlp,
    normed,
    rows,
    words,
)
from tests.compiler.twins import check


def training(model, optimizer, data, loss=mg.cross_entropy, zero="last", more=None, callbacks=()):
    """make() of a usual step; zero: first, last, hand or never. more(model): before the update."""

    def make(wrap):
        net = model()
        opt = optimizer(net)
        manager = mg.GradManager(net.parameters(), callbacks)

        @wrap
        def step(x, y):
            if zero == "first":
                opt.zero_grad()
            if zero == "hand":
                for p in net.parameters():
                    p.grad = None
            with manager:
                value = loss(net(x), y)
                manager.backward(value)
            extra = more(net) if more else None
            opt.step()
            if zero == "last":
                opt.zero_grad()
            return {"loss": value, "more": extra}

        return step, [net, opt], data()

    return make


def cut(net):
    optim.clip_grad_value_(net, 0.05)
    optim.clip_params_(net, -0.4, None)


def squares(y, labels):
    return ((y - labels.reshape(-1, 1)) ** 2).mean()


def next_ones(logits, labels):
    return mg.cross_entropy(logits.reshape(-1, 11), labels.reshape(-1))


def whole(group, flat):
    return flat * 0.5


whole.whole_group = True
CASES = {
    "Adam, zeroed first": training(mlp, lambda m: optim.Adam(m, 0.01), rows, zero="first"),
    "Nesterov, batch norm, dropout, zeroed by hand": training(
        normed,
        lambda m: optim.SGD(m, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
        rows,
        zero="hand",
    ),
    "CNN, momentum": training(cnn, lambda m: optim.SGD(m, 0.05, momentum=0.9), images),
    "residual, AdamW, norm clipped, gradients kept": training(
        Residual,
        lambda m: optim.AdamW(m, 0.005, weight_decay=0.1),
        rows,
        squares,
        "first",
        lambda net: optim.clip_grad_norm_(net, 0.5),
    ),
    "recurrent, tied, RMSprop, each norm clipped": training(
        Recurrent,
        lambda m: optim.RMSprop(m, 0.003, eps=1e-3),
        lambda: words((3, 6)),
        next_ones,
        more=lambda net: optim.clip_grad_norm_per_param_(net, 0.1),
    ),
    "attention, values clipped": training(
        Attention, lambda m: optim.SGD(m, 0.1, weight_decay=0.001), words, more=cut
    ),
    "accumulated without end, centred, callbacks": training(
        mlp,
        lambda m: optim.RMSprop(m, 0.001, momentum=0.9, centered=True),
        rows,
        zero="never",
        callbacks=[whole, lambda p, grad: grad.clip(-0.1, 0.1)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_training(name):
    check(CASES[name], programs=programs_of(name))


def programs_of(name):
    """How many programs a case needs: where gradients add up, one for the first ones."""
    return 2 if "without end" in name else 1


def test_groups_schedule_and_a_moving_average():
    def make(wrap):
        first, second = nn.Linear(8, 16), nn.Linear(16, 4)
        both = [*first.parameters(), *second.parameters()]
        groups = [
            {"params": list(first.parameters()), "learning_rate": 0.01},
            {"params": list(second.parameters()), "learning_rate": 0.003, "weight_decay": 0.1},
        ]
        opt = optim.Adam(groups, 0.02)
        schedule, manager = optim.WarmupCosine(opt, 5, 30), mg.GradManager(both)
        averages = [p.detach().clone() for p in both]

        @wrap
        def step(x, y):
            with manager:
                loss = mg.cross_entropy(second(mg.gelu(first(x))), y)
                manager.backward(loss)
            norm = optim.clip_grad_norm_(both, 0.3)
            opt.step()
            opt.zero_grad()
            schedule.step()
            with mg.no_grad():
                for mean, p in zip(averages, both, strict=True):
                    mean.mul_(0.9).add_(p.detach() * 0.1)
            return loss, norm

        return step, [first, second, opt, schedule, *averages], rows()

    check(make)


def test_frozen_and_unreached_parameters_with_empty_gradients():
    def make(wrap):
        net, unreached = mlp(), nn.Linear(3, 3)
        net[0].bias.requires_grad = False
        trained = [p for p in net.parameters() if p.requires_grad]
        manager = mg.GradManager([*net.parameters(), *unreached.parameters()], keep_empty_grad=True)
        opt = optim.SGD([*trained, *unreached.parameters()], 0.1, momentum=0.9, weight_decay=0.1)

        @wrap
        def step(x, y):
            opt.zero_grad()
            with manager:
                loss = mg.cross_entropy(net(x), y)
                manager.backward(loss)
            opt.step()
            return loss

        return step, [net, unreached, opt], rows()

    check(make, programs=2)  # without gradients, and with them


def test_two_backwards_of_views_in_float64():
    def make(wrap):
        net = nn.Linear(8, 4, dtype="float64")
        opt, manager = optim.Adam(net, 0.01), mg.GradManager(net.parameters())

        @wrap
        def step(pair, scale, *, few):
            x, mirrored = pair
            with manager:
                one = (net(x) ** 2).mean() * scale
                manager.backward(one)
            with manager:
                two = mg.tanh(net(few)).sum() + net(mirrored).mean()
                manager.backward(two)
            opt.step()
            opt.zero_grad()
            return one, [two, {"both": (one + two).detach()}], scale

        big, other = mg.randn((8, 20), "float64"), mg.randn((8, 9), "float64")
        calls = [((big.T, big.T[::-1]), 0.5, other[:, k : k + 3].T) for k in range(3)]
        return lambda pair, scale, few: step(pair, scale, few=few), [net, opt], calls

    check(make, error=1e-10)


def test_gradients_in_one_program_and_the_update_in_another():
    def make(wrap):
        net = mlp()
        opt, manager = optim.SGD(net, 0.05, momentum=0.5), mg.GradManager(net.parameters())
        calls = []

        @wrap
        def gradients(x, y):
            with manager:
                loss = mg.cross_entropy(net(x), y)
                manager.backward(loss)
            return loss

        @wrap
        def update():
            opt.step()
            opt.zero_grad()

        def step(x, y):
            loss = gradients(x, y)
            calls.append(loss)
            if len(calls) % 3 == 0:
                update()
            return loss

        return step, [net, opt], rows()

    check(make, programs=3)  # one for the first gradients, one for the sums, one for the update


@pytest.mark.filterwarnings("ignore:the compiled step:minigrad.errors.RetraceWarning")
def test_training_and_evaluation_and_a_shorter_last_batch():
    def make(wrap):
        net = normed()
        opt, manager = optim.SGD(net, 0.05), mg.GradManager(net.parameters())

        @wrap
        def train(x, y):
            with manager:
                loss = mg.cross_entropy(net(x), y)
                manager.backward(loss)
            opt.step()
            opt.zero_grad()
            return loss

        @wrap
        def look(x):
            with mg.no_grad():
                return net(x)

        def epoch(*batches):
            net.train()
            losses = [train(*batch) for batch in batches]
            noisy = look(batches[0][0])
            net.eval()
            return losses, noisy, look(batches[0][0]), look(batches[-1][0])

        return epoch, [net, opt], [(*rows(), *rows(5, 1))]

    check(make, 20, programs=5)


def test_leaves_without_a_manager():
    def make(wrap):
        w = mg.randn((8, 4)).detach()
        w.requires_grad = True
        b = mg.zeros((4,), requires_grad=True)

        @wrap
        def step(x, y):
            mg.cross_entropy(x @ w + b, y).backward()
            with mg.no_grad():
                w.sub_(w.grad * 0.1)
                b[1:3] -= b.grad[1:3] * 0.1
            w.grad = None
            return b.grad

        return step, [w, b], rows()

    check(make, programs=2)  # without gradients, and with them
