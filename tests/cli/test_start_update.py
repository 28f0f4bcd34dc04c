"""`start` and `update`: a learner's folder from the package, and a newer course merged into it."""

import json

import pytest

from minigrad.cli.main import main
from minigrad.course.source import Source
from minigrad.grader import progress


def update(versions, *options):
    return main(["update", "--from", str(versions[1]), *options])


def edit_notebook(path, text="mine"):
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["source"] = [text]
    path.write_text(json.dumps(notebook))


def run_notebook(path):
    """Leave behind what running leaves: outputs, counts, metadata."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"execution_count": 3, "outputs": [{"output_type": "stream"}]}
            cell["metadata"]["execution"] = {"iopub": 1}
    path.write_text(json.dumps(notebook, indent=2))


def test_start_writes_lessons_and_stubs_and_no_solutions(tmp_path, capsys):
    folder = tmp_path / "new" / "course"
    assert main(["start", str(folder)]) == 0
    assert f"cd {folder}" in capsys.readouterr().out
    stub = (folder / "exercises" / "00_start.py").read_text()
    assert "hello, gardients" in stub
    assert json.loads((folder / "lessons" / "00_start.ipynb").read_text())["cells"]
    assert not list(folder.rglob("solutions"))
    assert "BEGIN SOLUTION" not in stub


def test_a_course_asks_assistants_to_write_no_exercise(learner, versions):
    for path in (learner / "AGENTS.md", learner / "exercises" / "AGENTS.md"):
        assert "exercise" in path.read_text()
    (versions[1] / "exercises" / "AGENTS.md").write_text("ask, and explain")
    (learner / "AGENTS.md").unlink()  # by the learner: it stays away
    update(versions)
    assert (learner / "exercises" / "AGENTS.md").read_text() == "ask, and explain"
    assert not (learner / "AGENTS.md").exists()
    (learner / "exercises" / "AGENTS.md").write_text("mine")
    (versions[1] / "exercises" / "AGENTS.md").write_text("ask")
    update(versions)
    assert (learner / "exercises" / "AGENTS.md").read_text() == "mine"


def test_a_course_begun_before_there_was_advice_gets_it(learner, versions, capsys):
    for folder in (learner, learner / ".minigrad" / "course"):
        (folder / "AGENTS.md").unlink()
        (folder / "exercises" / "AGENTS.md").unlink()
    update(versions)
    assert (learner / "exercises" / "AGENTS.md").is_file()
    assert (learner / "AGENTS.md").is_file()
    assert "AGENTS.md: is new" in capsys.readouterr().out


def test_started_folder_is_a_course(learner, capsys):
    assert main(["check", "00.hello"]) == 0
    assert main(["status"]) == 0
    assert main(["reset", "00"]) == 0
    assert "gardients" in (learner / "exercises" / "00_start.py").read_text()
    for _ in range(4):
        assert main(["hint", "00.hello"]) == 0
    assert str(Source.__module__) not in capsys.readouterr().err


def test_last_hint_in_a_started_folder_names_a_file_that_exists(learner, capsys):
    for _ in range(4):
        main(["hint", "00.hello"])
    line = capsys.readouterr().out.splitlines()[-1]
    with open(line.partition(": read it")[0]) as file:
        assert "BEGIN SOLUTION" in file.read()


def test_start_into_a_folder_with_something_in_it_writes_nothing(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["start", str(tmp_path)]) == 2
    assert "notes.txt" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert main(["start", str(tmp_path / "notes.txt")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_start_over_a_begun_course_says_update_and_writes_nothing(learner, capsys):
    before = {path: path.read_bytes() for path in learner.rglob("*") if path.is_file()}
    assert main(["start", str(learner)]) == 2
    assert "minigrad update" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in learner.rglob("*") if path.is_file()}


def test_start_in_a_clone_says_that_the_course_is_there(tmp_path, capsys):
    (tmp_path / "minigrad").mkdir()
    (tmp_path / "minigrad" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    assert main(["start", str(tmp_path)]) == 2
    assert "minigrad lab" in capsys.readouterr().err


def test_update_keeps_what_is_written_and_takes_what_is_new(learner, versions, capsys):
    path = learner / "exercises" / "00_start.py"
    before = path.read_text()
    assert update(versions) == 0
    after = path.read_text()
    assert "def greeting():" in after
    assert "def hello():" in after  # the signature is not forced
    assert "return greeting()" in after
    assert "Estimate the slope of f at x" in after
    assert "def added():" in after
    assert (learner / "exercises" / "01_chain_rule.py").is_file()
    assert (learner / "lessons" / "01_chain_rule.ipynb").is_file()
    out = capsys.readouterr().out
    assert "SIGNATURE of hello was hello(), is now hello(name='you'); yours kept" in out
    assert ".minigrad/course/exercises/00_start.py" in out
    (copy,) = (learner / ".minigrad" / "backup").glob("*/exercises/00_start.py")
    assert copy.read_text() == before


def test_update_twice_changes_nothing_the_second_time(learner, versions, capsys):
    update(versions)
    before = (learner / "exercises" / "00_start.py").read_bytes()
    capsys.readouterr()
    assert update(versions) == 0
    assert capsys.readouterr().out == "everything is up to date\n"
    assert (learner / "exercises" / "00_start.py").read_bytes() == before
    assert len(list((learner / ".minigrad" / "backup").iterdir())) == 1


def test_update_of_a_function_begun_after_the_first_update(learner, versions, tmp_path):
    update(versions)
    path = learner / "exercises" / "00_start.py"
    path.write_text(
        path.read_text().replace("def added():\n    raise", "def added():\n    #\n    raise")
    )
    third = tmp_path / "v3"
    (third / "exercises").mkdir(parents=True)
    (third / "lessons").mkdir()
    for file in versions[1].rglob("0*"):
        text = file.read_text().replace("Estimate the slope", "Say the slope")
        (third / file.relative_to(versions[1])).write_text(text)
    assert main(["update", "--from", str(third)]) == 0
    assert "Say the slope" in path.read_text()
    assert "def added():\n    #\n    raise" in path.read_text()


def test_dry_run_says_all_of_it_and_writes_nothing(learner, versions, capsys):
    before = {path: path.read_bytes() for path in learner.rglob("*") if path.is_file()}
    assert update(versions, "--dry-run") == 0
    out = capsys.readouterr().out
    assert "SIGNATURE" in out
    assert "nothing was written" in out
    assert before == {path: path.read_bytes() for path in learner.rglob("*") if path.is_file()}


def test_notebook_that_was_only_run_is_replaced_and_kept_as_a_copy(learner, versions):
    path = learner / "lessons" / "00_start.ipynb"
    run_notebook(path)
    ran = path.read_bytes()
    assert update(versions) == 0
    assert "A new sentence." in path.read_text()
    (copy,) = (learner / ".minigrad" / "backup").glob("*/lessons/00_start.ipynb")
    assert copy.read_bytes() == ran


def test_notebook_with_changes_stays_and_the_new_one_is_put_beside(learner, versions, capsys):
    path = learner / "lessons" / "00_start.ipynb"
    edit_notebook(path)
    mine = path.read_bytes()
    assert update(versions) == 0
    assert path.read_bytes() == mine
    assert "A new sentence." in (learner / "lessons" / "00_start.new.ipynb").read_text()
    assert "00_start.new.ipynb" in capsys.readouterr().out
    assert update(versions) == 0  # the same course again: nothing more
    assert len(list((learner / "lessons").glob("00_*"))) == 2


def test_notebook_put_beside_never_replaces_one_that_was_worked_in(learner, versions):
    edit_notebook(learner / "lessons" / "00_start.ipynb")
    beside = learner / "lessons" / "00_start.new.ipynb"
    beside.write_text("worked in")
    assert update(versions) == 0
    assert beside.read_text() == "worked in"
    assert "A new sentence." in (learner / "lessons" / "00_start.new-2.ipynb").read_text()


@pytest.mark.parametrize("content", [b"def f(:\n", b"\xff\xfe", b"x = 1\0"])
def test_file_that_cannot_be_merged_is_left_and_merged_once_mended(
    learner, versions, content, capsys
):
    path = learner / "exercises" / "00_start.py"
    good = path.read_text()
    path.write_bytes(content)
    assert update(versions) == 1
    assert "LEFT AS IT IS" in capsys.readouterr().out
    assert path.read_bytes() == content
    path.write_text(good)
    assert update(versions) == 0
    assert "def greeting():" in path.read_text()
    assert "def added():" in path.read_text()


def test_update_keeps_the_lines_ends_of_windows(learner, versions):
    path = learner / "exercises" / "00_start.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert update(versions) == 0
    content = path.read_bytes()
    assert content.count(b"\r\n") == content.count(b"\n") > 0
    assert b"return greeting()" in content
    assert b"Estimate the slope" in content


def test_deleted_file_comes_back(learner, versions, capsys):
    (learner / "exercises" / "00_start.py").unlink()
    assert update(versions) == 0
    assert "was missing" in capsys.readouterr().out
    assert "def added" in (learner / "exercises" / "00_start.py").read_text()


def test_folder_without_memory_of_the_stubs_keeps_all_that_is_written(learner, versions):
    for path in (learner / ".minigrad" / "course").rglob("*.*"):
        path.unlink()
    assert update(versions) == 0
    text = (learner / "exercises" / "00_start.py").read_text()
    assert "return greeting()" in text
    assert "Estimate the slope" in text  # nobody began it
    assert "def added()" in text


def test_file_saved_while_the_update_runs_is_not_overwritten(learner, versions, monkeypatch):
    path = learner / "exercises" / "00_start.py"

    def save_meanwhile(folder, paths):
        path.write_text("saved just now")
        return folder.state

    monkeypatch.setattr("minigrad.cli.update.keep_copy", save_meanwhile)
    assert update(versions) == 2
    assert path.read_text() == "saved just now"


def test_update_keeps_points_and_says_when_they_count_again(learner, versions, capsys):
    assert main(["check", "00.hello"]) == 0
    assert update(versions) == 0
    assert "minigrad check" in capsys.readouterr().out
    assert progress.load(learner / ".minigrad")["exercises"]["00.hello"]["points"] == 1


def test_update_in_a_clone_says_git_pull(learner, versions, capsys):
    (learner / "minigrad").mkdir()
    (learner / "minigrad" / "__init__.py").write_text("")
    (learner / "pyproject.toml").write_text("")
    assert update(versions) == 2
    assert "git pull" in capsys.readouterr().err


def test_update_from_a_folder_without_a_course_is_wrong_usage(learner, tmp_path, capsys):
    assert main(["update", "--from", str(tmp_path / "nowhere")]) == 2
    assert "holds no course" in capsys.readouterr().err
