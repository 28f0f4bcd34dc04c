"""Ctrl-C while a step is traced: the engine computes as before, and nothing has changed."""

import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.trace import capture, trace
from minigrad.devices import backend
from minigrad.ops.creation import generator
from minigrad.seams import seams
from minigrad.tape.modes import state
from tests.interrupts import interrupted


@pytest.mark.parametrize("module", [capture, trace])
def test_at_any_call(module):
    w, h = nn.Parameter([1.0, 2.0]), mg.zeros((2,))
    optimizer, x = optim.Adam([w], learning_rate=0.1), mg.ones((2,))

    def step():
        optimizer.zero_grad()
        (w * x).sum().backward()
        h.add_(mg.rand((2,)))
        optimizer.step()
        return h * mg.variable([1.0, 2.0])

    step()
    before = w.grad, w.version, h.version, w.tolist(), h.tolist(), generator.counter
    modes = state.path, state.watchers, state.spans, state.is_inference, state.recording
    k = 0
    while interrupted(k, module.__file__, capture.capture, step):
        k += 1
        assert not seams.effects.is_tracing, k
        assert backend.chosen.device is None, k
        now = state.path, state.watchers, state.spans, state.is_inference, state.recording
        assert now == modes, k
        assert w.grad is before[0], k
        after = w.version, h.version, w.tolist(), h.tolist(), generator.counter
        assert after == before[1:], k
    assert k > 20
