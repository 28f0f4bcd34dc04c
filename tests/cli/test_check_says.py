"""What `check` says besides the results: once what is one thing, and at once what takes long."""

import json
import subprocess
import sys

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


@pytest.mark.parametrize("what", [["00-01"], ["00,01"], ["0-1"], ["00", "01"]])
def test_lessons_can_be_named_as_a_range(learner, what, capsys):
    main(["update"])  # brings lesson 01
    main(["check", *what, "--json"])
    out = capsys.readouterr().out
    graded = [one["id"] for one in json.loads(out[out.index("{") :])["exercises"]]
    assert {name[:2] for name in graded} == {"00", "01"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "00-99x"], "there is no lesson '00-99x'"),
        (["check", "55-66"], "there is no lesson 55-66"),
        (["book", "pages", "00"], "lessons are chosen by --lessons 00"),
        (["grade", "class", "00-02"], "lessons are chosen by --lessons 00-02"),
        (["book", "00"], "`minigrad book FOLDER --lessons 00`"),
    ],
)
def test_lessons_in_the_wrong_place_are_told_where_they_go(learner, arguments, said, capsys):
    with pytest.raises(SystemExit, match="2"):  # as argparse ends by itself
        sys.exit(main(arguments))
    assert said in capsys.readouterr().err
    assert not (learner / "00").exists()


def test_python_without_docstrings_grades_all_the_same(learner):
    command = [sys.executable, "-OO", "-m", "minigrad.cli.main", "check", "00"]
    run = subprocess.run(command, cwd=learner, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "")
    assert "1 of 12 points" in run.stdout


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
    monkeypatch.setattr(checking, "SLOW_SECONDS", 0.5)
    write(
        SOLUTION.replace(
            "    return (f(x + eps)", "    while True:\n        pass\n    return (f(x + eps)"
        )
    )
    said = checked(capsys, "00.central_difference")
    first, second = said.err.splitlines()
    assert first == "still grading 00.central_difference ..."
    assert "one call has run for " in second
    assert "a call that gives no answer ends after 4 s" in second
    assert "an endless loop" in said.out


@pytest.mark.parametrize("body", ["", "    import numba\n    numba.njit(lambda x: x)(1.0)\n"])
def test_what_takes_long_without_a_slow_call_is_not_called_slow(write, capsys, monkeypatch, body):
    monkeypatch.setattr(checking, "QUIET_SECONDS", 0.001)
    monkeypatch.setattr(checking, "POLL_SECONDS", 0.001)
    write(SOLUTION.replace("    return (f(x + eps)", f"{body}    return (f(x + eps)"))
    assert set(checked(capsys).err.splitlines()) <= {
        f"still grading 00.{name} ..." for name in ("hello", "central_difference", "slope")
    }
