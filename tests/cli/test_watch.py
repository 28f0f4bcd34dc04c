"""`watch`: what was saved is graded at once; what an editor does to a file disturbs nothing."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from minigrad.course.affected import affected
from minigrad.course.regrading import settled

TEXT = """\
import math

SCALE = 2
BUG = ("x", None)


def helper(x):
    return SCALE * x


def first(x):
    return helper(x)


def second(x):
    return x


def third(x):
    raise NotImplementedError
"""
STUB = "\n\n".join(f"def {n}(x):\n    raise NotImplementedError\n" for n in ("first", "second"))
NAMES = ["first", "second", "third"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return x\n", "return x + 1\n", ["second"]),
        ("return helper(x)", "return helper(x) + 1", ["first"]),
        ("return SCALE * x", "return x * SCALE", ["first"]),
        ("SCALE = 2", "SCALE = 3", ["first"]),
        ('("x", None)', '("x", 3)', ["first", "second"]),  # belongs to no exercise in sight
        ("import math", "import cmath", ["first", "second"]),
        ("raise NotImplementedError", "raise NotImplementedError()", ["third"]),
        ("    return x\n", "    return x  \n", []),
        ("def first", "# a comment\ndef first", []),
        ("def second(x):\n    return x\n", "", ["second"]),
        ("def first", "def first(:", []),
    ],
)
def test_change_concerns_what_uses_it(old, new, expected):
    assert old in TEXT
    assert affected(NAMES, TEXT, TEXT.replace(old, new, 1), STUB) == expected


BUGGED = """\
BUG = None
OTHER = 1


def step(x):
    return 2 * x


def hunted(x):
    return step(x)


def written(x):
    raise NotImplementedError
"""


@pytest.mark.parametrize(("old", "new"), [("BUG = None", "BUG = 3"), ("return 2", "return 3")])
def test_bug_hunt_is_graded_when_its_answer_or_its_helper_has_changed(old, new):
    names = ["written", "hunted"]
    solved = BUGGED.replace("raise NotImplementedError", "return x")
    assert affected(names, BUGGED, solved, BUGGED) == ["written"]
    for before in (solved, BUGGED):
        found = affected(names, before, solved.replace(old, new), BUGGED)
        assert "hunted" in found


def test_new_file_concerns_what_was_begun():
    assert affected(NAMES, None, TEXT, STUB) == ["first", "second"]


def test_file_is_read_when_it_has_been_written(tmp_path):
    path = tmp_path / "file.py"
    path.write_text("")

    def write_slowly():
        for part in ("def f(", "x):\n", "    return x\n"):
            time.sleep(0.1)
            with path.open("a") as file:
                file.write(part)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    settled(path)
    assert path.read_text() == "def f(x):\n    return x\n"
    writer.join()


class Watching:
    """A running `minigrad watch`, whose lines can be waited for."""

    def __init__(self, folder):
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script,
            signal.signal(signal.SIGINT, signal.default_int_handler)  # which `watch` would inherit
        environment = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "minigrad.cli.main", "watch"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def wait_for(self, text, seconds=20):
        """Return the lines up to the one with this text."""
        seen = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                seen.append(self.lines.get(timeout=0.1))
            except queue.Empty:
                assert self.process.poll() is None, "".join(seen)
                continue
            if text in seen[-1]:
                return "".join(seen)
        raise AssertionError(f"{text!r} did not come:\n{''.join(seen)}")

    def stop(self, number=signal.SIGINT):
        """End it; return its status."""
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def watching(learner):
    running = Watching(learner)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()
    running.reader.join()
    running.process.stdout.close()


@pytest.fixture
def file(learner):
    return learner / "exercises" / "00_start.py"


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_watch_grades_what_was_saved_and_nothing_else(watching, file):
    watching.wait_for("next: 00.hello")
    for wrong, right in (("hello, gradients", "hullo"), ("hullo", "hello, gradients")) * 3:
        change(file, wrong, right)
        out = watching.wait_for("points   seed")
        assert "00.hello" in out
        assert "00.slope" not in out
    watching.wait_for("next: 00.central_difference")
    assert watching.stop() == 0
    watching.wait_for("Stopped watching")


def test_watch_shows_the_failing_line(watching, file):
    watching.wait_for("next:")
    change(file, "hello, gradients", "hullo")
    assert "in hello, from exercises/00_start.py:13 on" in watching.wait_for("points   seed")


def test_watch_survives_what_editors_and_people_do(watching, file, learner):
    good = file.read_text()
    watching.wait_for("next:")
    file.write_text(good.replace("def greeting():", "def greeting(:"))
    out = watching.wait_for("points   seed")
    assert "exercises/00_start.py:9" in out
    file.unlink()
    watching.wait_for("00_start.py is gone; `minigrad reset 00` brings it back")
    file.write_text("")
    time.sleep(0.1)
    file.write_bytes(b"\xff\xfe")
    watching.wait_for("Python cannot read this file")
    temporary = learner / "exercises" / ".00_start.py.swp"
    temporary.write_text(good)
    temporary.replace(file)  # how many editors save
    watching.wait_for("1 of 1 points")
    assert watching.stop(signal.SIGTERM) == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to read times from")
def test_watch_is_no_busy_loop(watching):
    watching.wait_for("next:")

    def ticks():
        fields = Path(f"/proc/{watching.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(2)
    assert (ticks() - before) / os.sysconf("SC_CLK_TCK") < 0.2
