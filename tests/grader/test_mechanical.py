"""Mechanical mutants: what the operators make, and that the page of them is of these solutions."""

import functools
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from minigrad.course.mechanical import broken
from minigrad.course.prove import counts_on, equivalents, in_order, made, main, page, survivors
from minigrad.grader.folder import known_stems, load_lesson

ROOT = Path(__file__).parents[2]
EXERCISES = [(stem, name) for stem in known_stems() for name in load_lesson(stem).exercises]
SHARES = 10
SOLUTION = '''import numpy as np


def given(x):
    return x + 1


def norm(x, eps=1e-8):
    """Return the norm of x."""
    ### BEGIN SOLUTION
    total = 0.0
    for row in x:
        if row is not None:
            total += np.sum(row**2, axis=0)
    return np.sqrt(total + eps)
    ### END SOLUTION
'''


def test_each_mutant_differs_at_one_place_of_what_the_learner_writes():
    found = list(broken(SOLUTION, ["norm"]))
    assert len({one.source for one in found}) == len(found) > 15
    assert {one.exercise for one in found} == {"norm"}
    assert all("return x + 1" in one.source for one in found)
    changes = {one.change for one in found}
    assert len(changes) == len(found)
    assert {
        "np.sum(row ** 2, axis=0) -> np.sum(row ** 2)",
        "eps -> 1e-08",
        "row is not None -> np.any(row)",
        "for row in x: -> for row in list(x)[1:]:",
        "total += np.sum(row ** 2, axis=0) -> pass",
    } <= changes


def test_the_page_is_of_these_solutions():
    text = (ROOT / "docs" / "generated" / "mutants.md").read_text(encoding="utf-8")
    counts = counts_on(text)
    known = Counter(name for name, _ in equivalents(ROOT))
    mutants = Counter(
        f"{stem[:2]}.{one.exercise}"
        for stem in known_stems()
        for one in made(ROOT, stem, list(load_lesson(stem).exercises))
    )
    assert {name: n for name, (n, _, _) in counts.items()} == mutants
    assert {name: n for name, (_, _, n) in counts.items() if n} == known
    assert all(n == killed + same for n, killed, same in counts.values())
    assert text == page(ROOT, in_order(counts))


def test_the_row_of_an_exercise_is_written_among_the_others(tmp_path):
    for folder in ("solutions", "tests/mutants", "docs/generated"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    target = tmp_path / "docs" / "generated" / "mutants.md"
    text = target.read_text(encoding="utf-8")
    target.write_text(re.sub(r"(?m)^\| 00.hello \|.*\n", "", text).replace("| 02.", "| 02.old_"))
    assert main(["--by", "mechanical", "--root", str(tmp_path), "--write", "00.hello"]) == 0
    counts = counts_on(text)
    for name in [name for name in counts if name.startswith("02.")]:
        del counts[name]
    assert target.read_text(encoding="utf-8") == page(ROOT, counts)


def test_a_survivor_is_told(tmp_path, capsys):
    (tmp_path / "solutions").mkdir()
    text = (ROOT / "solutions" / "00_start.py").read_text(encoding="utf-8")
    (tmp_path / "solutions" / "00_start.py").write_text(text, encoding="utf-8")
    (tmp_path / "tests" / "mutants").mkdir(parents=True)
    (tmp_path / "tests" / "mutants" / "equivalent.toml").write_text("", encoding="utf-8")
    assert main(["--by", "mechanical", "--root", str(tmp_path), "00"]) == 1
    assert "00.slope: SURVIVED: another constant: 1e-05 -> 2e-05" in capsys.readouterr().out


def test_an_exercise_asked_alone_has_the_mutants_it_has_among_all():
    every = made(ROOT, "14_compile", list(load_lesson("14_compile").exercises))
    alone = made(ROOT, "14_compile", ["fuse"])
    assert alone == [one for one in every if one.exercise == "fuse"] != []


@functools.cache
def mutants_of(stem):
    return made(ROOT, stem, list(load_lesson(stem).exercises))


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(("stem", "name"), EXERCISES)
def test_every_mechanical_mutant_is_killed_or_known_to_be_none(stem, name, share, server):
    mutants = [one for one in mutants_of(stem) if one.exercise == name]
    found = survivors(server, ROOT, stem, mutants[share::SHARES])
    assert [one for one in found if one[3].isupper()] == []
