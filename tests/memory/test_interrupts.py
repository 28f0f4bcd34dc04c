"""Ctrl-C at any moment: what must be whole is whole, and nothing is lost.

`python -m tests.interrupts --all` tries every boundary; here some of each, other ones each day.
"""

import random
import signal
import threading
import time

import pytest

import minigrad as mg
from minigrad import optim
from minigrad.kernels import backend
from minigrad.memory import interrupts
from tests.interrupts import broken, modes
from tests.memory.interrupt_scenarios import SCENARIOS

TRIED = {"compiled_and_compared": 4}  # of each scenario; tracing takes long
LONGEST = "compiling"  # seconds each: `python -m tests.interrupts` tries it


@pytest.fixture(autouse=True)
def _pythons_own_handler():
    """Ctrl-C raises KeyboardInterrupt, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != LONGEST])
def test_at_some_boundaries(name):
    scenario = SCENARIOS[name]()
    count = scenario.prepare()
    stride = max(1, count // TRIED.get(name, 40))
    today = int(time.time() // 86400)
    wrong = []
    for k in range(today * 7 % stride, count, stride):
        _, found, where = scenario.attempt(k)
        wrong += [f"boundary {k}, {where}: {what}" for what in found]
    assert not wrong
    assert count > 20


@pytest.mark.parametrize("name", ["forward", "backward", "sgd", "in_place"])
def test_the_harness_sees_what_would_be_torn(name, monkeypatch):
    scenario = SCENARIOS[name]()
    count = scenario.prepare()
    monkeypatch.setattr(interrupts, "_waits", lambda frame: False)
    cpu = backend.device_named("cpu").pool
    assert any(
        scenario.attempt(k)[1] for k in range(0, count, max(1, count // 40))
    )  # and now the pool is broken: what was lost is found again
    for segment in cpu.segments:
        block = segment.first
        while block is not None:
            if block.state == "bin" and block.owners == 0 and block not in list(block.home):
                list.append(block.home, block)
            block = block.right
    for home in cpu.bins.values():
        home[:] = dict.fromkeys(b for b in list(home) if b.owners == 0)
    cpu.current_bytes = sum(b.nbytes for b in cpu.in_use())
    assert not broken(cpu)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals are sent by threads here")
def test_real_signals_at_random_moments():
    """Every one is heard, once, and training goes on to the same numbers."""

    def train(steps, listen):
        mg.manual_seed(0)
        model = mg.nn.Sequential(mg.nn.Linear(3, 8), mg.nn.Tanh(), mg.nn.Linear(8, 2))
        optimizer = optim.Adam(model, 0.01)
        x, done = mg.ones((4, 3)), 0
        while done < steps:
            try:
                while done < steps:
                    model.zero_grad()
                    with mg.enable_grad():
                        loss = (model(x) ** 2).mean()
                    loss.backward()
                    optimizer.step()
                    done += 1
            except KeyboardInterrupt:
                listen()
                done = int(max((s["step"].item() for s in optimizer.state.values()), default=0))
        return [p.tolist() for p in model.parameters()]

    wanted = train(200, lambda: None)
    heard, sent, chance = [0], [0], random.Random(1)
    ended = threading.Event()

    def send():
        while not ended.is_set() and sent[0] < 200:
            time.sleep(chance.random() * 0.002)
            if heard[0] == sent[0] and not ended.is_set():
                sent[0] += 1
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def listen():
        heard[0] += 1

    before, sender = modes(), threading.Thread(target=send)
    sender.start()
    try:
        found = train(200, listen)
        while sent[0] < 20:
            assert train(50, listen) is not None
    finally:
        ended.set()
        while True:
            try:
                sender.join()
                for _ in range(3):
                    len("the last one")
                break
            except KeyboardInterrupt:
                listen()
    assert found == wanted
    assert heard == sent
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
