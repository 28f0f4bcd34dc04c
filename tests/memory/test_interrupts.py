"""Ctrl-C at any moment: what must be whole is whole, and nothing is lost.

`python -m tests.interrupts --all` tries every boundary; here some of each, other ones in each turn.
"""

import gc
import importlib
import inspect
import operator
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import minigrad as mg
from minigrad import optim
from minigrad.devices import backend, loader
from minigrad.memory import interrupts
from minigrad.tape.backward import gradients
from minigrad.tape.modes import state
from tests.interrupts import broken, heal, interrupted, modes
from tests.memory.interrupt_scenarios import SCENARIOS

TRIED = {"compiled_and_compared": 4}  # of each scenario; tracing takes long
LONGEST = "compiling"  # seconds each: `python -m tests.interrupts` tries it


@pytest.fixture(autouse=True)
def _pythons_own_handler():
    """Ctrl-C raises KeyboardInterrupt, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with np.errstate():  # NumPy prints arrays within errstate, and does not restore it then
        yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != LONGEST])
def test_at_some_boundaries(name, request):
    scenario = SCENARIOS[name]()
    count = scenario.prepare()
    stride = max(1, count // TRIED.get(name, 40))
    turn = request.config.getoption("turn") or 0
    wrong = []
    for k in range(turn * 7 % stride, count, stride):
        _, found, where = scenario.attempt(k)
        wrong += [f"boundary {k}, {where}: {what}" for what in found]
    assert not wrong
    assert count > 20
    assert backend.device_named("cpu").pool.limit is None  # other tests run in this process


@pytest.mark.parametrize("name", ["forward", "backward", "sgd", "in_place"])
def test_the_harness_sees_what_would_be_torn(name, monkeypatch):
    scenario = SCENARIOS[name]()
    count = scenario.prepare()
    monkeypatch.setattr(interrupts, "_waits", lambda frame: False)
    cpu = backend.device_named("cpu").pool
    assert any(
        scenario.attempt(k)[1] for k in range(0, count, max(1, count // 40))
    )  # and now the pool is broken: what was lost is found again
    heal(cpu)
    assert not broken(cpu)


def test_no_call_of_a_backward_pass_leaves_it_running():
    """After every call that its module makes: one stood between the mode and its `try`."""
    file, left, k = inspect.getsourcefile(gradients), [], 0

    def step():
        with mg.enable_grad():
            x = mg.ones((3,), requires_grad=True)
            (x * x).sum().backward()

    def interrupt_all():
        nonlocal k
        while interrupted(k, file, step):
            left.extend([k] if state.backward_pass is not None else [])
            state.backward_pass = None
            k += 1

    one = threading.Thread(target=interrupt_all)  # which has modes of its own
    one.start()
    one.join()
    assert not left
    assert k > 10


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent by threads here")
def test_real_signals_at_random_moments():
    """Every one is heard, once, and training goes on to the same numbers."""
    heard, sent, chance, ready = [0], [0], random.Random(1), threading.Event()

    def send():
        ready.wait()
        while sent[0] < 60:
            time.sleep(chance.random() * 0.003)
            if heard[0] == sent[0]:
                sent[0] += 1
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def train(is_over):
        mg.manual_seed(0)
        model = mg.nn.Sequential(mg.nn.Linear(3, 8), mg.nn.Tanh(), mg.nn.Linear(8, 2))
        optimizer = optim.Adam(model, 0.01)
        x, done, came = mg.ones((4, 3)), 0, False
        while not is_over(done):
            try:
                ready.set()
                if came:
                    done = max((int(s["step"].item()) for s in optimizer.state.values()), default=0)
                    came = False
                    heard[0] += 1  # now the next one may be sent
                while not is_over(done):
                    model.zero_grad()
                    with mg.enable_grad():
                        loss = (model(x) ** 2).mean()
                    loss.backward()
                    optimizer.step()
                    done += 1
            except KeyboardInterrupt:
                came = True
        return done, [p.tolist() for p in model.parameters()]

    train(lambda done: done == 3)  # kernels are loaded, by libraries with destructors of their own
    ready.clear()
    before, sender = modes(), threading.Thread(target=send)
    gc.disable()  # what others do when it runs is no business of ours
    try:
        sender.start()
        done, found = train(lambda done: heard[0] >= 60)
        sender.join()
    finally:
        gc.enable()
    assert (done, found) == train(lambda now: now == done)
    assert heard == sent == [60]
    assert modes() == before
    assert not broken(backend.device_named("cpu").pool)


@interrupts.uninterrupted
def whole(within, seen):
    within()
    for _ in range(100):
        len(seen)
    seen.append("whole")


def raises():
    signal.raise_signal(signal.SIGINT)
    for _ in range(3):
        len("here it comes")


def test_a_signal_waits_for_what_is_marked_and_comes_then():
    interrupts.ready()
    seen = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes after the first line
        whole(raises, seen)
        len(seen)
        seen.append("went on")
    assert seen == ["whole"]


def test_it_waits_in_a_program_that_is_traced_too():
    """As by coverage or a debugger."""
    interrupts.ready()
    seen, outer = [], sys.gettrace()

    def within():  # where a traced function begins, Python 3.11 handles signals until none is left
        signal.raise_signal(signal.SIGINT)
        (lambda: None)()

    sys.settrace(lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes later
            whole(within, seen)
            time.sleep(10)
            seen.append("went on")
    finally:
        sys.settrace(outer)
    assert seen == ["whole"]


def test_it_does_not_wait_for_what_others_wrote():
    interrupts.ready()
    seen, open_ = [], interrupts.interruptible(lambda: raises())
    with pytest.raises(KeyboardInterrupt):
        whole(open_, seen)
    assert not seen


def test_a_destructor_does_not_swallow_it(monkeypatch):
    ignored = []
    monkeypatch.setattr("sys.unraisablehook", ignored.append)
    interrupts.ready()

    class Buffer:  # whose last owner lets go: Array.__del__ asks it
        pool = property(lambda self: self)
        home = property(lambda self: self)
        nbytes = current_bytes = 0
        owners = 1
        given_back = 0

        def append(self, buffer):
            raises()
            self.given_back += 1

    buffer = Buffer()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes after the second line
        array = mg.array.array.Array(buffer, (1,), mg.array.dtypes.float32)
        del array
        len("here it comes")
    assert buffer.given_back == 1
    assert not ignored


def test_locks_of_the_compilers_are_marked():
    mg.ones((3,)).sum()
    for module, names in loader.OF_COMPILERS.items():
        for name in names:
            function = operator.attrgetter(name)(importlib.import_module(module))
            assert id(function.__code__) in interrupts._whole, name


def test_handlers_of_others_stay():
    def mine(number, frame):
        """Does nothing."""

    for handler in (mine, signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, handler)
        interrupts.ready()
        mg.ones((3,)).sum()
        assert signal.getsignal(signal.SIGINT) is handler


def test_only_the_main_thread_sets_one():
    found = []

    def look():
        interrupts.ready()
        found.append(signal.getsignal(signal.SIGINT))

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert found == [signal.default_int_handler]
    look()
    assert found[1] is not signal.default_int_handler


def test_a_block_ends_whatever_comes():
    interrupts.ready()
    seen = []

    @interrupts.block
    def noted(name):
        seen.append(f"{name} begins")
        try:
            yield name
        finally:
            raises()
            seen.append(f"{name} ends")

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it comes at the end of the block
        with noted("a") as name:
            seen.append(name)
        len("here it comes")
    assert seen == ["a begins", "a", "a ends"]
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), interrupts.block(plain)(seen):
            raise error
        assert seen.pop() == "ended"


def plain(seen):
    try:
        yield
    finally:
        seen.append("ended")
