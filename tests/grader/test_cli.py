import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import minigrad
from minigrad.cli import checking, lab
from minigrad.cli.main import main
from minigrad.course import check, copies
from minigrad.course.stubs import cut
from minigrad.grader import progress
from minigrad.grader.folder import CourseFolder, load_lesson
from minigrad.grader.launcher import GraderError

ROOT = Path(__file__).parents[2]
OF = load_lesson("00_start").points


@pytest.fixture
def course(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    (tmp_path / "exercises").mkdir()
    for path in (tmp_path / "solutions").glob("*.py"):
        (tmp_path / "exercises" / path.name).write_text(cut(path.read_text(), path.name))
    (tmp_path / "lessons").mkdir()
    monkeypatch.chdir(tmp_path / "lessons")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def solve(course, stem="00_start"):
    shutil.copy(course / "solutions" / f"{stem}.py", course / "exercises" / f"{stem}.py")


def test_check_of_a_solved_lesson_is_full_marks_and_exit_0(course, capsys):
    solve(course)
    assert main(["check", "00"]) == 0
    assert f"{OF} of {OF} points" in capsys.readouterr().out
    assert progress.load(course / ".minigrad")["exercises"]["00.slope"]["points"] == 5


def test_check_of_an_untouched_lesson_is_exit_1(course, capsys):
    assert main(["check", "00.hello"]) == 1
    assert "Try " in capsys.readouterr().out


@pytest.mark.parametrize("what", ["99", "00.nothing", "nonsense"])
def test_check_of_what_does_not_exist_is_exit_2_and_says_what_does(course, what, capsys):
    assert main(["check", what]) == 2
    assert "there" in capsys.readouterr().err


def test_check_outside_a_course_is_exit_2(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2
    assert "exercises/NN_slug.py" in capsys.readouterr().err


def test_fault_of_the_grader_is_exit_3_and_no_zero(course, monkeypatch, capsys):
    def broken(*_, **__):
        raise GraderError("the fork server is gone")

    monkeypatch.setattr(checking, "grade", broken)
    assert main(["check", "00"]) == 3
    assert "the grader itself failed" in capsys.readouterr().err
    assert not (course / ".minigrad" / "progress.json").exists()


def test_wrong_usage_is_exit_2(capsys):
    with pytest.raises(SystemExit) as error:
        main(["dance"])
    assert error.value.code == 2
    capsys.readouterr()


def test_check_as_json_is_json(course, capsys):
    main(["check", "00.hello", "--json", "--seed", "4"])
    data = json.loads(capsys.readouterr().out)
    assert (data["seed"], data["points"], data["of"]) == (4, 0, 1)


def test_hints_come_one_by_one_and_then_the_solution(course, capsys):
    texts = []
    for _ in range(5):
        assert main(["hint", "00.slope"]) == 0
        texts.append(capsys.readouterr().out)
    assert [text[:6] for text in texts[:3]] == ["Hint 1", "Hint 2", "Hint 3"]
    assert "solutions/00_start.py" in texts[3]
    assert texts[3] == texts[4]
    assert main(["hint", "00.slope.1"]) == 0
    assert capsys.readouterr().out == texts[0]


def test_hint_for_a_whole_lesson_asks_which_exercise(course, capsys):
    assert main(["hint", "00"]) == 2
    assert "00.slope" in capsys.readouterr().err


def test_check_of_a_name_without_its_lesson_suggests_the_exercise(course, capsys):
    for name in ("00.helo", "helo", "00.Hello", "HELLO"):
        assert main(["check", name]) == 2
        assert "Did you mean 00.hello" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("adam", "09_adam"),
        ("Adam", "09_adam"),
        ("optimizer", "08_optimizer_state"),
        ("optimzer_state", "08_optimizer_state"),
        ("08.sgd", "08.SGD"),
        ("sgd_updat", "08.sgd_update"),
    ],
)
@pytest.mark.parametrize("command", ["check", "hint"])
def test_unknown_names_are_answered_by_what_was_meant_before_the_list(
    course, command, name, meant, capsys
):
    assert main([command, name]) == 2
    before, _, after = capsys.readouterr().err.partition(f"Did you mean {meant}")
    assert "There are" in after
    assert "There are" not in before


def test_an_exercise_needs_no_lesson_where_one_has_it(course, capsys):
    main(["check", "hello"])
    assert "00.hello" in capsys.readouterr().out
    for name, n in (("slope", 1), ("slope", 2), ("slope.1", 1)):
        assert main(["hint", name]) == 0
        assert f"Hint {n} of 3 for 00.slope" in capsys.readouterr().out


