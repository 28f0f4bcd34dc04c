"""What goes wrong in a compiled step goes wrong as in an eager one; threads, forks, Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.compiler.cpu import schedule
from minigrad.devices.threads import threads as pool
from minigrad.errors import BoundsError, MinigradError, NonFiniteError
from tests.compiler.networks import mlp, rows
from tests.compiler.twins import left_behind, same
from tests.interrupts import timers

ZEROS = [0, 1, 2, 3, 0]


class Scene:
    """A model whose step fails on bad labels, and on gradients that are no numbers."""

    def __init__(self, is_compiled):
        mg.manual_seed(5)
        self.net = mlp()
        self.optimizer = optim.Adam(self.net, 0.01)
        self.manager = mg.GradManager(self.net.parameters())
        self.x, self.y = mg.randn((5, 8)), mg.variable(ZEROS)
        self.run = mg.compile(self.step) if is_compiled else self.step
        for _ in range(3):
            self.run(self.x, self.y)

    def step(self, x, y):
        with self.manager:
            loss = mg.cross_entropy(self.net(x), y)
            self.manager.backward(loss)
        optim.clip_grad_norm_(self.net, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def left(self):
        return left_behind([self.net, self.optimizer])


def outcome(run, *args):
    """The error's type and message, or what came out."""
    try:
        return run(*args).numpy().copy()
    except MinigradError as error:
        return type(error), str(error)


def bad_input():
    x = mg.ones((5, 8))
    x[2, 3] = float("nan")
    return x


