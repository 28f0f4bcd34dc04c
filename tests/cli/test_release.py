"""`release`: a class repository that runs, and that gives nothing away."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from minigrad.cli.main import main
from minigrad.course.percent import notebook_text
from minigrad.course.release import missing_needs
from minigrad.course.source import Source
from minigrad.course.stubs import BEGIN, END, STARTS_AS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "class"
    assert main(["release", str(folder), "--lessons", "01-02"]) == 0
    return folder


def run(folder, *arguments):
    """Run the release's own minigrad, and none that is installed."""
    return subprocess.run(
        [sys.executable, "-m", "minigrad.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(folder)},
        check=False,
    )


def secrets(stem):
    """Return the lines that a learner is to write: long enough to be nobody else's by chance."""
    lines, inside = [], False
    for line in (ROOT / "solutions" / f"{stem}.py").read_text().splitlines():
        mark = line.strip()
        if mark == BEGIN:
            inside = True
        elif mark in (STARTS_AS, END):
            inside = False
        elif inside and len(mark) > 30:
            lines.append(mark)
    return lines


def test_release_has_the_lessons_asked_for_and_no_others(released):
    assert {path.name for path in (released / "exercises").iterdir()} == {
        "01_chain_rule.py",
        "02_graph.py",
        "AGENTS.md",
    }
    assert (released / "AGENTS.md").is_file()
    assert len(list((released / "lessons").iterdir())) == 2
    assert {path.name for path in (released / "minigrad" / "course").glob("l[0-9]*")} == {
        "l01_chain_rule",
        "l02_graph",
    }
    assert not (released / "solutions").exists()
    assert not (released / "tests").exists()


def test_release_gives_no_solution_and_no_mutant_away(released):
    # The checks know what is right, in words of their own; what students open must not.
    folders = [released / name for name in ("exercises", "lessons", "minigrad/course/files")]
    texts = {
        path: path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.*")
    }
    given = [
        (str(path.relative_to(released)), line)
        for stem in ("01_chain_rule", "02_graph")
        for line in secrets(stem)
        for path, text in texts.items()
        if line in text
    ]
    assert given == []
    assert secrets("02_graph")
    assert not [path for path in released.rglob("*") if "mutants" in path.name]


def test_release_runs(released):
    done = run(released, "check", "01.chain", "--seed", "3")
    assert done.returncode == 1, done.stderr
    assert "0 of 4 points" in done.stdout
    assert "next: 01.mul_backward" in run(released, "next").stdout
    assert run(released, "status").returncode == 0
    assert "There are 01_chain_rule, 02_graph" in run(released, "check", "00").stderr
    path = released / "exercises" / "02_graph.py"
    stub = path.read_text()
    path.write_text("mine = 1\n")
    assert run(released, "reset", "02").returncode == 0
    assert path.read_text() == stub
    for _ in range(4):
        said = run(released, "hint", "01.chain").stdout
    assert "comes without solutions" in said


def test_solved_release_is_full_marks_for_the_teacher(released, tmp_path):
    done = tmp_path / "class" / "anna"
    for stem in ("01_chain_rule", "02_graph"):
        (done / "exercises").mkdir(parents=True, exist_ok=True)
        text = (ROOT / "solutions" / f"{stem}.py").read_text()
        (done / "exercises" / f"{stem}.py").write_text(text)
        own = released / "minigrad" / "course" / "files" / "exercises" / f"{stem}.py"
        copy = done / own.relative_to(released)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(own.read_text())
    assert main(["grade", "--unsafe", str(done.parent)]) == 0


def test_release_can_be_set_up(released):
    project = tomllib.loads((released / "pyproject.toml").read_text())
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["project"]["dependencies"] == ours["dependencies"]
    assert project["project"]["scripts"] == ours["scripts"]
    assert {"lab", "test"} <= {*project["project"]["optional-dependencies"]}  # start.py's
    workflow = (released / ".github" / "workflows" / "grade.yml").read_text()
    assert "python3 start.py check all" in workflow
    readme = (released / "README.md").read_text()
    assert "python3 start.py lab 01" in readme
    assert "| 6 | 21 |" in readme
    help_text = run(released, "--help")
    assert help_text.returncode == 0


def test_release_into_a_folder_with_something_in_it_writes_nothing(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["release", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_release_without_a_checkout_says_to_clone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("minigrad.course.release.PACKAGE", tmp_path / "minigrad")
    assert main(["release", str(tmp_path / "class")]) == 2
    assert "clone" in capsys.readouterr().err


def test_lesson_that_uses_one_left_out_is_named(tmp_path):
    (tmp_path / "lessons").mkdir()
    text = '# %%\nneeds("02.backward")\nload("01")\npredict("04.guess", "?", ...)\nx = "00"\n'
    (tmp_path / "lessons" / "02_graph.ipynb").write_text(notebook_text(text, "x"))
    assert missing_needs(Source(tmp_path), ["02_graph"]) == [
        "lesson 02 uses your lesson 01, which is left out",
        "lesson 02 uses your lesson 04, which is left out",
    ]
