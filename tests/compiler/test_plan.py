"""Fused, planned and generated steps against a plain interpreter of the same recording."""

import contextlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import minigrad as mg
from minigrad.compiler.cpu import schedule, step_text
from minigrad.compiler.trace.capture import capture
from minigrad.devices.threads import threads
from tests.compiler.interpreter import execute
from tests.compiler.random_recordings import recordings
from tests.compiler.running import Run, Stopped

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def check(recording, data, n_threads=1):
    """The same results and the same captured memory, on all its threads and on one, to the bit."""
    memory = {v: x.copy() for v, x in data.items()}
    run, alone = (
        Run(recording, n_threads=n_threads, memory={v: x.copy() for v, x in data.items()})
        for _ in range(2)
    )
    for _ in range(2):
        with np.errstate(all="ignore"):
            wanted = execute(recording, memory)
        got = run.once()
        with threads._busy:
            lonely = alone.once()
        for a, b, c in zip(got, wanted, lonely, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=2e-4, atol=2e-4)
            np.testing.assert_array_equal(a, c)
        for v in data:
            np.testing.assert_allclose(run.memory[v], memory[v], rtol=2e-4, atol=2e-4)
            np.testing.assert_array_equal(run.memory[v], alone.memory[v])


@settings(max_examples=15, **QUIET)
@given(recordings())
def test_random_recordings_give_what_the_interpreter_gives(made):
    check(*made)


@settings(max_examples=8, **QUIET)
@given(recordings())
def test_random_recordings_for_two_threads(made):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "SHARED", 0)
        patch.setattr(schedule, "WORTH", 0)
        check(*made, n_threads=2)


@pytest.mark.parametrize("written_out", [0, 24])
def test_a_thread_that_is_behind_leaves_where_the_others_do(monkeypatch, written_out):
    """Else those ahead, who ran the second check already, would wait for it for ever."""
    monkeypatch.setattr(schedule, "SHARED", 0)
    monkeypatch.setattr(step_text, "WRITTEN_OUT", written_out)
    x, i = mg.variable([1, 2, 3]), mg.variable([1, 1, 1])
    run = Run(capture(lambda: x ** (x**i)).recording, n_threads=2)
    assert [sum(call.stops for call in region) for region in run.plan.regions][:2] == [1, 1]
    function, more = run.plan.machine_code
    for status, barriers in ((1, 1), (2, 2)):  # of the check that has failed
        run.sync[:] = 0
        run.sync[0], run.sync[8] = 1000, status  # the others are at every barrier
        assert function(1, 2, run.table.buffer_info()[0], *more) == status
        assert run.sync[0] == 1000 + barriers


def test_of_two_checks_that_fail_the_first_is_told_whoever_runs_them(monkeypatch):
    monkeypatch.setattr(schedule, "SHARED", 0)
    x, i, j = mg.variable(np.ones((3, 4))), mg.variable([0]), mg.variable([0])
    run = Run(capture(lambda i, j: x[i, j], (i, j)).recording, (i, j), n_threads=2)
    for memory in run.memory.values():
        if memory.dtype == np.int64:
            memory[...] = 99
    for others in (contextlib.nullcontext(), threads._busy):
        for _ in range(5):
            with others, pytest.raises(Stopped, match="1"):
                run.once()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 200])
def test_sums_that_threads_make_in_parts(monkeypatch, dtype, rows):
    """On two threads, and on one, which makes both parts: the same bits."""
    for name in ("SHARED", "WORTH"):
        monkeypatch.setattr(schedule, name, 0)
    x = mg.variable(np.random.default_rng(rows).normal(size=(rows, 29)).astype(dtype))
    recording = capture(lambda: [x.sum(), (x * x).mean(), x.sum(0), (x * 3.0).mean(0)]).recording
    run = Run(recording, n_threads=2)
    parts = [c.kernel.partial for r in run.plan.regions for c in r if c.kind == "finish"]
    if rows == 200:
        assert {what for partial in parts for what, *_ in partial} == {"all", "columns"}
    a, error = x.numpy().astype("f8"), 1e-5 if dtype == "float32" else 1e-12
    wanted = [a.sum(), (a * a).mean(), a.sum(0), (a * 3.0).mean(0)]
    together = run.once()
    with threads._busy:
        alone = run.once()
    for got, lonely, want in zip(together, alone, wanted, strict=True):
        np.testing.assert_allclose(got, want, error, error * rows)
        np.testing.assert_array_equal(got, lonely)


def test_a_batched_product_that_threads_share_equals_numpys():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype("f4") for s in ((5, 256, 192), (5, 192, 128)))
    step = mg.compile(lambda a, b: (a @ b).tanh())
    x, y = mg.variable(a), mg.variable(b)
    for _ in range(3):
        found = step(x, y)
    # rows at a thread's edge may be added in another order: wanted from float64, not from a BLAS
    wanted = np.tanh(a.astype("f8") @ b.astype("f8"))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=3e-5)