def test_check_of_a_notebook_says_where_the_exercises_are(course, capsys):
    assert main(["check", "lessons/00_start.ipynb"]) == 2
    assert "exercises/00_start.py: check 00" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["exercises/00_start.py", "./exercises/00_start.py"])
def test_check_takes_a_path(course, path, capsys):
    solve(course)
    assert main(["check", path]) == 0
    assert f"{OF} of {OF} points" in capsys.readouterr().out


def test_check_all_is_check_of_every_lesson(course, capsys):
    main(["check", "all", "--seed", "3", "--json"])
    of_all = json.loads(capsys.readouterr().out)
    main(["check", "--seed", "3", "--json"])
    of_none = json.loads(capsys.readouterr().out)
    assert of_all["of"] == of_none["of"] > 12


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"minigrad {minigrad.__version__}\n"


def test_prints_are_shown_in_part_and_all_of_them_are_pointed_to(course, capsys):
    path = course / "exercises" / "00_start.py"
    body = "    for i in range(9):\n        print('line', i)\n    return 0.0\n"
    path.write_text(f"def central_difference(f, x, eps):\n{body}")
    main(["check", "00.central_difference"])
    out = capsys.readouterr().out
    assert "Printed   line 0\n" in out
    assert "line 4\n" in out
    assert "line 5\n" not in out
    assert 'check(load("00").central_difference) shows them all' in out
    card = repr(check("00.central_difference"))
    assert "line 4" in card
    assert "line 4" in check("00.central_difference")._repr_html_()


def test_prints_of_a_right_answer_are_shown_once(course, capsys):
    path = course / "exercises" / "00_start.py"
    body = "    print('x is', x, np.exp(1e9))\n    return (f(x + eps) - f(x - eps)) / (2 * eps)\n"
    path.write_text(f"import numpy as np\n\n\ndef central_difference(f, x, eps):\n{body}")
    assert main(["check", "00.central_difference"]) == 0
    out = capsys.readouterr().out
    assert out.count("Printed   x is") == 1
    assert "Warning" not in out  # of right answers, for inputs that the check chose


def status_line(name, capsys):
    capsys.readouterr()
    assert main(["status"]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if f" {name} " in line)


@pytest.mark.parametrize("how", ["edited", "broken", "reset", "deleted"])
def test_status_keeps_points_through_an_edit_elsewhere_and_no_longer(course, how, capsys):
    solve(course)
    main(["check", "00"])
    assert " 5 of 5 " in status_line("slope", capsys)
    path = course / "exercises" / "00_start.py"
    if how == "edited":
        path.write_text("import math\n" + path.read_text())
    elif how == "broken":
        path.write_text(path.read_text().replace("(2 * eps)", "eps"))
    elif how == "reset":
        main(["reset", "00"])
    else:
        path.unlink()
    line = status_line("slope", capsys)
    if how == "edited":
        assert " 5 of 5 " in line
        assert "before the file changed" not in line
    else:
        assert (" 2 of 5 " if how == "broken" else " 0 of 5 ") in line
        assert "had 5 before the file changed" in line


def test_status_tells_hints_from_the_solution(course, capsys):
    for taken in ("1 hint", "2 hints", "3 hints", "3 hints, told where the solution is"):
        main(["hint", "00.slope"])
        assert status_line("slope", capsys).endswith(f"min  {taken}")


def test_hints_for_a_solved_exercise_are_shown_at_once_and_not_counted(course, capsys):
    solve(course)
    main(["check", "00.slope"])
    capsys.readouterr()
    main(["hint", "00.slope"])
    assert capsys.readouterr().out.startswith("00.slope is solved. Its hints:\n  ")
    assert "hint" not in status_line("slope", capsys)


def test_what_a_lesson_has_graded_at_its_save_is_no_earlier_check(course, capsys):
    path = course / "exercises" / "00_start.py"
    solve(course)
    path.write_text(path.read_text().replace("(2 * eps)", "eps"))
    main(["check", "00.slope"])
    assert "has not changed since" not in capsys.readouterr().out
    main(["check", "00.slope"])
    again = "has not changed since" in capsys.readouterr().out
    progress.update(
        course / ".minigrad",
        lambda data: data["exercises"]["00.slope"].update(watched=True),
    )
    main(["check", "00.slope"])
    assert again
    assert "has not changed since" not in capsys.readouterr().out


