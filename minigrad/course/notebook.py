"""Defines what notebooks call: `check` grades or tries, `needs` stops a cell, `load` imports."""

from __future__ import annotations

import ast
import contextlib
import sys
import types
from collections.abc import Callable
from pathlib import Path

from minigrad.course.cells import explain_in_notebooks
from minigrad.course.pieces import is_unwritten
from minigrad.grader import progress
from minigrad.grader.card import Card
from minigrad.grader.folder import (
    CourseError,
    UnsolvedError,
    find_exercises,
    find_folder,
    find_id,
    find_stem,
    known_stems,
    loadable,
)
from minigrad.grader.launcher import shared_server
from minigrad.grader.live import try_function
from minigrad.grader.reading import UnreadableError, read_source
from minigrad.grader.result import Result
from minigrad.grader.run import grade, new_seed
from minigrad.grader.spec import Lesson
from minigrad.parsing import tree_of

INDEX = "index.ipynb"  # the page of all lessons; `minigrad lab` writes it

explain_in_notebooks()


def check(what: str | Callable, *, seed: int | None = None) -> Card:
    """Check an exercise, and show the result.

    Args:
        what: an exercise such as `"00.hello"`, or a lesson such as `"00"`: the *saved* file is
            graded in a process of its own, as by `pytest exercises`, and the points count. Or a
            function: it runs in this process, where you see its prints and can debug it, for no
            points.
        seed: the number that an earlier card showed, to get the same inputs again.

    Returns:
        Card: a card in a notebook, text elsewhere; `card.passed` says whether everything passed.
    """
    if callable(what):
        seed = new_seed() if seed is None else seed
        name = getattr(what, "__name__", type(what).__name__)
        exercise = find_id(name, getattr(what, "__module__", None) or "")
        result = Result(seed, [try_function(exercise, what, seed)])
        return Card(result, f'tried here, for no points; check("{exercise.id}") grades the file')
    lesson, exercises = find_exercises(what)
    folder = find_folder()
    path = folder.exercise_file(lesson.stem)
    names = [exercise.name for exercise in exercises]
    result = grade(shared_server(), lesson, path, names=names, seed=seed)
    note = ""
    try:
        progress.record(folder.state, result)
    except OSError as error:
        note = f"not remembered: {error.strerror}"
    return Card(
        result, note, links_after(lesson) if exercises == [*lesson.exercises.values()] else {}
    )


def links_after(lesson: Lesson) -> dict[str, str]:
    """Return links to the next notebook beside this one and to all lessons, keyed by text."""
    links = {}
    stems = [one for one in known_stems() if one > lesson.stem and Path(f"{one}.ipynb").is_file()]
    for later in loadable(stems):
        links[f"lesson {later.number}: {later.title}"] = f"{later.stem}.ipynb"
        break
    if Path(INDEX).is_file():
        links["all lessons"] = INDEX
    return links


def needs(*ids: str) -> None:
    """Raise an error if an exercise that a cell needs, such as `"00.slope"`, is not written yet.

    Only an untouched stub counts as not written; `check` says whether code is right.

    Raises:
        UnsolvedError: a notebook shows it in one line, without a traceback.
        CourseError: Python cannot read the file; shown in one line as well.
    """
    for exercise_id in ids:
        lesson, exercises = find_exercises(exercise_id)
        path = find_folder().exercise_file(lesson.stem)
        tree = tree_of(_text_of(path), str(path))
        if exercises[0].name in untouched(tree):
            raise UnsolvedError(exercise_id)


def untouched(tree: ast.Module) -> set[str]:
    """Return the names of the functions that only raise NotImplementedError.

    A class counts as untouched while one of its methods is.
    """
    names = set()
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        if any(isinstance(part, ast.FunctionDef) and is_unwritten(part) for part in parts):
            names.add(getattr(node, "name", ""))
    return names


def load(lesson: str) -> types.ModuleType:
    """Return a lesson's exercise file, the learner's, as a module; read it anew at each call.

    `mine = load("00")` gives `mine.central_difference` and the rest of `exercises/00_start.py`.

    Raises:
        CourseError: Python cannot read the file.
    """
    path = find_folder().exercise_file(find_stem(lesson))
    return module_of(_text_of(path), path)


def module_of(source: str, path: Path) -> types.ModuleType:
    """Return a new module of this text of an exercise file; raise what the text raises."""
    name = f"exercises.{path.stem}"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    code = compile(source, str(path), "exec", dont_inherit=True)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        with contextlib.suppress(KeyError):
            del sys.modules[name]
        raise
    return module


def _text_of(path: Path) -> str:
    try:
        return read_source(path)
    except UnreadableError as error:
        name = f"{path.parent.name}/{path.name}"
        raise CourseError(f"{name}: {error}. {error.attempt}") from None
