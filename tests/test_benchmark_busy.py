"""The benchmark of busy machines: what it starts, it ends; what fails is a dash."""

import contextlib
import subprocess

from benchmarks import busy
from benchmarks.process import PeerError
from benchmarks.rows import ROWS


def test_its_steps_are_rows():
    assert {row.name for row in ROWS} >= set(busy.STEPS)


def test_a_busy_loop_ends_with_its_block(monkeypatch):
    children, popen = [], subprocess.Popen

    def noted(*arguments, **named):
        children.append(popen(*arguments, **named))
        return children[-1]

    monkeypatch.setattr(busy.subprocess, "Popen", noted)
    with contextlib.suppress(ZeroDivisionError), busy.busy_loop():
        was_running = children[0].poll() is None
        _ = 1 / 0
    assert was_running
    assert children[0].poll() is not None


def test_copies_run_at_once_and_the_slower_one_counts():
    class Copy:
        together = 0

        def __init__(self, seconds):
            self.seconds = seconds

        def ask(self, command, seconds):
            assert (command, seconds) == ("round", 0.5)
            return {"median": self.seconds}

    assert busy.side_by_side([Copy(0.25), Copy(0.75)], 0.5) == 0.75


def test_a_peer_that_fails_is_a_dash(capsys):
    def fails():
        raise PeerError("no such library")

    assert busy.figures(fails) == ["–"] * 4
    assert "no such library" in capsys.readouterr().err
    assert busy.figures(lambda: [0.001] * 4) == ["1 ms"] * 4


def test_one_step_is_measured():
    row = next(row for row in ROWS if row.name == "recurrent-step")
    assert all(x > 0 for x in busy.measured("compiled", row, 0.05))