BAD = {
    "a label too high": (BoundsError, lambda s: (s.x, mg.variable([0, 1, 2, 9, 0]))),
    "a label below zero": (BoundsError, lambda s: (s.x, mg.variable([0, 1, -1, 2, 0]))),
    "a gradient that is no number": (NonFiniteError, lambda s: (bad_input(), s.y)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("what", BAD)
def test_a_step_that_fails_leaves_what_an_eager_one_leaves(what, threads, monkeypatch):
    for name in ("SHARED", "WORTH"):
        monkeypatch.setattr(schedule, name, 0)
    monkeypatch.setattr(pool, "count", threads)
    kind, arguments = BAD[what]
    eager, compiled = Scene(False), Scene(True)
    got, wanted = (outcome(s.run, *arguments(s)) for s in (compiled, eager))
    assert wanted[0] is kind
    assert got == wanted
    same(eager.left(), compiled.left(), 3e-5, "after the error")
    for scene in (eager, compiled):
        scene.optimizer.zero_grad()
    for n in range(4):  # it goes on
        same(outcome(eager.run, eager.x, eager.y), outcome(compiled.run, compiled.x, compiled.y),
             3e-5, f"call {n} after")  # fmt: skip
    same(eager.left(), compiled.left(), 3e-5, "later")
    assert len(compiled.run.traces) == 1


def test_gradients_accumulated_before_a_failure_are_told():
    scene = Scene(True)
    outcome(scene.run, bad_input(), scene.y)  # leaves gradients, which are added to from now on
    before = scene.left()
    kind, text = outcome(scene.run, scene.x, scene.y)
    assert kind is NonFiniteError
    assert "updated before" in text
    after = scene.left()
    for name, value in before.items():
        if ".grad" not in name:
            same(value, after[name], 0.0, name)


INDEXING = {
    "index": (lambda w, i: w[i], 6),
    "negative index": (lambda w, i: w[i], -7),
    "gather": (lambda w, i: mg.gather(w, i[:, None], 0), 6),
    "write": (lambda w, i: w.clone().__setitem__(i, 1.0) or w.sum(), -7),
}


@pytest.mark.parametrize("name", INDEXING)
def test_an_index_that_lies_outside_at_a_later_call(name):
    function, bad = INDEXING[name]
    w, good = mg.randn((6, 3)), mg.variable([1, 0])
    step = mg.compile(function)
    values = [step(w, good).numpy().copy() for _ in range(4)]
    for n in (1, 2):  # as often as one likes
        assert outcome(step, w, mg.variable([0, bad])) == outcome(
            function, w, mg.variable([0, bad])
        )
        np.testing.assert_allclose(step(w, good).numpy(), values[n], 1e-6)
    assert len(step.traces) == 1


def test_nothing_is_written_beside_a_check(monkeypatch):
    for name in ("SHARED", "WORTH"):
        monkeypatch.setattr(schedule, name, 0)
    monkeypatch.setattr(pool, "count", 2)
    table, w = mg.randn((6, 3)), mg.zeros((3,))

    @mg.compile
    def step(i, x):
        y = table[i]
        w.add_(x)
        return y

    for _ in range(3):
        step(mg.variable([5]), mg.ones((3,)))
    assert outcome(step, mg.variable([6]), mg.ones((3,)))[0] is BoundsError
    assert w.tolist() == [3.0] * 3


@pytest.mark.parametrize("mode", ["0", "check"])
def test_modes_of_the_environment(mode, monkeypatch):
    monkeypatch.setenv("MINIGRAD_COMPILE", mode)
    eager, compiled = Scene(False), Scene(True)
    for _ in range(5):
        same(outcome(eager.run, eager.x, eager.y), outcome(compiled.run, compiled.x, compiled.y),
             3e-5, mode)  # fmt: skip
    same(eager.left(), compiled.left(), 3e-5, mode)
    assert len(compiled.run.traces) == (0 if mode == "0" else 1)


WITHOUT_BLAS = """
import minigrad as mg
from tests.compiler.test_equality_failures import Scene, outcome
from tests.compiler.twins import same
eager, compiled = Scene(False), Scene(True)
for n in range(5):
    wanted, got = (outcome(s.run, s.x, s.y) for s in (eager, compiled))
    same(wanted, got, 3e-5, n)
same(eager.left(), compiled.left(), 3e-5, "after")
"""


def test_products_by_numpy():
    environment = {**os.environ, "MINIGRAD_BLAS": "numpy"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_BLAS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_two_threads_call_one_step():
    w, step = mg.zeros((4,)), mg.compile(lambda x: (w.add_(x), (x * 2.0).sum())[1])
    step(mg.zeros((4,)))
    wrong = []

    def work(value):
        x = mg.full((4,), float(value))
        for _ in range(200):
            if step(x).item() != 8.0 * value:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert w.tolist() == [600.0] * 4


def test_one_compiled_step_inside_another():
    inner = mg.compile(lambda x: mg.tanh(x) * 2.0)
    outer = mg.compile(lambda x: (inner(x) + inner(x * 0.5)).sum())
    x = mg.randn((5,))
    for _ in range(4):
        inner(x)
        wanted = (np.tanh(x.numpy()) * 2.0 + np.tanh(x.numpy() * 0.5) * 2.0).sum()
        np.testing.assert_allclose(outer(x).item(), wanted, 1e-5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timers for signals")
def test_interrupts_leave_whole_steps():
    w, count = mg.zeros((20_000,)), mg.zeros((), "int64")

    @mg.compile
    def step(x):
        w.add_(x)
        count.add_(1)
        return w.sum()

    x = mg.ones((20_000,))
    for _ in range(3):
        step(x)
    interrupts = 0
    with timers():
        for n in range(40):
            try:
                # once more if it fell into a __del__, where Python swallows it
                signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.00013 * n, 0.5)
                while True:
                    step(x)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                interrupts += 1
            assert (w.numpy() == count.item()).all(), n
    assert interrupts == 40
    np.testing.assert_allclose(step(x).item(), 20_000.0 * count.item(), 1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_goes_on():
    scene, twin = Scene(True), Scene(False)
    child = os.fork()
    if not child:
        try:
            losses = [outcome(s.run, s.x, s.y) for s in (scene, twin)]
            os._exit(0 if np.allclose(*losses, 1e-4) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    same(outcome(twin.run, twin.x, twin.y), outcome(scene.run, scene.x, scene.y), 3e-5, "parent")


def test_arguments_of_another_kind_after_a_failure():
    net = nn.Linear(8, 4)
    step = mg.compile(mg.no_grad()(lambda x, y: mg.cross_entropy(net(x), y)))
    (x, y), (few, labels) = *rows(12, 1), *rows(5, 1)
    for _ in range(3):
        step(x, y)
    with pytest.raises(BoundsError):
        step(few, labels + 10)
    for _ in range(3):
        assert step(few, labels).shape == ()
    assert len(step.traces) == 2
