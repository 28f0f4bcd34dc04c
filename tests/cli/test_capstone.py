"""`minigrad capstone`: runs are kept by seed and code, and no finished one is run twice."""

import dataclasses
import json
import sys
from contextlib import contextmanager

import pytest

from minigrad.cli.main import main
from minigrad.course import capstone
from minigrad.grader import progress
from minigrad.grader.folder import find_folder

NAME = "read_digits"
FUNCTION = '''"""A capstone."""


def read_digits(images, labels, seed, record):
    """Record two numbers and return a score."""
    with open("ran.txt", "a") as file:
        file.write(f"{seed} ")
    record(2.0)
    record(1.0)
    return SCORE
'''


@pytest.fixture
def course(learner, monkeypatch):
    """A learner whose function returns its score, which stands where a training would."""
    fast = dataclasses.replace(
        capstone.CAPSTONES[NAME], run=lambda function, seed, record: function(0, 0, seed, record)
    )
    monkeypatch.setitem(capstone.CAPSTONES, NAME, fast)
    write(learner, "0.98")
    return learner


def write(folder, score, before=""):
    text = FUNCTION.replace("SCORE", score).replace(
        "    record(1.0)\n", f"{before}    record(1.0)\n"
    )
    (folder / "exercises" / "17_capstone.py").write_text(text)


def ran(folder):
    """The seeds that ran since the last call, in order."""
    path = folder / "ran.txt"
    seeds = path.read_text().split() if path.exists() else []
    path.write_text("")
    return [int(seed) for seed in seeds]


def file_of(folder, seed, which="reference"):
    return folder / ".minigrad" / "capstone" / NAME / f"{which}-{seed}.json"


def test_all_seeds_run_once_and_are_kept(course, capsys):
    assert main(["capstone", NAME]) == 0
    assert ran(course) == [0, 1, 2, 3, 4]
    out = capsys.readouterr().out
    assert "5 of 5 seeds" in out
    assert ": passed (a median of 97 % or more)" in out
    fields = json.loads(file_of(course, 3).read_text())
    assert (fields["exercise"], fields["engine"], fields["seed"]) == (
        "17.read_digits",
        "reference",
        3,
    )
    assert (fields["score"], fields["curve"], fields["parts"]) == (0.98, [[1, 2.0], [2, 1.0]], [])
    assert main(["capstone", "17.read_digits"]) == 0
    assert ran(course) == []
    assert capsys.readouterr().out.count("kept from before") == 5


def test_bar_that_is_missed_ends_with_1(course, capsys):
    write(course, "0.99 if seed < 2 else 0.9")
    assert main(["capstone", NAME]) == 1
    assert "not passed" in capsys.readouterr().out


def test_changed_code_runs_again_and_a_changed_comment_does_not(course):
    main(["capstone", NAME])
    ran(course)
    write(course, "0.98  # a comment")
    assert main(["capstone", NAME]) == 0
    assert ran(course) == []
    write(course, "0.971")
    assert capstone.standing(find_folder(), NAME, "reference") == "not run yet"
    assert main(["capstone", NAME]) == 0
    assert ran(course) == [0, 1, 2, 3, 4]


def test_run_that_is_cut_off_goes_on_with_the_next_seed(course, capsys):
    write(course, "0.98", '    import os\n    if seed == 2 and not os.path.exists("again"):\n'
          "        raise KeyboardInterrupt\n")  # fmt: skip
    assert main(["capstone", NAME]) == 130
    assert ran(course) == [0, 1, 2]
    assert "Cut off in seed 2. Finished seeds are kept" in capsys.readouterr().out
    assert "2 of 5 seeds" in capstone.standing(find_folder(), NAME, "reference")
    (course / "again").touch()
    assert main(["capstone", NAME]) == 0
    assert ran(course) == [2, 3, 4]


def test_diverged_run_is_finished_and_misses_the_bar(course, capsys):
    write(course, "0.99", '    record(float("nan") if seed != 1 else 1.5)\n')
    assert main(["capstone", NAME]) == 1
    out = capsys.readouterr().out
    assert "seed 0: diverged, loss is no number any more after 2" in out
    assert "4 diverged: not passed" in out
    assert json.loads(file_of(course, 0).read_text())["score"] is None
    ran(course)
    assert main(["capstone", NAME]) == 1
    assert ran(course) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-9],
        lambda text: "[]",
        lambda text: text.replace('"score": 0.98', '"score": "0.98x"'),
        lambda text: text.replace('"seed": 1', '"seed": 2'),
        lambda text: text.replace('"engine": "reference"', '"engine": "mine"'),
        lambda text: text.replace('"curve": [', '"curve": [["a", 1], '),
        lambda text: text.replace('"version": 1', '"version": 9'),
    ],
)
def test_damaged_file_is_run_again(course, damage):
    main(["capstone", NAME])
    ran(course)
    path = file_of(course, 1)
    path.write_text(damage(path.read_text()))
    assert main(["capstone", NAME]) == 0
    assert ran(course) == [1]


