"""The pytest plugin: `pytest exercises` grades. It is silent in every project but a course.

A file is claimed only if three things hold: it, or its folder, is named on the command line; its
stem is a lesson's; its folder is called `exercises` or `solutions`, or is given by `--course`. A
claimed file is never imported here: it runs in a worker, and no other plugin collects it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minigrad.grader.folder import CHECKS_FOLDER, STEM

if TYPE_CHECKING:
    from collections.abc import Generator

FOLDERS = ("exercises", "solutions")
# Files that pytest itself runs or obeys when they lie beside the graded ones.
OBEYED = (
    "conftest.py", "__init__.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml",
    "pyproject.toml", "tox.ini", "setup.cfg",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the grader."""
    group = parser.getgroup("minigrad", "grading a minigrad course")
    group.addoption("--course", metavar="FOLDER", help="grade the lessons' files in FOLDER")
    group.addoption(
        "--grade-seed", type=int, metavar="N", help="the seed that an earlier run printed"
    )
    group.addoption(
        "--grade-full", action="store_true", help="show the tracebacks of exercises in full"
    )


def is_claimed(path: Path, config: pytest.Config) -> bool:
    """Return whether this file is an exercise file that the user asked to grade."""
    if path.suffix != ".py" or not STEM.fullmatch(path.stem):
        return False
    course = config.getoption("--course")
    folders_match = path.parent.name in FOLDERS or (
        course is not None and path.parent == Path(course).resolve()
    )
    if not folders_match or config.args_source is not pytest.Config.ArgsSource.ARGS:
        return False
    named = {
        (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        for argument in config.args
    }
    if not {path, path.parent} & named:
        return False
    return (CHECKS_FOLDER / f"l{path.stem}").is_dir()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse to grade a folder with files that pytest itself would run or obey."""
    here = early_config.invocation_params.dir
    options = early_config.known_args_namespace
    for argument in [*options.file_or_dir, *([options.course] if options.course else [])]:
        named = (here / str(argument).partition("::")[0]).resolve()
        folder = named if named.is_dir() else named.parent
        is_course = folder.name in FOLDERS or options.course is not None
        if not is_course or not any(STEM.fullmatch(path.stem) for path in folder.glob("*.py")):
            continue
        for name in OBEYED:
            if (folder / name).exists():
                raise pytest.UsageError(
                    f"{folder.name}/{name} would change how pytest grades. Move it away; or grade "
                    "with `minigrad check`, which reads the exercise files alone."
                )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect a claimed file, in place of all other plugins."""
    others = yield
    if not is_claimed(file_path.resolve(), parent.config):
        return others
    from minigrad.grader.collect import GradedFile  # NumPy is loaded only for a course

    return [GradedFile.from_parent(parent, path=file_path)]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple | None:
    """Count apart what needs no message: exercises not begun, and checks that could not run."""
    if report.when == "call":
        for quiet, letter in (("not begun", "-"), ("not run", "n")):
            if (quiet, True) in report.user_properties:
                return quiet, letter, (quiet.upper(), {"light": True})
    return None
