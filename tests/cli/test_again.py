"""Points stay through edits elsewhere in the file, and what was put in doubt is graded again."""

import pytest

from minigrad.cli.main import main
from minigrad.grader import progress
from minigrad.grader.again import grade_again
from minigrad.grader.folder import CourseFolder
from tests.cli.conftest import ROOT

STEM = "00_start"


@pytest.fixture
def solved(learner, capsys):
    path = learner / "exercises" / f"{STEM}.py"
    path.write_text((ROOT / "solutions" / f"{STEM}.py").read_text())
    assert main(["check", "00"]) == 0
    capsys.readouterr()
    return learner, path


def entries(folder):
    return progress.load(folder / ".minigrad")["exercises"]


def again(folder):
    return grade_again(CourseFolder(folder), [STEM])


def test_nothing_is_graded_where_nothing_changed(solved):
    folder, _ = solved
    before = entries(folder)
    assert again(folder) == []
    assert entries(folder) == before


def test_an_import_costs_nothing_and_is_graded_in_silence(solved, capsys):
    folder, path = solved
    path.write_text("import math\n" + path.read_text())
    before = entries(folder)["00.slope"]
    assert again(folder) == []
    after = entries(folder)["00.slope"]
    assert after["points"] == before["points"] == 5
    assert after["hash"] != before["hash"]
    assert after["runs"] == before["runs"] + 1
    assert capsys.readouterr() == ("", "")


def test_a_helper_that_breaks_its_user_is_found(solved):
    folder, path = solved
    path.write_text(path.read_text() + "\n\ndef slope(f, x):\n    return 0.0\n")
    assert again(folder) == ["00.slope"]
    assert entries(folder)["00.slope"]["points"] < 5
    assert entries(folder)["00.hello"]["points"] == 1


@pytest.mark.parametrize(
    "line", ["def broken(:\n", "raise ValueError('at once')\n", "import nothere\n"]
)
def test_a_file_that_does_not_load_takes_no_points_away(solved, line, capsys):
    folder, path = solved
    path.write_text(path.read_text() + line)
    assert main(["check", "00"]) == 1
    assert again(folder) == []
    capsys.readouterr()
    main(["status"])
    assert "12 of " in capsys.readouterr().out
    main(["next", "00"])
    assert "lesson 00 is solved" in capsys.readouterr().out


def test_next_does_not_go_back_to_what_was_solved(solved, capsys):
    _, path = solved
    path.write_text("import math\n" + path.read_text())
    main(["next", "00"])
    assert "lesson 00 is solved" in capsys.readouterr().out


def test_check_says_what_an_edit_has_broken_elsewhere(solved, capsys):
    folder, path = solved
    path.write_text(path.read_text() + "\n\ndef slope(f, x):\n    return 0.0\n")
    assert main(["check", "00.hello"]) == 0
    assert "00.slope passed before this change and does not any more" in capsys.readouterr().out
    assert entries(folder)["00.slope"]["points"] < 5