def test_error_of_the_learners_is_told_in_a_line_with_its_place(course, capsys):
    write(course, "0.98", "    if seed == 1:\n        raise ValueError('no such digit')\n")
    assert main(["capstone", NAME]) == 2
    said = capsys.readouterr()
    place = "exercises/17_capstone.py:10, in read_digits"
    assert f"seed 1: ValueError: no such digit ({place}: " in said.err
    assert "Traceback" not in said.err
    assert "Finished seeds are kept." in said.out
    assert file_of(course, 0).exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def read_digits(:\n", "does not load: SyntaxError: invalid syntax (exercises/17_caps"),
        ("import no_such\n", "No module named 'no_such' (exercises/17_capstone.py:1, in <module>"),
        ("def read(images):\n    pass\n", "exercises/17_capstone.py has no function read_digits"),
        ("read_digits = 3\n", "exercises/17_capstone.py has no function read_digits"),
    ],
)
def test_file_that_gives_no_function_is_told_in_a_line(course, capsys, text, said):
    (course / "exercises" / "17_capstone.py").write_text(text)
    assert main(["capstone", NAME]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_all_seeds_run_the_code_that_was_there_at_first_whatever_is_saved(course, capsys):
    path = course / "exercises" / "17_capstone.py"
    saved = "    from pathlib import Path\n    Path({!r}).write_text({!r})\n"
    write(course, "0.98", saved.format(str(path), FUNCTION.replace("SCORE", "0.5")))
    first = path.read_text()
    assert main(["capstone", NAME]) == 0
    assert "98.0%, 98.0%, 98.0%, 98.0%, 98.0%: passed" in capsys.readouterr().out
    assert capstone.standing(find_folder(), NAME, "reference") == "not run yet"  # of what is there
    path.write_text(first)
    assert "passed" in capstone.standing(find_folder(), NAME, "reference")


def test_stub_an_unknown_name_and_an_engine_without_parts_are_told_in_a_line(course, capsys):
    assert main(["capstone", "chess"]) == 2
    assert "there is no capstone 'chess'. There are read_digits" in capsys.readouterr().err
    assert main(["capstone", NAME, "--mine"]) == 2
    assert "no part of yours has passed as its file is now" in capsys.readouterr().err
    path = course / "exercises" / "17_capstone.py"
    path.write_text(
        "def read_digits(images, labels, seed, record):\n    raise NotImplementedError\n"
    )
    assert main(["capstone", NAME]) == 2
    assert "read_digits in exercises/17_capstone.py is not written yet" in capsys.readouterr().err
    assert main(["capstone"]) == 0
    assert "not run yet" in capsys.readouterr().out


def test_tile_is_lit_once_both_engines_have_passed(course, monkeypatch):
    @contextmanager
    def engine(which):
        yield ["01.mul_backward"] if which == "mine" else []

    (course / "exercises" / "01_chain_rule.py").write_text(
        "def mul_backward(dy, a, b):\n    pass\n"
    )
    monkeypatch.setattr(capstone, "engine", engine)
    assert main(["capstone", NAME, "--mine"]) == 0
    assert json.loads(file_of(course, 0, "mine").read_text())["parts"] == ["01.mul_backward"]
    assert "17.read_digits" not in progress.load(course / ".minigrad")["engine"]
    assert main(["capstone", NAME]) == 0
    assert "17.read_digits" in progress.load(course / ".minigrad")["engine"]
    (course / "exercises" / "01_chain_rule.py").write_text("def mul_backward(dy, a, b):\n    1\n")
    assert capstone.standing(find_folder(), NAME, "mine") == "not run yet"  # its part has changed


@pytest.mark.parametrize("name", [".", "capstone", f"capstone/{NAME}"])
def test_link_is_not_written_through(course, tmp_path, capsys, name):
    elsewhere = tmp_path / "elsewhere"
    place = course / ".minigrad"
    place = place if name == "." else place / name
    if place.exists():
        place.rename(elsewhere)
    else:
        elsewhere.mkdir()
        place.parent.mkdir(parents=True, exist_ok=True)
    before = sorted(elsewhere.rglob("*"))
    place.symlink_to(elsewhere)
    assert main(["capstone", NAME]) == 2
    assert "is a link, and is not written through" in capsys.readouterr().err
    assert sorted(elsewhere.rglob("*")) == before


def test_kept_curve_is_short(course):
    write(course, "0.98", "    for i in range(5000):\n        record(float(i))\n")
    main(["capstone", NAME])
    curve = json.loads(file_of(course, 0).read_text())["curve"]
    assert 200 <= len(curve) <= capstone.MOST_POINTS
    assert curve[-2][1] > 4900


def test_library_that_is_broken_is_no_fault_of_the_file_that_imports_it(
    learner, capsys, monkeypatch
):
    (learner / "gymnasium.py").write_text("raise ImportError('built for another NumPy')\n")
    monkeypatch.syspath_prepend(learner)
    monkeypatch.delitem(sys.modules, "gymnasium", raising=False)
    path = learner / "exercises" / "17_capstone.py"
    path.write_text("import gymnasium\n\n\ndef balance_pole(*_):\n    return 1\n")
    assert main(["capstone", "balance_pole"]) == 2
    said = capsys.readouterr().err
    assert "gymnasium's" in said
    assert "built for another NumPy" in said
    assert "17_capstone.py" not in said
