"""Ctrl-C and errors in the middle of a compiled call on a GPU: what is left is right."""

import signal

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim
from minigrad.compiler.gpu import bound
from minigrad.ops.creation import generator
from tests.compiler.quick_gpu import QuickGpu
from tests.compiler.twins import elements


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def at_launch(monkeypatch, number, what):
    """what() is called in the launch of that number from now on, counted from 0."""
    launch, left = QuickGpu.launch, [number]

    def launched(self, *arguments):
        launch(self, *arguments)
        left[0] -= 1
        if left[0] == -1:
            what()

    monkeypatch.setattr(QuickGpu, "launch", launched)
    return left


def trainer():
    """(compiled step, model, optimizer): several launches, and random numbers."""
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(4, 3), mg.nn.ReLU(), mg.nn.Linear(3, 2))
    optimizer = optim.Adam(model, 0.1)
    manager = mg.GradManager(model.parameters())

    @mg.compile
    def step(x):
        with manager:
            loss = (model(x + mg.rand((2, 4))) ** 2).mean()
            manager.backward(loss)
        optimizer.step()
        return loss

    for _ in range(2):
        step(mg.ones((2, 4)))
    return step, model, optimizer


def left(model, optimizer):
    """All that a step leaves, as one list of numbers."""
    found = [float(generator.counter)]
    for p in model.parameters():
        state = optimizer.state[p.id]
        found += elements(p).reshape(-1).tolist() + elements(p.grad).reshape(-1).tolist()
        for name in state:
            found += elements(state[name]).reshape(-1).tolist()
    return found


def test_an_interrupted_call_is_done_whole(on_quick, interrupts, monkeypatch):
    step, model, optimizer = trainer()
    other, same_model, same_optimizer = trainer()
    x, k, was_interrupted = mg.ones((2, 4)), 0, True
    while was_interrupted:
        with monkeypatch.context() as patch:
            unreached = at_launch(patch, k, lambda: signal.raise_signal(signal.SIGINT))
            counter = generator.counter
            try:
                step(x)
                was_interrupted = False
            except KeyboardInterrupt:
                was_interrupted = True
            assert was_interrupted == (unreached[0] < 0)
        generator.counter = counter
        other(x)
        assert left(model, optimizer) == left(same_model, same_optimizer), k
        k += 1
    assert k > 5


def test_numbers_of_the_host_that_did_not_arrive_are_copied_again(on_quick, monkeypatch):
    w = mg.nn.Parameter(mg.zeros((3,)))
    optimizer = optim.SGD([w], 1.0)

    @mg.compile
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        optimizer.step()

    x = mg.ones((3,))
    for _ in range(3):
        step(x)
    optimizer.learning_rate = 10.0
    before, copy = elements(w), QuickGpu.copy_flat

    def no_memory(self, source, target):
        if target.dtype is mg.float64:
            raise MemoryError
        copy(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(QuickGpu, "copy_flat", no_memory)
        with pytest.raises(MemoryError):
            step(x)
    assert np.array_equal(elements(w), before)
    step(x)
    assert np.array_equal(elements(w), before - 10.0)


def test_a_program_that_cannot_be_bound_leaves_nothing(on_quick, interrupts, monkeypatch):
    """Writing launches down may take long, since kernels are compiled: Ctrl-C ends it."""
    step, model, optimizer = trainer()
    kept = [p.detach().clone() for p in model.parameters()]  # parameters move at the next write
    before = left(model, optimizer)
    with monkeypatch.context() as patch:
        patch.setattr(bound, "recorder_of", lambda device: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            step(mg.ones((2, 4)))
    assert left(model, optimizer) == before
    step(mg.ones((2, 4)))
    assert left(model, optimizer) != before
    for p, old in zip(model.parameters(), kept, strict=True):
        assert not np.array_equal(elements(p), elements(old))
