"""What `check` says besides the results: once what is one thing, and at once what takes long."""

import pytest

from minigrad.cli import checking
from minigrad.cli.main import main
from tests.cli.conftest import ROOT

SOLUTION = (ROOT / "solutions" / "00_start.py").read_text()


@pytest.fixture
def write(learner):
    def write(text):
        (learner / "exercises" / "00_start.py").write_text(text)

    return write


def checked(capsys, what="00"):
    main(["check", what])
    return capsys.readouterr()


def test_syntax_error_is_told_once_a_file(write, capsys):
    write(SOLUTION + "\ndef broken(:\n")
    out = checked(capsys).out
    assert out.count("SyntaxError") == 1
    assert out.count("not graded: the file does not load, see above") == 2


def test_an_exercise_not_begun_is_one_line_among_others_and_a_message_alone(learner, capsys):
    out = checked(capsys).out
    [line] = [line for line in out.splitlines() if line.startswith("· 00.central_difference")]
    assert line.endswith("6 points: not begun")
    assert "still a stub" in checked(capsys, "00.central_difference").out


def test_an_exercise_that_calls_a_stub_is_not_called_untouched(learner, write, capsys):
    stub = (learner / "exercises" / "00_start.py").read_text()
    helper = "\n\ndef helper():\n    raise NotImplementedError\n"
    write(f"{stub}{helper}\n\ndef central_difference(f, x, eps):\n    return helper()\n")
    out = checked(capsys).out
    assert "write it first" in out
    assert "central_difference" not in "".join(
        line for line in out.splitlines() if "not begun" in line
    )


def test_a_failed_check_is_not_read_as_what_happened(write, capsys):
    write(SOLUTION.replace("(2 * eps)", "eps"))
    lines = [line for line in checked(capsys).out.splitlines() if "✗ 0/" in line or "x 0/" in line]
    assert lines
    assert all(", wanted: " in line for line in lines)


def test_the_same_failure_on_the_same_code_asks_whether_the_file_is_saved(write, capsys):
    write(SOLUTION.replace("(2 * eps)", "eps"))
    asks = "Is the file saved?"
    assert asks not in checked(capsys).out
    assert asks in checked(capsys).out
    write(SOLUTION.replace("(2 * eps)", "(3 * eps)"))
    assert asks not in checked(capsys).out
    write(SOLUTION)
    checked(capsys)
    assert asks not in checked(capsys).out


def test_an_endless_loop_shows_that_it_runs(write, capsys, monkeypatch):
    monkeypatch.setattr(checking, "QUIET_SECONDS", 0.2)
    write(
        SOLUTION.replace(
            "    return (f(x + eps)", "    while True:\n        pass\n    return (f(x + eps)"
        )
    )
    said = checked(capsys, "00.central_difference")
    assert "00.central_difference is still running" in said.err
    assert "an endless loop" in said.out
