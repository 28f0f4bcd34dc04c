"""Exercises cut from solutions, notebooks from py:percent."""

import json
from pathlib import Path

import pytest

from minigrad.course.build import built_files, main, stale_files
from minigrad.course.percent import notebook_text, parse
from minigrad.course.stubs import RegionError, cut

ROOT = Path(__file__).parents[2]
SOLUTION = '''\
def f(x):
    """Double."""
    ### BEGIN SOLUTION
    y = 2 * x
    return y
    ### END SOLUTION


def g(x):
    ### BEGIN SOLUTION
    if x:
        return 1
    ### STARTS AS
    # if not x:
    #     return 1
    ### END SOLUTION
    return 2
'''
LESSON = '''\
"""Dropped."""
# %% [markdown]
# # Title
#
# Text with `code`.
# %% tags=["exercise"] points=2

x = 1

print(x)

# %%
# a comment stays a comment
'''


def test_cut_leaves_a_stub_that_raises():
    text = cut(SOLUTION, "f.py")
    assert "2 * x" not in text
    assert '    raise NotImplementedError("f is yours to write")' in text
    compile(text, "f.py", "exec")


def test_cut_plants_what_the_solution_starts_as():
    assert "def g(x):\n    if not x:\n        return 1\n    return 2\n" in cut(SOLUTION, "f.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n", "f.py:2: a solution begins inside"),
        ("### BEGIN SOLUTION\nx = 1\n", "f.py:1: this solution does not end"),
        ("### END SOLUTION\n", "f.py:1: a solution ends"),
        ("### STARTS AS\n", "f.py:1: ### STARTS AS outside"),
        ("### BEGIN SOLUTION\n### STARTS AS\nx = 1\n### END SOLUTION\n", "f.py:3: lines after"),
    ],
)
def test_cut_names_the_line_of_marks_that_do_not_fit(text, message):
    with pytest.raises(RegionError, match=message):
        cut(text, "f.py")


def test_parse_finds_cells_with_their_kind_text_and_metadata():
    cells = parse(LESSON)
    assert [cell.kind for cell in cells] == ["markdown", "code", "code"]
    assert cells[0].text == "# Title\n\nText with `code`."
    assert cells[1].text == "x = 1\n\nprint(x)"
    assert cells[1].metadata == {"tags": ["exercise"], "points": 2}
    assert cells[2].text == "# a comment stays a comment"


@pytest.mark.parametrize("text", ["# %% [raw]\nx", "# %% tags=[oops\n", "# %% [markdown]\nx = 1\n"])
def test_parse_refuses_what_is_no_cell(text):
    with pytest.raises(ValueError, match="a lesson"):
        parse(text)


def test_notebook_has_no_outputs_and_the_same_bytes_each_time():
    text = notebook_text(LESSON, "00.py")
    assert text == notebook_text(LESSON, "00.py")
    cells = json.loads(text)["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    assert len({cell["id"] for cell in cells}) == 3


def test_cell_id_changes_only_with_its_own_cell():
    before, after = (
        [cell["id"] for cell in json.loads(notebook_text(text, "00.py"))["cells"]]
        for text in (LESSON, LESSON.replace("x = 1", "x = 2"))
    )
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "lessons" / "source").mkdir(parents=True)
    (tmp_path / "solutions").mkdir()
    (tmp_path / "lessons" / "source" / "00_start.py").write_text(LESSON)
    (tmp_path / "solutions" / "00_start.py").write_text(SOLUTION)
    return tmp_path


def test_check_says_what_is_stale_and_writes_nothing(repository, capsys):
    assert main(["--check", "--root", str(repository)]) == 1
    assert "stale: exercises/00_start.py" in capsys.readouterr().out
    assert not (repository / "exercises").exists()


def test_build_then_check_is_fresh_until_a_source_changes(repository, capsys):
    assert main(["--root", str(repository)]) == 0
    assert main(["--check", "--root", str(repository)]) == 0
    source = repository / "lessons" / "source" / "00_start.py"
    source.write_text(LESSON.replace("x = 1", "x = 3"))
    assert [path.name for path in stale_files(built_files(repository))] == ["00_start.ipynb"]
    capsys.readouterr()


def test_build_leaves_a_half_solved_exercise_alone(repository, capsys):
    main(["--root", str(repository)])
    exercise = repository / "exercises" / "00_start.py"
    exercise.write_text("mine = 1\n")
    main(["--root", str(repository)])
    assert "left alone: exercises/00_start.py" in capsys.readouterr().out
    assert exercise.read_text() == "mine = 1\n"
    main(["--root", str(repository), "--force"])
    assert exercise.read_text() == cut(SOLUTION, "00")


@pytest.mark.parametrize("folder", ["exercises", "solutions"])
def test_lines_fit_into_half_a_window(folder):
    """At 1280 pixels, an editor beside a lesson shows 76 columns at most; more would be broken."""
    wide = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / folder).glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 76
    ]
    assert wide == []
