"""Convolutions without unfolding in compiled steps: as eager, on one thread and on two."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compiler.cpu import schedule
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.trace.capture import capture
from minigrad.devices.threads import threads as pool
from tests.compiler.replay import run_captured
from tests.compiler.running import Run
from tests.compiler.twins import check

DIRECT = {"pack", "convolve", "correlate"}


def ops(recording):
    return {i.op for i in recording.instructions}


@pytest.fixture(params=[1, 2])
def n_threads(request, monkeypatch):
    """Steps that use so many threads, however small they are."""
    monkeypatch.setattr(schedule, "SHARED", 0)
    monkeypatch.setattr(schedule, "WORTH", 0)
    monkeypatch.setattr(pool, "count", request.param)
    return request.param


def training(wrap):
    """A step of a network whose second layer needs the gradient of its images too."""
    model = nn.Sequential(
        nn.Conv2d(1, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(5, 9, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(9 * 36, 4),
    )  # fmt: skip
    optimizer = mg.optim.Adam(model.parameters(), learning_rate=1e-3)

    def step(x, y):
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        for p in model.parameters():
            p.grad = None
        return loss

    data = [(mg.randn((7, 1, 12, 12)), mg.randint(0, 4, (7,))) for _ in range(3)]
    return wrap(step), [model, optimizer], data


def test_a_step_is_as_eager_over_20_calls(n_threads):
    (step,) = check(training, calls=20, error=1e-4)
    (trace,) = step.traces
    plan = trace.plan
    assert plan.threads == n_threads
    assert ops(plan.recording) >= DIRECT
    assert not ops(plan.recording) & {"unfold", "fold"}
    cut = [
        c.is_cut for r in plan.regions for c in r if c.scratch is not None and c.kind == "opaque"
    ]
    assert cut
    assert all(cut) == (n_threads > 1)


@pytest.mark.parametrize(("padding", "dilation"), [(0, 1), (1, 1), ((2, 1), (1, 2)), (1, (2, 1))])
def test_a_convolution_and_its_gradients(n_threads, padding, dilation):
    x = mg.variable(mg.randn((3, 5, 9, 8)).numpy(), requires_grad=True)
    w = mg.variable(mg.randn((6, 5, 3, 3)).numpy(), requires_grad=True)
    b = mg.variable(mg.randn((6,)).numpy(), requires_grad=True)

    def step():
        y = mg.conv2d(x, w, b, padding=padding, dilation=dilation)
        return [y, *mg.gradients((y * y).sum(), [x, w, b])]

    wanted, captured = step(), capture(step)
    assert "convolve" in ops(captured.recording)
    found = Run(captured.recording, n_threads=n_threads).once()
    for a, b_, c in zip(wanted, found, run_captured(captured), strict=True):
        scale = np.abs(a.numpy()).max()
        np.testing.assert_allclose(b_, a.numpy(), 1e-5, 1e-5 * scale)
        np.testing.assert_allclose(c.numpy(), a.numpy(), 1e-5, 1e-5 * scale)


def test_the_bias_is_added_where_relu_is():
    x, w, b = mg.randn((4, 3, 10, 10)), mg.randn((8, 3, 3, 3)), mg.randn((8,))

    def step():
        with mg.no_grad():
            return mg.relu(mg.conv2d(x, w, b, padding=1))

    plan = Plan(capture(step).recording, n_threads=1)
    assert [c.kind for region in plan.regions for c in region] == ["opaque", "opaque", "loop"]
