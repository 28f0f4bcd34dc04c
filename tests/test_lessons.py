"""The lessons: what every notebook must have, and that it runs from top to bottom when solved."""

import ast
import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from minigrad.course import executing
from minigrad.course.percent import notebook_text, parse
from minigrad.course.stubs import cut

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "lessons" / "source").glob("[0-9][0-9]_*.py"))
STEMS = [path.stem for path in SOURCES]


def cells_of(stem):
    source = ROOT / "lessons" / "source" / f"{stem}.py"
    return parse(source.read_text(encoding="utf-8"), source.name)


@pytest.fixture(scope="module", params=STEMS)
def executed(request, tmp_path_factory):
    """A lesson that ran in a learner's folder whose exercises are solved."""
    return execute(request.param, tmp_path_factory.mktemp("course"), "solutions")


def execute(stem, course, exercises):
    """Run a lesson beside these exercise files; return the notebook with its outputs."""
    shutil.copytree(ROOT / exercises, course / "exercises")
    (course / "lessons").mkdir()
    source = ROOT / "lessons" / "source" / f"{stem}.py"
    text = notebook_text(source.read_text(encoding="utf-8"), source.name)
    notebook, errors = executing.execute(text, course / "lessons")
    ended = [error for error in errors if error.startswith(("DeadKernel", "CellTimeout"))]
    assert not ended, errors
    nbformat.validate(notebook)
    return json.loads(nbformat.writes(notebook))


def outputs(cell):
    return cell.get("outputs", [])


def test_every_cell_runs_with_the_solutions(executed):
    for cell in executed["cells"]:
        for output in outputs(cell):
            assert output["output_type"] != "error", (
                f"{''.join(cell['source'])}\n{output['ename']}: {output['evalue']}"
            )
            if output["output_type"] == "stream":
                assert output["name"] != "stderr", output["text"]


def test_the_slider_draws_its_first_value(executed):
    """What is drawn below a slider is no output of its cell: it stands in the widgets' state."""
    (widgets,) = executed["metadata"]["widgets"].values()
    drawn = [
        output
        for model in widgets["state"].values()
        for output in model["state"].get("outputs", ())
    ]
    assert drawn
    errors = [f"{one['ename']}: {one['evalue']}" for one in drawn if one["output_type"] == "error"]
    assert not errors


def needed_by(stem):
    """The names of the exercises that a lesson's cells say they need."""
    text = "\n".join(cell.text for cell in cells_of(stem) if cell.kind == "code")
    calls = re.findall(r"^needs\((.*?)\)", text, re.MULTILINE)
    return {name for call in calls for name in re.findall(r'"(\S+)"', call)}


@pytest.mark.parametrize("stem", STEMS)
def test_cells_of_an_unsolved_lesson_run_or_say_in_one_line_what_to_solve(stem, tmp_path):
    built = tmp_path / "built"
    shutil.copytree(ROOT / "solutions", built)
    for path in built.glob("*.py"):
        path.write_text(cut(path.read_text(encoding="utf-8"), path.name), encoding="utf-8")
    notebook = execute(stem, tmp_path / "course", built)
    errors = [
        output
        for cell in notebook["cells"]
        for output in outputs(cell)
        if output["output_type"] == "error"
    ]
    assert errors
    for error in errors:
        assert error["ename"] == "UnsolvedError", f"{error['ename']}: {error['evalue']}"
        assert len(error["traceback"]) == 1
        (line,) = error["traceback"][0].splitlines()
        assert len(line) <= 97, "JupyterLab would break the line within a word"
    said = " ".join(error["evalue"] for error in errors)
    assert all(name in said for name in needed_by(stem))


def test_every_check_in_the_lesson_passes_with_the_solutions(executed):
    cards = [
        "".join(output["data"]["text/plain"])
        for cell in executed["cells"]
        if "exercise" in cell["metadata"].get("tags", [])
        for output in outputs(cell)
        if "data" in output
    ]
    assert len(cards) >= 3
    assert [card for card in cards if "everything passes" not in card] == []


def test_every_lesson_shows_pictures(executed):
    kinds = [kind for cell in executed["cells"] for output in outputs(cell)
             for kind in output.get("data", {})]  # fmt: skip
    assert kinds.count("image/png") >= 3


@pytest.mark.parametrize("stem", STEMS)
def test_lesson_has_two_predictions_each_revealed_after_it_was_asked(stem):
    cells = [cell.text for cell in cells_of(stem) if cell.kind == "code"]
    asked = [
        (number, match.group(1))
        for number, text in enumerate(cells)
        for match in re.finditer(r"^(\w+) = predict\(", text, re.MULTILINE)
    ]
    assert len(asked) >= 2
    for number, name in asked:
        assert f"{name}.reveal(" in "\n".join(cells[number + 1 :])


@pytest.mark.parametrize("stem", STEMS)
def test_lesson_says_what_to_see_after_every_picture(stem):
    cells = cells_of(stem)
    for number, cell in enumerate(cells):
        draws = any(
            call in cell.text for call in ("plt.show()", "draw_losses(", "scrub(", "mg.viz.")
        )
        if cell.kind == "code" and draws:
            after = "\n".join(c.text for c in cells[number + 1 : number + 4])
            assert "What to see" in after, cell.text[:200]


@pytest.mark.parametrize("stem", STEMS)
def test_every_plot_names_its_axes(stem):
    for cell in cells_of(stem):
        if cell.kind == "code" and "plt.subplots" in cell.text:
            assert "xlabel" in cell.text
            assert "ylabel" in cell.text or "yticks=[]" in cell.text


@pytest.mark.parametrize("stem", STEMS)
def test_figures_are_in_the_house_style(stem):
    """Its colours have numbers: a name of matplotlib's own palette goes past it."""
    text = "\n".join(cell.text for cell in cells_of(stem) if cell.kind == "code")
    first = text.index("import matplotlib.pyplot as plt")
    style = text.index('plt.style.use("minigrad.course.house")')
    assert first < style < text.index("plt.", style + 1)
    drawing = ROOT / "minigrad" / "course" / f"l{stem}"
    texts = [text, *(path.read_text(encoding="utf-8") for path in drawing.glob("*.py"))]
    assert not re.search(r"tab:|crimson|[\"']red[\"']", "\n".join(texts))


@pytest.mark.parametrize("stem", STEMS)
def test_lesson_begins_with_what_it_needs_and_ends_with_what_comes_next(stem):
    cells = cells_of(stem)
    first = cells[0].text
    for phrase in ("You need", "It takes", "Next"):
        assert phrase in first
    assert any("**Next:**" in cell.text for cell in cells[-4:])
    text = "\n".join(cell.text for cell in cells)
    assert "Bug hunt" in text
    assert "Real bug" in text


@pytest.mark.parametrize("stem", STEMS)
def test_lesson_checks_every_exercise_of_its_file(stem):
    source = (ROOT / "solutions" / f"{stem}.py").read_text(encoding="utf-8")
    text = "\n".join(cell.text for cell in cells_of(stem))
    definitions = (ast.FunctionDef, ast.ClassDef)
    names = {node.name for node in ast.parse(source).body if isinstance(node, definitions)}
    checked = set(re.findall(r'check\("\d\d\.(\w+)"\)', text))
    assert checked
    assert checked <= names
    from minigrad.grader.folder import load_lesson

    assert checked == {*load_lesson(stem).exercises}
