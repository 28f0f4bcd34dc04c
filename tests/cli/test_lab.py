"""`minigrad lab`: the page of all lessons, and the copies that a clone's learner works in."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from minigrad.cli.lab import command, lay_out
from minigrad.grader.folder import CourseFolder

pytest.importorskip("nbformat")
ROOT = Path(__file__).parents[2]
STEM = "00_start"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """What makes a folder a clone, and one lesson of it."""
    for name in ("minigrad/__init__.py", "pyproject.toml", f"exercises/{STEM}.py",
                 f"lessons/source/{STEM}.py", f"lessons/{STEM}.ipynb"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return CourseFolder(tmp_path)


def test_lab_looks_for_no_module_among_the_learners_own_files(tmp_path):
    (tmp_path / "jupyterlab.py").write_text("raise SystemExit('a file of the learner')")
    line = command(tmp_path, tmp_path, 8888, "token")
    assert "--ServerApp.answer_yes=True" in line  # Ctrl-C ends it at once
    line = line[: line.index("jupyterlab") + 1]
    run = subprocess.run(
        [*line, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def run_first_cell(path):
    """Save a notebook as a run leaves it."""
    notebook = json.loads(path.read_text())
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "ran"}]
    path.write_text(json.dumps(notebook))


def change_lesson(folder):
    source = folder.root / "lessons" / "source" / f"{STEM}.py"
    source.write_text(source.read_text().replace("# # 00", "# # Lesson 00"))


def test_lessons_of_a_clone_run_as_copies_that_keep_their_outputs(clone):
    came = (clone.root / "lessons" / f"{STEM}.ipynb").read_text()
    assert lay_out(clone) == "work"
    copy = clone.root / "work" / f"{STEM}.ipynb"
    assert copy.read_text() == came
    run_first_cell(copy)
    ran = copy.read_text()
    lay_out(clone)
    assert copy.read_text() == ran
    assert (clone.root / "lessons" / f"{STEM}.ipynb").read_text() == came


def test_copy_follows_its_lesson_unless_the_learner_changed_a_cell(clone, capsys):
    lay_out(clone)
    copy = clone.root / "work" / f"{STEM}.ipynb"
    run_first_cell(copy)
    change_lesson(clone)
    lay_out(clone)
    assert "# Lesson 00" in copy.read_text()
    assert "had changed no cell" in capsys.readouterr().out
    mine = copy.read_text().replace("# Lesson 00", "# My lesson 00")
    copy.write_text(mine)
    source = clone.root / "lessons" / "source" / f"{STEM}.py"
    source.write_text(source.read_text() + "\n# %% [markdown]\n# One cell more.\n")
    lay_out(clone)
    lay_out(clone)
    assert copy.read_text() == mine
    beside = clone.root / "work" / f"{STEM}.new.ipynb"
    assert "One cell more" in beside.read_text()
    assert {path.name for path in copy.parent.iterdir()} == {copy.name, beside.name, "index.ipynb"}


def test_git_ignores_the_copies():
    assert "/work/" in (ROOT / ".gitignore").read_text().splitlines()


def test_page_of_lessons_has_the_points_and_stays_once_the_learner_changed_it(clone):
    lay_out(clone)
    page = clone.root / "work" / "index.ipynb"
    (cell,) = (cell for cell in json.loads(page.read_text())["cells"] if "outputs" in cell)
    shown = cell["outputs"][0]["data"]
    assert 'href="00_start.ipynb"' in shown["text/html"]
    assert "0 of 12 points" in shown["text/html"]
    assert "Next: 00.hello" in shown["text/plain"]
    page.write_text("not a notebook of ours")
    lay_out(clone)
    assert page.read_text() == "not a notebook of ours"


def test_course_folder_has_no_copies(clone):
    (clone.root / "pyproject.toml").unlink()
    assert lay_out(clone) == "lessons"
    assert (clone.root / "lessons" / "index.ipynb").is_file()
    assert not (clone.root / "work").exists()


def test_overview_is_a_function_however_often_it_is_imported(clone):
    for _ in range(2):
        from minigrad.course import overview

        assert "Next: 00.hello, about 2 min, in lesson 00" in repr(overview())
