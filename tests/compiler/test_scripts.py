"""Training scripts as people write them with PyTorch and torch.compile: each is what eager is.

A script gets `compile` and returns numbers: once with mg.compile, once with a function that gives
back what it is given. Plans are interpreted; `tests.compiler.test_resumed` runs real ones.
"""

import copy

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim

pytestmark = [
    pytest.mark.usefixtures("interpreted_plans"),
    pytest.mark.filterwarnings("error::minigrad.errors.RetraceWarning"),
]
SCRIPTS = {}


def script(function):
    SCRIPTS[function.__name__] = function
    return function


def batches(count=6, size=8, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(count):
        x = mg.variable(random.normal(size=(size, 5)).astype("f4"))
        yield x, mg.variable(random.integers(0, 3, size))


def mlp(*more):
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), *more, nn.Linear(7, 3))


def numbers(model):
    return [float(np.abs(p.numpy()).sum()) for p in model.parameters()]


@script
def compiled_model(compile):
    model = mlp()
    net, optimizer, losses = compile(model), optim.Adam(model.parameters(), 0.01), []
    for x, y in batches():
        optimizer.zero_grad()
        loss = mg.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses + numbers(model)


@script
def the_model_is_replaced_by_the_compiled_one(compile):
    model = compile(mlp(nn.Dropout(0.3)))
    optimizer, losses = optim.SGD(model.parameters(), 0.1, momentum=0.9), []
    for epoch in range(3):
        model.train()
        for x, y in batches(3, seed=epoch):
            loss = mg.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with mg.no_grad():
            right = [(model(x).argmax(1) == y).sum().item() for x, y in batches(3, seed=9)]
        losses += [loss.item(), *right]
    state = model.state_dict()
    model.load_state_dict(state)
    return losses + numbers(model)


@script
def compiled_loss(compile):
    model = mlp()
    optimizer = optim.SGD(model.parameters(), 0.1)

    @compile
    def loss_of(model, x, y):
        return mg.cross_entropy(model(x), y)

    losses = []
    for x, y in batches():
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses + numbers(model)


@script
def loss_and_outputs(compile):
    model = mlp()
    optimizer = optim.SGD(model.parameters(), 0.1)

    @compile
    def forward(x, y):
        scores = model(x)
        return {"loss": mg.cross_entropy(scores, y), "scores": scores}

    found = []
    for x, y in batches():
        out = forward(x, y)
        out["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
        found += [out["loss"].item(), (out["scores"].argmax(1) == y).sum().item()]
    return found


@script
def compiled_step(compile):
    model = mlp()
    optimizer = optim.AdamW(model, 0.01)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return [step(x, y).item() for x, y in batches(8)] + numbers(model)


@script
def accumulated_over_micro_batches(compile):
    model = mlp()
    net, optimizer, losses = compile(model), optim.Adam(model.parameters(), 0.01), []
    for k, (x, y) in enumerate(batches(12)):
        loss = mg.cross_entropy(net(x), y) / 4.0
        loss.backward()
        losses.append(loss.item())
        if k % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return losses + numbers(model)


@script
def evaluated_under_no_grad(compile):
    model = mlp(nn.BatchNorm1d(7))
    net, optimizer, found = compile(model), optim.SGD(model.parameters(), 0.05), []
    for epoch in range(4):
        for x, y in batches(2, seed=epoch):
            mg.cross_entropy(net(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        net.eval()
        with mg.no_grad():
            found += [mg.cross_entropy(net(x), y).item() for x, y in batches(2, 5, seed=99)]
        net.train()
    return found + numbers(model)


@script
def averaged_weights(compile):
    model = mlp()
    average = copy.deepcopy(model)
    for p in average.parameters():
        p.requires_grad = False
    net, smooth = compile(model), compile(average)
    optimizer, found = optim.SGD(model.parameters(), 0.1), []
    for x, y in batches(8):
        mg.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        with mg.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.mul_(0.9).add_(fast * 0.1)
        found.append(mg.cross_entropy(smooth(x), y).item())
    return found


@script
def adversaries_with_two_losses(compile):
    maker = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 5))
    judge = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 1))
    first, second = (optim.Adam(m.parameters(), 0.01) for m in (maker, judge))

    @compile
    def judge_loss(real, noise):
        fake = maker(noise).detach()
        return mg.softplus(-judge(real)).mean() + mg.softplus(judge(fake)).mean()

    @compile
    def maker_loss(noise):
        return mg.softplus(-judge(maker(noise))).mean()

    found = []
    for x, _ in batches(8):
        noise = mg.randn((8, 2))
        second.zero_grad()
        loss = judge_loss(x, noise)
        loss.backward()
        second.step()
        first.zero_grad()
        other = maker_loss(noise)
        other.backward()
        first.step()
        found += [loss.item(), other.item()]
    return found + numbers(maker) + numbers(judge)


