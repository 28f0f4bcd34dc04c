"""Ctrl-C inside a compiled call: what it leaves behind is done whole or not at all."""

import gc
import signal
import sys
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.devices.backend import device_named
from minigrad.devices.threads import threads
from minigrad.ops.creation import generator
from tests.interrupts import heal, interrupted, timers

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")


@pytest.fixture
def interrupts():
    with timers():
        yield


@pytest.mark.parametrize("count", [1, 2])
def test_a_call_interrupted_in_its_machine_code_is_done_whole(interrupts, monkeypatch, count):
    monkeypatch.setattr(threads, "count", count)
    w, total = nn.Parameter(np.zeros(1000, "f4")), mg.zeros(())
    heavy = mg.ones((3_000_000,))

    @mg.compile
    def step(x):
        noise = mg.rand((1,))
        w.grad = None
        (w * x).sum().backward()
        with mg.no_grad():
            total.add_((heavy.exp().sin().log().tanh()).sum() * 0.0 + 1.0)
        return noise

    for _ in range(3):
        step(mg.ones((1000,)))
    times_done = 0
    for k in range(2, 100):
        x, counter, value, held = (
            mg.full((1000,), float(k)),
            generator.counter,
            total.item(),
            w.grad,
        )
        assert held is not None  # a gradient that somebody has is not written over
        was_interrupted = False
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.003)  # seconds: before the code it takes 0.0001
            try:
                step(x)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except KeyboardInterrupt:
            was_interrupted = True
        was_done = total.item() != value
        assert was_done or was_interrupted
        assert generator.counter == counter + was_done
        assert w.grad.tolist() == ([float(k)] * 1000 if was_done else held.tolist())
        times_done += was_done and was_interrupted
        if times_done == 3:
            break
    assert times_done == 3


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupted_call_is_done_whole_or_not_at_all(interrupts, monkeypatch, count):
    monkeypatch.setattr(threads, "count", count)
    w, h = nn.Parameter(np.zeros(200_000, "f4")), mg.zeros((200_000,))

    @mg.compile
    def step(x):
        noise = mg.rand((1,))
        w.grad = None
        (w * x).sum().backward()
        with mg.no_grad():
            w.add_(x)
            h.add_(w.grad)
        return noise

    for _ in range(2):
        step(mg.full((200_000,), 1.0))

    times_interrupted, x = 0, mg.full((200_000,), 1.0)
    for k in range(300):
        if k % 8 == 0:
            time.sleep(0.001)
        counter, value, version = generator.counter, float(h[0]), w.version
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + 7 * k % 400))
            try:
                step(x)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except KeyboardInterrupt:
            times_interrupted += 1
        was_done = generator.counter != counter
        assert float(h[0]) == value + was_done, "h and the generator agree"
        assert float(w[199_999]) == float(w[0]) == float(h[0])
        assert w.version >= version + was_done
    assert times_interrupted > 10
    for _ in range(3):
        value = float(h[0])
        step(x)
        assert float(h[0]) == value + 1.0


@pytest.mark.parametrize("is_held", [False, True])
def test_interrupted_after_any_call_within_it_memory_is_counted_right(monkeypatch, is_held):
    ignored, k = [], 0
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    w = nn.Parameter(np.zeros(1000, "f4"))

    @mg.compile
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return x * 2.0, x.exp().sum()

    x = mg.ones((1000,))
    for _ in range(2):
        step(x)
    (trace,) = step.traces
    file = trace.run.__code__.co_filename
    gc.collect()  # what earlier tests left must not go away in between
    while True:
        trace.wrapper.left[0] = 10  # calls until it is traced again
        held, before = w.grad if is_held else None, mg.memory.stats()["current_bytes"]
        was_interrupted = interrupted(k, file, step, x)
        del held
        assert mg.memory.stats()["current_bytes"] == before
        if not was_interrupted:
            break
        k += 1
    heal(device_named("cpu").pool)  # such an exception loses a block that was just taken
    assert k > 10
    assert not ignored