def test_status_shows_points_and_tiles(course, capsys):
    solve(course)
    solve(course, "01_chain_rule")
    main(["check", "00"])
    main(["check", "01.mul_backward"])
    progress.update(
        course / ".minigrad", lambda data: data["engine"].update({"01.mul_backward": {}})
    )
    capsys.readouterr()
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    one = load_lesson("01_chain_rule").exercises["mul_backward"].points
    lit = [line for line in lines if line.lstrip().startswith("■ ")]
    assert [line.split()[2] for line in lit] == ["mul_backward"]
    assert any(line.startswith(f"{OF + one} of ") for line in lines)
    (course / "exercises" / "01_chain_rule.py").write_text("")
    assert main(["status"]) == 0
    dark_again = capsys.readouterr().out
    assert "■ ✓" in out
    assert "■ ✓" not in dark_again


def test_reset_of_one_exercise_is_refused_and_says_what_a_reset_is(course, capsys):
    path = course / "exercises" / "00_start.py"
    path.write_text("mine = 1\n")
    assert main(["reset", "00.slope"]) == 2
    assert "the whole file exercises/00_start.py" in capsys.readouterr().err
    assert path.read_text() == "mine = 1\n"
    assert main(["reset", "exercises/00_start.py"]) == 0
    capsys.readouterr()


def test_reset_keeps_a_copy_of_what_the_learner_wrote(course, capsys):
    path = course / "exercises" / "00_start.py"
    path.write_text("mine = 1\n")
    assert main(["reset", "00"]) == 0
    assert path.read_text() == cut((course / "solutions" / "00_start.py").read_text(), "00")
    assert [kept.read_text() for kept in (course / ".minigrad" / "backup").rglob("*.py")] == [
        "mine = 1\n"
    ]
    assert "kept yours as" in capsys.readouterr().out


def test_reset_twice_in_one_second_keeps_both(course, capsys):
    path = course / "exercises" / "00_start.py"
    for text in ("one\n", "two\n"):
        path.write_text(text)
        assert main(["reset", "00"]) == 0
    kept = {kept.read_text() for kept in (course / ".minigrad" / "backup").rglob("*.py")}
    assert kept == {"one\n", "two\n"}
    capsys.readouterr()


def test_reset_of_an_untouched_file_copies_nothing(course, capsys):
    assert main(["reset", "00"]) == 0
    assert "is the stub already" in capsys.readouterr().out
    assert not (course / ".minigrad" / "backup").exists()


def test_reset_changes_nothing_when_the_copy_cannot_be_made(course, monkeypatch, capsys):
    path = course / "exercises" / "00_start.py"
    path.write_text("mine = 1\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies, "write_atomically", full)
    assert main(["reset", "00"]) == 2
    assert "nothing was reset" in capsys.readouterr().err
    assert path.read_text() == "mine = 1\n"


def test_reset_that_crashes_while_writing_leaves_the_learners_file(course, monkeypatch, capsys):
    path = course / "exercises" / "00_start.py"
    path.write_text("mine = 1\n")

    def crash(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", crash)
    assert main(["reset", "00"]) == 2
    assert path.read_text() == "mine = 1\n"
    capsys.readouterr()


def test_doctor_finds_nothing_wrong_here(course, capsys):
    assert main(["doctor"]) in (0, 1)
    out = capsys.readouterr().out
    assert "ok  numpy" in out
    assert "grading works" in out


def test_doctor_says_what_to_do_outside_a_course(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "NO  no course in" in out
    assert "do: " in out


def test_lab_without_the_notebook_says_how_to_make_it(course, capsys):
    assert main(["lab", "00", "--no-browser"]) == 2
    assert "minigrad.course.build" in capsys.readouterr().err


def test_lab_workspace_shows_lesson_and_exercise_side_by_side():
    root = CourseFolder(ROOT)
    content = lab.layout(root, "lessons", "01_chain_rule")
    data = content["data"]
    columns = data["layout-restorer:data"]["main"]["dock"]["children"]
    shown = [[area["widgets"] for area in column["children"]] for column in columns]
    assert shown == [
        [["notebook:lessons/01_chain_rule.ipynb"]],
        [["editor:exercises/01_chain_rule.py"], ["cloned-outputs:lessons/01_chain_rule.ipynb:1"]],
    ]
    assert {"notebook:lessons/01_chain_rule.ipynb", "editor:exercises/01_chain_rule.py"} < {*data}
    assert content["metadata"]["id"] == "lesson-01"
    assert "notebook:work/index.ipynb" in lab.layout(root, "work", None)["data"]


def test_lab_finds_minigrad_and_python_in_its_terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "/nowhere")
    here = Path(sys.executable).parent
    assert lab.environment()["PATH"].split(os.pathsep) == [str(here), "/nowhere"]
    monkeypatch.setenv("SHELL", "/bin/bash")
    *_, start = lab.shell(tmp_path)
    assert f"{here}:$PATH" in Path(start).read_text()