@script
def teacher_and_student(compile):
    teacher, student = compile(mlp()), compile(mlp())
    optimizer, found = optim.SGD(student.parameters(), 0.1), []
    for x, y in batches():
        with mg.no_grad():
            wanted = mg.softmax(teacher(x) / 2.0, 1)
        scores = student(x)
        soft = -(wanted * mg.log_softmax(scores / 2.0, 1)).sum(axis=1).mean()
        loss = 0.5 * soft + 0.5 * mg.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@script
def gradient_penalty(compile):
    judge = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = optim.SGD(judge.parameters(), 0.05)

    @compile
    def loss_of(real, fake, t):
        mixed = t * real + (1.0 - t) * fake
        mixed.requires_grad = True
        (g,) = mg.gradients([judge(mixed).sum()], [mixed], create_graph=True)
        penalty = ((g.square().sum(axis=1) + 1e-8).sqrt() - 1.0).square().mean()
        return judge(fake).mean() - judge(real).mean() + 10.0 * penalty, penalty

    found = []
    for (x, _), (z, _) in zip(batches(), batches(seed=1), strict=True):
        loss, penalty = loss_of(x, z, mg.rand((8, 1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found += [loss.item(), penalty.item()]
    return found + numbers(judge)


@script
def closures(compile):
    """As LBFGS wants them: the loss is asked for several times a step."""
    model = mlp()
    net, (x, y), found = compile(model), next(batches()), []

    def closure():
        for p in model.parameters():
            p.grad = None
        loss = mg.cross_entropy(net(x), y)
        loss.backward()
        return loss

    for _ in range(4):
        loss, rate = closure(), 1.0
        before = [p.numpy().copy() for p in model.parameters()]
        slopes = [p.grad.numpy().copy() for p in model.parameters()]
        for _ in range(4):
            for p, b, g in zip(model.parameters(), before, slopes, strict=True):
                p.assign(mg.variable(b - np.float32(rate) * g))
            if closure().item() < loss.item():
                break
            rate /= 2.0
        found += [loss.item(), rate]
    return found + numbers(model)


@script
def carried_hidden_state(compile):
    cell, head = nn.Linear(9, 4), nn.Linear(4, 3)
    parameters = [*cell.parameters(), *head.parameters()]
    optimizer = optim.Adam(parameters, 0.01)

    @compile
    def forward(h, x):
        h = cell(mg.concatenate([x, h], 1)).tanh()
        return h, head(h)

    h, found, loss = mg.zeros((8, 4)), [], 0.0
    for k, (x, y) in enumerate(batches(9)):
        h, scores = forward(h, x)
        loss = loss + mg.cross_entropy(scores, y)
        if k % 3 == 2:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
            h, loss = h.detach(), 0.0
    return [*found, float(h.sum().item())]


@script
def schedule_and_clipping_outside(compile):
    model = mlp()
    net, optimizer = compile(model), optim.AdamW(model.parameters(), 0.02)
    schedule, found = optim.CosineDecay(optimizer, 8), []
    for x, y in batches(8):
        loss = mg.cross_entropy(net(x), y)
        loss.backward()
        norm = optim.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        found += [loss.item(), float(norm)]
    return found


@script
def printed_outside(compile):
    model = mlp()
    net, optimizer, found = compile(model), optim.SGD(model.parameters(), 0.1), []
    for k, (x, y) in enumerate(batches()):
        loss = mg.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k % 2:
            text = f"{k}: {loss.item():.3f} {loss:.3f}"
            found.append(float(text.split()[1]))
    return found


@script
def the_last_batch_is_smaller(compile):
    model = mlp()
    net, optimizer, found = compile(model), optim.SGD(model.parameters(), 0.1), []
    for epoch in range(3):
        for x, y in [*batches(3, seed=epoch), *batches(1, 3, seed=epoch)]:
            loss = mg.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found


@script
def frozen_backbone_then_thawed(compile):
    body, head = nn.Sequential(nn.Linear(5, 7), nn.ReLU()), nn.Linear(7, 3)
    model = nn.Sequential(body, head)
    net, found = compile(model), []
    for p in body.parameters():
        p.requires_grad = False
    optimizer = optim.SGD(head.parameters(), 0.1)
    for k, (x, y) in enumerate(batches(8)):
        if k == 4:
            for p in body.parameters():
                p.requires_grad = True
            optimizer = optim.SGD(model.parameters(), 0.05)
        loss = mg.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        for p in model.parameters():
            p.grad = None
        found.append(loss.item())
    return found + numbers(model)


@script
def two_views_in_a_contrast(compile):
    model = mlp()
    net, optimizer, found = compile(model), optim.Adam(model.parameters(), 0.01), []
    for (x, _), (z, _) in zip(batches(), batches(seed=5), strict=True):
        a, b = net(x), net(x + 0.1 * z)
        a, b = (v / (v.square().sum(axis=1, keepdims=True) + 1e-6).sqrt() for v in (a, b))
        loss = mg.cross_entropy(a @ b.T / 0.5, mg.arange(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found + numbers(model)


@script
def parts_of_a_model_compiled(compile):
    encoder, decoder = nn.Linear(5, 4), nn.Linear(4, 5)
    encode, decode = compile(encoder), compile(decoder)
    optimizer, found = optim.Adam([*encoder.parameters(), *decoder.parameters()], 0.01), []
    for x, _ in batches():
        h = encode(x)
        mean, spread = h[:, :2], h[:, 2:].exp()
        z = mg.concatenate([mean + spread * mg.randn((8, 2)), mean], 1)
        loss = mg.mse(decode(z), x) + 0.01 * (mean.square() + spread).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found + numbers(encoder)


@script
def learned_temperature_and_input_gradient(compile):
    model, temperature = mlp(), nn.Parameter(1.0)
    scores = compile(lambda x: model(x) / temperature)
    found = []
    for x, y in batches():
        x = x.detach()
        x.requires_grad = True
        loss = mg.cross_entropy(scores(x), y)
        loss.backward()
        found += [float(np.abs(x.grad.numpy()).sum()), temperature.grad.item()]
        with mg.no_grad():
            temperature.sub_(0.1 * temperature.grad)
        temperature.grad = None
        model.zero_grad()
    return found


@script
def policy_gradient(compile):
    policy, value = nn.Linear(5, 3), nn.Linear(5, 1)
    optimizer = optim.Adam([*policy.parameters(), *value.parameters()], 0.01)

    @compile
    def evaluate(x, actions):
        logp = mg.log_softmax(policy(x), 1)
        chosen = mg.gather(logp, actions.reshape((8, 1)), 1).reshape((8,))
        return chosen, value(x).reshape((8,)), -(logp.exp() * logp).sum(axis=1)

    found = []
    for x, actions in batches(8):
        rewards = x.sum(axis=1)
        logp, values, entropy = evaluate(x, actions)
        advantage = (rewards - values).detach()
        loss = -(logp * advantage).mean() + mg.mse(values, rewards) - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found + numbers(policy)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gives_what_it_gives_uncompiled(name):
    found = []
    for compile in (lambda f: f, mg.compile):
        mg.manual_seed(0)
        found.append(SCRIPTS[name](compile))
    assert len(found[0]) > 2
    np.testing.assert_allclose(found[1], found[0], rtol=3e-4, atol=2e-5)
