"""Backward outside of compiled functions, and custom Functions over NumPy, on a GPU."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import RetraceWarning
from tests.compiler.quick_gpu import QUICK

pytestmark = pytest.mark.usefixtures("on_quick")


def test_a_model_is_trained():
    found = []
    for compile in (lambda f: f, mg.compile):
        mg.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.3), nn.Linear(7, 3))
        net, optimizer, losses = compile(model), optim.Adam(model, 0.01), []
        random = np.random.default_rng(0)
        for _ in range(5):
            x = mg.variable(random.normal(size=(8, 5)).astype("f4"))
            loss = mg.cross_entropy(net(x), mg.variable(random.integers(0, 3, 8)))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.to("cpu").item())
        found.append(losses)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)
    (trace,) = net.traces
    (pullback,) = trace.capture.link.pullbacks.values()
    assert trace.plan.device == pullback.plan.device == QUICK.name


def test_a_function_over_numpy_runs_as_usual():
    class Sine(mg.Function):
        @staticmethod
        def forward(ctx, x):
            return mg.variable(np.sin(x.to("cpu").numpy()), device=x.device)

    step, x = mg.compile(lambda x: Sine.apply(x) * 2.0), mg.ones((3,))
    step(x)
    with pytest.warns(RetraceWarning, match=r"runs as usual: Sine\.forward is Python"):
        step(x)
    for _ in range(3):
        np.testing.assert_allclose(step(x).to("cpu").numpy(), 2.0 * np.sin(1.0), rtol=1e-6)
    assert not step.traces
