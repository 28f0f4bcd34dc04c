"""Compiled functions with real programs: threads, interrupts, processes, the cache on disk."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.devices.threads import threads

ROWS, COLUMNS = 256, 512


def values(*shape, seed=0):
    return mg.variable(np.random.default_rng(seed).normal(size=shape).astype("f4"))


def scene():
    """A step large enough for two threads, and what it changes."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(COLUMNS, 256), nn.Tanh(), nn.Linear(256, 10))
    optimizer = optim.Adam(model, learning_rate=0.001)

    def step(x, y):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, step


X, Y = values(ROWS, COLUMNS), mg.variable(np.arange(ROWS) % 10)


@pytest.fixture(params=[1, 2])
def big(request, monkeypatch):
    """(model, compiled step, eager losses) of a program of one or of two threads."""
    monkeypatch.setattr(threads, "count", request.param)
    eager = scene()[1]
    losses = [eager(X, Y).item() for _ in range(8)]
    model, step = scene()
    step = mg.compile(step)
    for _ in range(2):
        step(X, Y)
    assert step.traces[0].plan.threads == request.param
    return model, step, losses[2:]


def test_training_is_what_eager_training_is(big):
    _, step, losses = big
    np.testing.assert_allclose([step(X, Y).item() for _ in losses], losses, rtol=1e-3)
    assert "def step(" in step.source()


def test_while_another_caller_has_the_threads(big):
    _, step, losses = big
    with threads._busy:
        np.testing.assert_allclose([step(X, Y).item() for _ in losses], losses, rtol=1e-3)


def test_several_threads_with_steps_of_their_own(big):
    found = {}

    def work(k):
        mine = mg.compile(steps[k])
        found[k] = [mine(X, Y).item() for _ in range(8)]

    steps = [scene()[1] for _ in range(3)]
    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    for k in range(3):
        np.testing.assert_allclose(found[k][2:], big[2], rtol=1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_child_goes_on(big):
    _, step, losses = big
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 3
        try:
            fine = np.allclose([step(X, Y).item() for _ in losses], losses, rtol=1e-3)
            status = 0 if fine else 4
        finally:
            os._exit(status)
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_allclose([step(X, Y).item() for _ in losses], losses, rtol=1e-3)


def test_donated_memory_is_written_over():
    step = mg.compile(lambda state, x: state * 2.0 + x, donate=0)
    state, x, wanted = mg.zeros((1000,)), mg.ones((1000,)), 0.0
    for k in range(6):
        address, clone = state.data_ptr(), state.clone() if k == 4 else None
        state = step(state, x)
        assert k == 0 or (state.data_ptr() == address) == (k != 4)
        assert clone is None or clone.tolist() == [wanted] * 1000
        wanted = 2 * wanted + 1
        assert state.tolist() == [wanted] * 1000


def test_donation_that_the_program_cannot_use_says_why():
    step, x = mg.compile(lambda s, x: s @ x, donate="s"), mg.ones((3, 3))
    step(mg.ones((3, 3)), x)
    state = mg.ones((3, 3))
    with pytest.raises(mg.errors.ArgumentError, match="written, and not element for element"):
        step(state, x)
    assert state.tolist() == [[1.0] * 3] * 3


def test_a_failing_check():
    table = values(10, 4)
    step = mg.compile(lambda i: table[i] * 2.0)
    for _ in range(3):
        np.testing.assert_allclose(step(mg.variable([1, -1])).numpy(), table.numpy()[[1, -1]] * 2)
    with pytest.raises(mg.errors.BoundsError) as caught:
        step(mg.variable([1, 10]))
    with pytest.raises(mg.errors.BoundsError) as eager:
        table[mg.variable([1, 10])]
    assert caught.value.wanted == eager.value.wanted
    np.testing.assert_allclose(step(mg.variable([2, 3])).numpy(), table.numpy()[[2, 3]] * 2)


# -- processes -----------------------------------------------------------------------------------

PROGRAM = """
import json, sys
import minigrad as mg
from minigrad.devices import loader
mg.manual_seed(0)
w = mg.nn.Parameter([1.0, 2.0, 3.0])
@mg.compile
def step(x):
    w.grad = None
    ((w * x).tanh() * 0.25).sum().backward()
    with mg.no_grad():
        w.add_(w.grad)
    return w.grad.sum()
print("ready", flush=True)
found = [step(mg.ones((3,))).item() for _ in range(4)]
hits = misses = 0
for name in loader.loaded:
    step_ = getattr(sys.modules[name], "step", None)
    if step_ is not None:
        hits += sum(step_.stats.cache_hits.values())
        misses += sum(step_.stats.cache_misses.values())
print(json.dumps({"found": found, "hits": hits, "misses": misses}))
"""


def start(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MINIGRAD", "NUMBA"))}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=env | {"MINIGRAD_CACHE": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def result(process):
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that two processes filled at once, and what they found."""
    folder = tmp_path_factory.mktemp("cache")
    both = [start(folder) for _ in range(2)]
    return folder, [result(p) for p in both]


def test_two_processes_at_once_agree_and_the_next_compiles_nothing(filled):
    folder, (first, second) = filled
    assert first["found"] == second["found"]
    third = result(start(folder))
    assert third["found"] == first["found"]
    assert (third["hits"], third["misses"]) == (1, 0)


@pytest.mark.parametrize("delay", [0.3, 1.0, 2.0, 3.5])
def test_a_killed_process_leaves_nothing_that_breaks_the_next(filled, tmp_path, delay):
    process = start(tmp_path)
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)  # seconds
    process.kill()
    process.communicate()
    assert result(start(tmp_path))["found"] == filled[1][0]["found"]


def test_damaged_programs_on_disk_are_made_anew(filled, tmp_path):
    for file in sorted(filled[0].rglob("*")):
        if file.is_file():
            target = tmp_path / file.relative_to(filled[0])
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes()[:300])
    assert result(start(tmp_path))["found"] == filled[1][0]["found"]


def test_a_program_of_another_version_is_not_used(filled, tmp_path):
    """The text names the versions: with others it is another file."""
    steps = [p for p in filled[0].glob("minigrad_kernel_*.py") if "def step(" in p.read_text()]
    assert steps
    assert all("# Generated by minigrad for python" in p.read_text() for p in steps)
    for file in filled[0].glob("*.py"):
        text = file.read_text().replace("numba 0.", "numba 9.").replace(" + ", " - ")
        pathlib.Path(tmp_path / file.name).write_text(text)
    assert result(start(tmp_path))["found"] == filled[1][0]["found"]
