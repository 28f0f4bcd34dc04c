"""`status` and `next`, the endings of all commands, and their help."""

import subprocess
import sys
import zipfile

import pytest

from minigrad.cli import status
from minigrad.cli.main import main, make_parser
from minigrad.course.scores import duration, standings
from minigrad.grader import folder as folder_module
from minigrad.grader import progress
from minigrad.grader.reading import line_of
from minigrad.grader.report import Style
from tests.cli.conftest import ROOT


def commands():
    return next(action for action in make_parser()._actions if action.choices).choices


@pytest.fixture
def course_of_two(learner):
    text = (ROOT / "exercises" / "01_chain_rule.py").read_text()
    (learner / "exercises" / "01_chain_rule.py").write_text(text)
    return learner


def light(folder, *ids):
    progress.update(folder / ".minigrad", lambda data: data["engine"].update({i: {} for i in ids}))


def solve(folder, stem="00_start"):
    text = (ROOT / "solutions" / f"{stem}.py").read_text()
    (folder / "exercises" / f"{stem}.py").write_text(text)


def test_next_names_the_exercise_its_line_and_how_to_open_it(learner, capsys):
    assert main(["next"]) == 0
    out = capsys.readouterr().out
    file = (learner / "exercises" / "00_start.py").read_text().splitlines()
    line = int(out.partition("00_start.py:")[2].partition("\n")[0])
    assert file[line - 1].startswith("def hello")
    assert "about 2 min, 1 point\n" in out
    for command in ("minigrad lab 00", "minigrad check 00.hello", "minigrad hint 00.hello"):
        assert command in out


def test_next_says_whether_a_lesson_is_on_the_fast_track(course_of_two, capsys):
    main(["next", "01"])
    assert "(lessons/01_chain_rule.ipynb), fast track\n" in capsys.readouterr().out
    text = (ROOT / "exercises" / "03_cycles.py").read_text()
    (course_of_two / "exercises" / "03_cycles.py").write_text(text)
    main(["next", "03"])
    assert "(lessons/03_cycles.ipynb)\n" in capsys.readouterr().out


def test_next_goes_on_in_order_and_begins_where_it_is_told(learner, capsys):
    assert main(["check", "00.hello"]) == 0
    assert "next: 00.central_difference" in capsys.readouterr().out
    main(["next"])
    assert "next: 00.central_difference" in capsys.readouterr().out
    main(["next", "01"])
    out = capsys.readouterr().out
    assert "next: 01.mul_backward" in out
    assert "is missing: `minigrad reset 01`" in out


def test_next_says_when_a_lesson_is_solved(learner, capsys):
    solve(learner)
    assert main(["check", "00"]) == 0
    capsys.readouterr()
    assert main(["next", "00"]) == 0
    assert "lesson 00 is solved" in capsys.readouterr().out


def test_next_goes_on_in_the_lesson_that_was_worked_on_last(course_of_two, capsys):
    main(["check", "01.mul_backward"])
    capsys.readouterr()
    main(["next"])
    assert "next: 01.mul_backward" in capsys.readouterr().out
    solve(course_of_two, "01_chain_rule")
    main(["check", "01"])
    capsys.readouterr()
    main(["next"])
    out = capsys.readouterr().out
    assert "next: 02." in out or "next: 00.hello" in out


def test_writing_one_function_leaves_the_points_of_another(learner, capsys):
    path = learner / "exercises" / "00_start.py"
    solve(learner)
    main(["check", "00.hello"])
    path.write_text(path.read_text().replace("(2 * eps)", "(2.0 * eps)"))
    capsys.readouterr()
    main(["next"])
    assert "next: 00.central_difference" in capsys.readouterr().out


def test_next_after_a_change_says_that_it_may_be_solved_already(learner, capsys):
    main(["check", "00.central_difference"])
    path = learner / "exercises" / "00_start.py"
    path.write_text(path.read_text() + "\nMORE = 1\n")
    main(["check", "00.hello"])
    capsys.readouterr()
    main(["next"])
    out = capsys.readouterr().out
    assert "next: 00.central_difference" in out
    assert "has changed since it was graded" in out


def test_next_works_on_a_file_that_is_no_python(learner, capsys):
    path = learner / "exercises" / "00_start.py"
    path.write_text(path.read_text() + "\ndef broken(:\n")
    assert main(["next"]) == 0
    assert "00_start.py:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\n\n\n@d\ndef f():\n    pass\n", 5),
        ("class f:\n    pass\n", 1),
        ("a, f = 1, 2\n", 1),
        ("def f(): pass\ndef f(): pass\n", 2),
        ("def g(): pass\n", 0),
        ("x = (\ndef f(y):\n", 2),
    ],
)
def test_line_of_a_name(text, line):
    assert line_of(text, "f") == line


def test_wall_is_a_grid_whose_tiles_light(learner, capsys, monkeypatch):
    stub = (ROOT / "solutions" / "01_chain_rule.py").read_text()
    (learner / "exercises" / "01_chain_rule.py").write_text(stub)
    assert main(["check", "01"]) == 0
    light(learner, "01.mul_backward")
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert main(["status"]) == 0
    out = capsys.readouterr().out
    wall = out.partition("\n\n")[0].splitlines()
    assert "1 of " in wall[0]
    assert "■■ 01 mul_backward" in wall[1]
    assert "□□ 01 tanh_backward" in wall[1]
    assert all(len(line) <= 80 for line in wall)
    starts = [[i for i, sign in enumerate(line) if sign in "■□"] for line in wall[1:]]
    assert all(set(line) <= set(starts[0]) for line in starts)  # the columns stand in line


