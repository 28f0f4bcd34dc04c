"""Steps that differentiate inside and then train: physics-informed and Hamiltonian networks.

They compile whether or not Python's garbage collector runs.
"""

import contextlib
import gc

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim


@contextlib.contextmanager
def collector(mode):
    gc.collect()
    if mode == "off":
        gc.disable()
    elif mode == "always":
        before = gc.get_threshold()
        gc.set_threshold(1)
    try:
        yield
    finally:
        gc.enable()
        if mode == "always":
            gc.set_threshold(*before)


def net(inputs):
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)
    )


def heat(model):
    """u_t = u_xx, and u = sin(x) at t = 0."""

    def loss_of(x, t):
        x.requires_grad = t.requires_grad = True
        u = model(mg.concatenate([x, t], 1))
        u_x, u_t = mg.gradients([u.sum()], [x, t], create_graph=True)
        (u_xx,) = mg.gradients([u_x.sum()], [x], create_graph=True)
        start = model(mg.concatenate([x, t * 0.0], 1))
        return (u_t - u_xx).square().mean() + (start - mg.sin(x)).square().mean()

    return loss_of


def hamilton(model):
    """dq/dt = dH/dp, dp/dt = -dH/dq, of a pendulum."""

    def loss_of(q, p):
        q.requires_grad = p.requires_grad = True
        dq, dp = mg.gradients([model(mg.concatenate([q, p], 1)).sum()], [q, p], create_graph=True)
        return (dp - p).square().mean() + (dq - mg.sin(q)).square().mean()

    return loss_of


def trained(make, compile, kind):
    mg.manual_seed(0)
    model = net(2)
    optimizer, loss_of = optim.Adam(model, 0.01), make(model)

    def step(a, b):
        loss = loss_of(a, b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    if kind == "step":
        step = compile(step)
    else:
        loss_of = compile(loss_of)
    random, losses = np.random.default_rng(0), []
    for _ in range(7):
        a, b = (mg.variable(random.normal(size=(6, 1)).astype("f4")) for _ in range(2))
        losses.append(step(a, b).item())
    return losses


@pytest.mark.parametrize("mode", ["on", "off", "always"])
@pytest.mark.parametrize("kind", ["step", "loss"])
@pytest.mark.parametrize("make", [heat, hamilton])
def test_a_network_of_physics_is_trained(interpreted_plans, make, kind, mode):
    wanted = trained(make, lambda f: f, kind)
    with collector(mode):
        found = trained(make, mg.compile, kind)
    np.testing.assert_allclose(found, wanted, rtol=5e-4)
