"""A folder that comes with files of its own which would change how it is graded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.course.stubs import cut

ROOT = Path(__file__).parents[2]
SOLUTION = (ROOT / "solutions" / "00_start.py").read_text(encoding="utf-8")
FORGE = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"

def pytest_sessionfinish(session):
    session.exitstatus = 0
"""
MARK = "import pathlib\npathlib.Path(__file__).with_name('was_run').touch()\n"
FILES = {
    "conftest.py": MARK + FORGE,
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
    "numpy.py": MARK + "def array(*a): raise SystemExit(0)\n",
    "__init__.py": MARK,
    "minigrad.py": MARK,
    "json.py": MARK + "raise SystemExit(0)\n",
    "sitecustomize.py": MARK,
}


@pytest.fixture
def course(tmp_path):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "00_start.py").write_text(cut(SOLUTION, "00"))
    return tmp_path


def run(course, *command):
    environment = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
    scripts = Path(sys.executable).parent
    return subprocess.run(
        [str(scripts / command[0]), *command[1:]],
        cwd=course, capture_output=True, text=True, timeout=120, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_check_is_not_changed_by_a_file_beside_the_exercises(name, course):
    (course / "exercises" / name).write_text(FILES[name])
    done = run(course, "minigrad", "check", "00", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["points"] == 0
    assert not (course / "exercises" / "was_run").exists()
    (course / "exercises" / "00_start.py").write_text(SOLUTION)
    assert run(course, "minigrad", "check", "00").returncode == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_reset_does_not_wait_for_a_pipe(course):
    (course / "exercises" / "00_start.py").unlink()
    os.mkfifo(course / "exercises" / "00_start.py")
    done = run(course, "minigrad", "reset", "00")
    assert done.returncode == 2
    assert "nothing was reset" in done.stderr
    assert "no regular file" in done.stderr


@pytest.mark.parametrize("name", FILES)
def test_pytest_grades_by_its_own_rules_or_says_why_it_does_not(name, course):
    (course / "exercises" / name).write_text(FILES[name])
    done = run(course, "pytest", "-p", "no:cacheprovider", "exercises")
    assert not (course / "exercises" / "was_run").exists()
    if name in ("conftest.py", "__init__.py", "pytest.ini", "pyproject.toml"):
        assert done.returncode == 4
        assert "minigrad check" in done.stderr
        assert name in done.stderr
    else:
        assert done.returncode == 1, done.stdout + done.stderr
        assert "0 of 12 points" in done.stdout


def test_conftest_of_a_project_that_grades_nothing_is_left_alone(tmp_path):
    (tmp_path / "conftest.py").write_text("def pytest_report_header():\n    return 'I am here'\n")
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = run(tmp_path, "pytest", "-p", "no:cacheprovider", "test_one.py")
    assert done.returncode == 0
    assert "I am here" in done.stdout


def test_conftest_above_the_exercises_is_left_alone(course):
    (course / "conftest.py").write_text("def pytest_report_header():\n    return 'I am here'\n")
    done = run(course, "pytest", "-p", "no:cacheprovider", "exercises")
    assert "I am here" in done.stdout
    assert done.returncode == 1
