"""What a hostile or broken file may do: it costs its own exercise, never the run."""

import time

import pytest

from minigrad.course.mutants import grade_source, message_key
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import Server
from minigrad.grader.limits import Limits

NAME = "central_difference"
HEAD = "import numpy as np\n\n\n"
RIGHT = "    return (f(x + eps) - f(x - eps)) / (2 * eps)\n"


def function(*lines):
    return "def central_difference(f, x, eps):\n" + "".join(f"    {line}\n" for line in lines)


ATTACKS = {
    "endless loop": (function("while True:", "    pass"), "time"),
    "endless loop at import": ("while True:\n    pass\n", "time"),
    "sleep": (function("import time", "time.sleep(60)"), "time"),
    "ignores signals": (
        function(
            "import signal",
            "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGXCPU):",
            "    signal.signal(s, signal.SIG_IGN)",
            "while True:",
            "    pass",
        ),
        "time",
    ),
    "os._exit(0)": (function("import os", "os._exit(0)"), "exit"),
    "os._exit(0) at import": ("import os\nos._exit(0)\n", "exit"),
    "sys.exit(0)": (function("import sys", "sys.exit(0)"), "exit"),
    "sys.exit(0) at import": ("import sys\nsys.exit(0)\n", "exit"),
    "memory bomb": (function("return bytearray(8 * 2**30)"), "memory"),
    "many small blocks": (
        function("blocks = []", "while True:", "    blocks.append(np.empty(2**26))"),
        "memory",
    ),
    "imports the answer": (
        function("from minigrad.functional import grad", "return grad(f)(x)"),
        "imports_minigrad",
    ),
    "imports the check": (function("import minigrad.course.l00_start"), "imports_minigrad"),
    "imports the grader": (function("import minigrad.grader.run"), "imports_minigrad"),
    "patches numpy.testing": (
        "import numpy\nnumpy.testing.assert_allclose = lambda *a, **k: None\n"
        "numpy.allclose = lambda *a, **k: True\n" + function("return 0.0 * x"),
        "value",
    ),
    "an object equal to everything": (
        "class Yes:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n\n\n"
        + function("return Yes()"),
        "type",
    ),
    "forged output on every descriptor": (
        function(
            "import os",
            "for fd in range(64):",
            "    try:",
            "        os.write(fd, b'{\"ok\": 1}' * 50)",
            "    except OSError:",
            "        pass",
            "os._exit(0)",
        ),
        "garbled",
    ),
    "a forged frame": (
        function(
            "import os, struct, json",
            "text = json.dumps({'ok': None, 'points': 99}).encode()",
            "for fd in range(3, 64):",
            "    try:",
            "        os.write(fd, struct.pack('>II', len(text), 0) + text)",
            "    except OSError:",
            "        pass",
            "os._exit(0)",
        ),
        "garbled",
    ),
    "raises at import": ("raise RuntimeError('no')\n", "raised"),
    "syntax error": ("def central_difference(f, x, eps:\n    return 0\n", "syntax"),
    "null byte": ("x = '\0'\n", "syntax"),
    "wrong shape": (function("return [0.0, 1.0]"), "type"),
    "wrong array shape": (function("return np.zeros((2, 2)) + x * 0"), "shape"),
    "None": (function("pass"), "none"),
    "an array of objects": (function("return np.array([object()])"), "type"),
    "endless printing": (function("while True:", "    print('x' * 1000)"), "output"),
    "endless recursion": (function("return central_difference(f, x, eps)"), "recursion"),
    "crash of the interpreter": (function("import os", "os.kill(os.getpid(), 11)"), "killed"),
    "asks for input": (function("input()"), "input"),
    "no function": ("x = 1\n", "missing"),
    "not a function": ("central_difference = 3\n", "raised"),
    "wrong number of arguments": ("def central_difference(f, x):\n    return 0.0\n", "raised"),
}


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


@pytest.fixture
def short_limits(monkeypatch):
    exercise = load_lesson("00_start").exercises[NAME]
    monkeypatch.setattr(
        exercise, "limits", Limits(load_seconds=0.8, call_seconds=0.8, memory_bytes=2**30)
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_scores_nothing_and_is_told_in_words(attack, server, short_limits):
    source, key = ATTACKS[attack]
    started = time.monotonic()
    result = grade_source(server, "00_start", NAME, HEAD + source, seed=3)
    assert time.monotonic() - started < 30
    assert result.points == 0
    assert message_key(result) == key
    lines = result.first_failure.message.lines()
    assert len(lines) <= 12
    assert all(len(line) <= 100 for line in lines)
    labels = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert labels == ["Given", "Expected", "Got", "Where", "Try"]


def test_attack_then_solution_both_are_graded_by_one_server(server, short_limits):
    loop = HEAD + function("while True:", "    pass")
    right = HEAD + "def central_difference(f, x, eps):\n" + RIGHT
    assert grade_source(server, "00_start", NAME, loop, seed=1).points == 0
    assert grade_source(server, "00_start", NAME, right, seed=1).passed


def test_spawned_worker_where_fork_is_missing_grades_alike():
    right = HEAD + "def central_difference(f, x, eps):\n" + RIGHT
    with Server(fork=False) as server:
        assert grade_source(server, "00_start", NAME, right, seed=1).passed
        ended = grade_source(server, "00_start", NAME, function("import os", "os._exit(3)"), seed=1)
    assert message_key(ended) == "exit"
    assert "3" in ended.first_failure.message.got


def test_prints_of_the_learner_are_shown_and_never_trusted(server):
    source = HEAD + "def central_difference(f, x, eps):\n    print('PASSED all checks')\n"
    result = grade_source(server, "00_start", NAME, source, seed=1)
    assert result.points == 0
    assert message_key(result) == "printed"
    assert "PASSED all checks" in result.first_failure.message.got


def test_two_ended_workers_stop_the_exercise_instead_of_waiting_for_each_check(
    server, short_limits
):
    result = grade_source(
        server, "00_start", NAME, HEAD + function("while True:", "    pass"), seed=1
    )
    assert [check.status for check in result.checks] == ["failed"] * 2 + ["not_run"] * 3


def test_server_is_not_harmed_by_a_worker_that_kills_its_group(server, short_limits):
    source = HEAD + function("import os", "os.killpg(0, 9)")
    assert message_key(grade_source(server, "00_start", NAME, source, seed=1)) == "killed"
    right = HEAD + "def central_difference(f, x, eps):\n" + RIGHT
    assert grade_source(server, "00_start", NAME, right, seed=1).passed


def test_compiling_is_not_counted_as_running(server, monkeypatch):
    exercise = load_lesson("00_start").exercises[NAME]
    monkeypatch.setattr(exercise, "limits", Limits(call_seconds=0.15))
    source = (
        "from numba import njit\n\n\n@njit\ndef divide(a, b):\n    return a / b\n\n\n"
        + function("return divide(f(x + eps) - f(x - eps), 2 * eps)")
    )
    result = grade_source(server, "00_start", NAME, source, seed=1)
    assert result.checks[0].status == "passed"
    assert result.compile_seconds > 0
