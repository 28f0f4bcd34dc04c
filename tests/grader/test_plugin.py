"""The pytest plugin, run in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.course.stubs import cut
from minigrad.grader.folder import load_lesson
from minigrad.grader.progress import load

ROOT = Path(__file__).parents[2]
LESSON = load_lesson("00_start")
OF = LESSON.points
SOLUTION = (ROOT / "solutions" / "00_start.py").read_text(encoding="utf-8")


@pytest.fixture
def course(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for folder, text in (("exercises", cut(SOLUTION, "00")), ("solutions", SOLUTION)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "00_start.py").write_text(text)
    return tmp_path


def run(folder, *arguments, autoload=False):
    """Run pytest; without autoload it has no plugin but ours, and starts ten times faster."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = dict(os.environ)
    if not autoload:
        command[3:3] = ["-p", "minigrad.grader.plugin"]
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment
    )


def test_untouched_exercises_score_nothing_with_readable_messages(course):
    done = run(course, "exercises", autoload=True)
    assert done.returncode == 1
    assert "0 of 12 points" in done.stdout
    for label in ("Given ", "Expected ", "Got ", "Where ", "Try "):
        assert label in done.stdout
    assert "exercises/00_start.py:" in done.stdout
    assert "Traceback" not in done.stdout
    assert load(course / ".minigrad")["exercises"]["00.hello"]["points"] == 0


def test_solutions_score_everything_and_leave_no_progress(course):
    done = run(course, "solutions")
    assert done.returncode == 0, done.stdout
    assert f"{OF} of {OF} points" in done.stdout
    assert not (course / ".minigrad").exists()


def test_one_function_and_one_check_can_be_named(course):
    done = run(course, "solutions/00_start.py::slope")
    assert "5 of 5 points" in done.stdout
    done = run(course, "solutions/00_start.py", "-k", "arrays")
    assert "1 passed" in done.stdout


def test_seed_given_back_repeats_the_inputs(course):
    wrong = SOLUTION.replace("/ (2 * eps)", "/ eps")
    (course / "exercises" / "00_start.py").write_text(wrong)
    first, again, other = (
        [line for line in run(course, "exercises", "--grade-seed", seed).stdout.splitlines()
         if line.startswith("Given     central")]
        for seed in ("5", "5", "6")
    )  # fmt: skip
    assert first == again
    assert first != other


def test_hostile_file_costs_only_itself_and_is_never_imported(course):
    (course / "exercises" / "00_start.py").write_text(
        "import os\nopen('imported', 'w').close()\nos._exit(0)\n"
    )
    done = run(course, "exercises", "solutions", "--doctest-modules")
    assert done.returncode == 1
    assert f"{OF} of {2 * OF} points" in done.stdout
    assert not list(course.rglob("imported"))


@pytest.mark.parametrize(
    ("file", "arguments"),
    [
        ("exercises/00_start.py", ["."]),  # the folder was not named
        ("homework/00_start.py", ["homework"]),  # not a folder of a course
        ("exercises/start.py", ["exercises"]),  # not a lesson's stem
        ("exercises/77_other.py", ["exercises"]),  # no lesson that has checks
    ],
)
def test_other_files_are_left_alone(tmp_path, file, arguments):
    path = tmp_path / file
    path.parent.mkdir()
    path.write_text("def hello():\n    return 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = run(tmp_path, *arguments)
    assert done.returncode == 5, done.stdout  # nothing collected
    assert "points" not in done.stdout


def test_file_of_another_project_is_still_collected_as_python(tmp_path):
    path = tmp_path / "exercises" / "77_other.py"
    path.parent.mkdir()
    path.write_text("def test_it():\n    pass\n")
    assert "1 passed" in run(tmp_path, "exercises/77_other.py").stdout


def test_course_option_names_a_folder_of_any_name(course):
    (course / "solutions").rename(course / "handed_in")
    done = run(course, "handed_in", "--course", "handed_in")
    assert f"{OF} of {OF} points" in done.stdout


def test_plugin_imports_nothing_heavy_in_other_projects(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n\n\ndef test_it():\n"
        "    heavy = {'numpy', 'numba', 'matplotlib', 'minigrad.grader.collect'}\n"
        "    assert not heavy & {*sys.modules}\n"
    )
    done = run(tmp_path, "-p", "no:hypothesispytest", "-p", "no:anyio", autoload=True)
    assert "1 passed" in done.stdout, done.stdout


def test_junit_holds_the_points(course):
    run(course, "solutions", "--junitxml", "out.xml")
    text = (course / "out.xml").read_text()
    assert text.count('name="max_points"') == sum(len(e.checks) for e in LESSON.exercises.values())
