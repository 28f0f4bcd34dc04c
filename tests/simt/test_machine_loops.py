"""Loops without end are found, loops that end are left alone; an interruption names its line."""

from unittest import mock

import pytest

from minigrad.errors import ArgumentError, EndlessLoopError
from minigrad.simt.language import loops
from tests.simt.test_machine_errors import run


def test_a_lock_within_a_warp_never_ends(monkeypatch):
    monkeypatch.setattr(loops, "SPIN_LIMIT", 500)
    body = (
        "    while cuda.atomic.cas(x, 0, 0, 1) != 0:\n        pass\n"
        "    x[1] += 1\n    cuda.atomic.exch(x, 0, 0)"
    )
    with pytest.raises(EndlessLoopError) as caught:
        run(body)
    assert "lock-step" in str(caught.value)


def test_endless_loop(monkeypatch):
    monkeypatch.setattr(loops, "LOOP_LIMIT", 1000)
    monkeypatch.setattr(loops, "LOOP_SECONDS", 0.0)
    with pytest.raises(EndlessLoopError, match=r"run 1,000 times, for .* seconds") as caught:
        run("    while i >= 0:\n        x[0] += 0\n", blocks=1, threads=1)
    assert caught.value.fix.startswith("does i change in every round, as in `i += cuda.gridsize")
    assert "MINIGRAD_SIMT_LOOP_SECONDS" in caught.value.fix


def test_a_loop_of_many_rounds_that_ends(monkeypatch):
    """Rounds alone make no loop endless, nor do seconds; the environment may give more seconds."""
    body = "    k = 0\n    while k < 300:\n        k += 1\n    x[i] = k"
    monkeypatch.setattr(loops, "LOOP_LIMIT", 100)
    assert run(body)[0] == 300
    monkeypatch.setattr(loops, "LOOP_SECONDS", 0.0)
    with pytest.raises(EndlessLoopError):
        run(body)
    monkeypatch.setenv(loops.PATIENCE, "600")
    assert run(body)[0] == 300
    monkeypatch.setenv(loops.PATIENCE, "long")
    with pytest.raises(ArgumentError, match="seconds"):
        run(body)
    monkeypatch.delenv(loops.PATIENCE)
    monkeypatch.setattr(loops, "LOOP_LIMIT", 301)
    assert run(body)[0] == 300


def test_an_interrupted_launch_names_the_line_once():
    def stop(*args):
        raise KeyboardInterrupt

    body = "    for k in range(3):\n        if k > 1:\n            print(k)"
    writes = mock.patch("minigrad.simt.language.functions.sys.stdout.write", stop)
    with writes, pytest.raises(KeyboardInterrupt) as caught:
        run(body)
    (note,) = caught.value.__notes__
    assert note.startswith("in the kernel kernel, at ")
    assert note.endswith("print(k)")