@pytest.mark.parametrize("width", [20, 40, 100])
def test_wall_fits_the_terminal(learner, width):
    parts = [one for _, some in standings(_folder(learner)) for one in some]
    for line in status.wall(parts, Style(plain=True), width)[1:]:
        assert len(line) <= max(width, 36)


def _folder(root):
    from minigrad.grader.folder import CourseFolder

    return CourseFolder(root)


def test_long_times_are_told_in_hours():
    assert [duration(n) for n in (2, 165, 240, 1014)] == ["2 min", "165 min", "4 hours", "17 hours"]


def test_status_says_how_long_the_rest_takes_and_what_is_next(learner, monkeypatch, capsys):
    monkeypatch.setattr(status, "duration", "{} min".format)
    main(["status"])
    before = capsys.readouterr().out
    assert "next: 00.hello, about 2 min (exercises/00_start.py:" in before
    main(["check", "00.hello"])
    capsys.readouterr()
    main(["status"])
    after = capsys.readouterr().out

    def left(text):
        return int(text.partition("takes about ")[2].partition(" min")[0])

    assert left(before) - left(after) == 2


def test_status_of_a_damaged_progress_file_begins_anew_and_keeps_it(learner, capsys):
    (learner / ".minigrad" / "progress.json").write_text("{")
    assert main(["status"]) == 0
    (aside,) = (learner / ".minigrad").glob("progress.json.unreadable-*")
    assert aside.read_text() == "{"


def test_mistyped_command_is_suggested(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["chek", "00"])
    assert ended.value.code == 2
    assert "did you mean 'check'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_help_lists_every_command_and_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in commands())
    assert "0 full marks" in out


def test_minigrad_alone_says_what_to_do(capsys):
    assert main([]) == 2
    assert "minigrad next" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), zipfile.BadZipFile("boom"), OSError("boom")]
)
def test_fault_of_minigrad_is_exit_3_and_never_1(learner, monkeypatch, capsys, error):
    def broken(*_):
        raise error

    monkeypatch.setattr(status, "up_to_date", broken)
    assert main(["status"]) == 3
    assert "boom" in capsys.readouterr().err


def test_points_that_cannot_be_remembered_are_shown_all_the_same(learner, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress, "write_atomically", full)
    assert main(["check", "00.hello"]) == 0
    said = capsys.readouterr()
    assert "1 of 1 points" in said.out
    assert "not remembered" in said.err


def test_reader_that_leaves_early_is_no_error(learner):
    command = f"{sys.executable} -m minigrad.cli.main status | head -n 1"
    done = subprocess.run(
        command, shell=True, cwd=learner, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert "Your engine" in done.stdout


@pytest.fixture
def broken_02(course_of_two, monkeypatch, capsys):
    """A course of lessons 00 and 01, and 02, whose package does not import."""
    folder_module.say_once.cache_clear()
    monkeypatch.setitem(sys.modules, "minigrad.course.l02_graph", None)
    text = (ROOT / "exercises" / "02_graph.py").read_text()
    (course_of_two / "exercises" / "02_graph.py").write_text(text)
    yield course_of_two
    folder_module.say_once.cache_clear()


SAID = "lesson 02 cannot be loaded: ModuleNotFoundError: "


@pytest.mark.parametrize("command", ["status", "next", "status 00", "hint slope"])
def test_a_lesson_that_does_not_load_is_skipped_and_said_in_one_line(broken_02, command, capsys):
    assert main(command.split()) == 0
    said = capsys.readouterr()
    assert said.err.count(SAID) == said.err.count("\n") == 1
    assert "02 " not in said.out


def test_a_lesson_that_does_not_load_keeps_no_other_from_full_marks(broken_02, capsys):
    solve(broken_02)
    assert main(["check", "00"]) == 0
    said = capsys.readouterr()
    assert "next: 01.mul_backward" in said.out
    assert said.err.count(SAID) == said.err.count("\n") == 1


@pytest.mark.parametrize("what", [["02"], ["00", "02"], ["all"], ["02.backward"]])
def test_a_lesson_that_does_not_load_is_no_full_marks_itself(broken_02, what, capsys):
    solve(broken_02)
    assert main(["check", *what]) == 3
    said = capsys.readouterr()
    assert SAID in said.err
    assert "Traceback" not in said.err
    assert (f"{folder_module.load_lesson('00_start').points} of " in said.out) == (
        what in (["00", "02"], ["all"])
    )


def test_doctor_names_a_lesson_that_does_not_load(broken_02):
    from minigrad.cli import doctor

    finding = doctor.lessons()
    assert not finding.fine
    assert finding.what.startswith("lesson 02 does not load: ModuleNotFoundError: ")


def test_status_takes_lessons(course_of_two, capsys):
    assert main(["status", "01"]) == 0
    out = capsys.readouterr().out
    assert "tanh_backward" in out
    assert "central_difference" not in out
    assert "lights up when" in out
    with pytest.raises(SystemExit, match="2"):
        sys.exit(main(["status", "77"]))
