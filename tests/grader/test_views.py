"""The views of one result, each beside a golden file: terminal, JSON, JUnit XML, Gradescope.

`python -m tests.grader.test_views` writes the golden files anew; look at the difference then.
"""

import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minigrad.cli.main import main
from minigrad.course.mutants import grade_source
from minigrad.course.stubs import cut
from minigrad.grader.card import Card
from minigrad.grader.launcher import Server
from minigrad.grader.message import Message
from minigrad.grader.report import Style, text
from minigrad.grader.result import CheckResult, ExerciseResult, Result
from minigrad.grader.views import as_json, gradescope, junit

GOLDEN = Path(__file__).with_name("golden")
ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


def result():
    """A result with every kind of check in it, the same at every call."""
    message = Message(
        "sign",
        "f(2.0, [1, 2])",
        "-4.0",
        "4.0\n1 of 1 entries differ",
        "exercises/90_test.py:7, in f\n  return a < b & c",
        "Look at the sign. " * 8,
        full="Traceback: somewhere",
    )
    ended = Message("exit", "f()", "an answer", "it ended itself", "exercises/90_test.py", "Stay.")
    exercises = [
        ExerciseResult(
            "90.half", 2, 10,
            [
                CheckResult("right", "It is right.", 2, "passed", seconds=0.25),
                CheckResult("sign", "It has the sign.", 1, "failed", message, "seen\x1b\x00<&>\n"),
            ],
            seconds=1.25, compile_seconds=0.5,
        ),
        ExerciseResult(
            "90.ended", 5, 30,
            [
                CheckResult("first", "It answers.", 3, "failed", ended),
                CheckResult("second", "It answers again.", 4, "not_run"),
                CheckResult("third", "It waits.", 1, "failed", ended, without=("first", "second")),
                CheckResult("fourth", "It stays.", 0, "failed", ended),
                CheckResult("fifth", "It has the sign.", 0, "failed", message),
            ],
            seconds=2.0, limits_missing=["memory"], needs="engine", uses=["90.half", "91.done"],
        ),
        ExerciseResult(
            "91.done", 1, 2, [CheckResult("all", "It works.", 5, "passed", seconds=0.125)],
            seconds=0.125,
        ),
    ]  # fmt: skip
    return Result(12345, exercises, {"90_test": "0123456789abcdef"})


def coloured(monkeypatch, columns="120"):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", columns)
    return text(result(), Style(Terminal()))


VIEWS = {
    "plain.txt": lambda patch: text(result(), Style(plain=True)),
    "full.txt": lambda patch: text(result(), Style(plain=True), full=True),
    "ascii.txt": lambda patch: text(result(), Style(io.TextIOWrapper(io.BytesIO(), "ascii"))),
    "colour.txt": coloured,
    "narrow.txt": lambda patch: coloured(patch, "60"),
    "result.json": lambda patch: as_json(result()),
    "junit.xml": lambda patch: junit(result()),
    "gradescope.json": lambda patch: json.dumps(gradescope(result()), indent=1),
    "card.html": lambda patch: Card(result())._repr_html_(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_is_as_its_golden_file(name, monkeypatch):
    expected = (GOLDEN / name).read_text(encoding="utf-8")
    assert VIEWS[name](monkeypatch).rstrip("\n") == expected.rstrip("\n")


def test_no_color_and_a_file_give_no_escapes(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in text(result(), Style(Terminal())).replace("seen\x1b", "")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[3" not in text(result(), Style(io.StringIO()))


def test_lines_fit_the_terminal(monkeypatch):
    import re

    for columns in (60, 80, 120):
        shown = re.sub("\x1b\\[[0-9]*m", "", coloured(monkeypatch, str(columns)))
        messages = [line for line in shown.splitlines() if line.startswith("      ")]
        assert max(map(len, messages)) < columns


def test_only_what_fails_as_the_first_does_is_drawn_as_its_consequence():
    same, other = (Message("value", "f()", "1", "2", where, "Look.") for where in ("in f", "in g"))
    held = CheckResult("held", "It holds.", 1, "failed", same, without=("first",))
    checks = [
        CheckResult(name, "It is right.", 1, "failed", message)
        for name, message in (("first", same), ("second", same), ("third", other))
    ]
    exercise = ExerciseResult("90.f", 1, 1, [*checks, held])
    leaders = [exercise.leader_of(check) for check in exercise.checks]
    assert leaders == [None, checks[0], None, checks[0]]
    exercise.checks = [held, checks[0]]  # it shows the message of the other, which is the cause
    assert [exercise.leader_of(check) for check in exercise.checks] == [None, None]


def test_every_view_counts_the_same_points():
    graded = result()
    xml = ElementTree.fromstring(junit(graded))
    points = sum(int(p.get("value")) for p in xml.iter("property") if p.get("name") == "points")
    of = sum(int(p.get("value")) for p in xml.iter("property") if p.get("name") == "max_points")
    scope = gradescope(graded)
    assert (points, of) == (graded.points, graded.of) == (7, 16)
    assert (scope["score"], sum(test["max_score"] for test in scope["tests"])) == (7, 16)
    assert json.loads(as_json(graded))["points"] == 7


def test_views_of_a_real_run_are_well_formed():
    stub = cut((ROOT / "solutions" / "00_start.py").read_text(encoding="utf-8"), "00")
    with Server() as server:
        graded = Result(3, [grade_source(server, "00_start", "hello", stub, 3)])
    assert ElementTree.fromstring(junit(graded)).find(".//failure").text
    assert gradescope(graded)["tests"][0]["output"].startswith("Given")


@pytest.fixture
def course(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    stub = cut((ROOT / "solutions" / "00_start.py").read_text(encoding="utf-8"), "00")
    (tmp_path / "exercises" / "00_start.py").write_text(stub, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_writes_the_views_to_files(course, capsys):
    assert main(["check", "00.hello", "--junit", "j.xml", "--gradescope", "g.json"]) == 1
    assert ElementTree.parse(course / "j.xml").getroot().tag == "testsuites"
    assert json.loads((course / "g.json").read_text())["score"] == 0
    assert "0 of 1 points" in capsys.readouterr().out


def test_view_that_cannot_be_written_is_said_in_a_sentence(course, capsys):
    assert main(["check", "00.hello", "--junit", "no/such/folder/j.xml"]) == 2
    error = capsys.readouterr().err
    assert "no/such/folder/j.xml" in error
    assert "Traceback" not in error


if __name__ == "__main__":
    patch = pytest.MonkeyPatch()
    for name, view in VIEWS.items():
        (GOLDEN / name).write_text(view(patch).rstrip("\n") + "\n", encoding="utf-8")
    patch.undo()
    sys.stdout.write(f"{len(VIEWS)} golden files written\n")
