"""Runs mutants, wrong solutions that people really write, to prove that the checks can fail.

A mutant redefines one name of a lesson's solution. The exercise must fail, with the message meant
for the mutant. Most mutants are the wrong versions beside an exercise's checks, which name them to
learners (`spec.WrongVersion`). Mutants that are best written as a change of the solution, such as a
line of a kernel or one method of a class, are in `tests/mutants/mNN_slug.py`, a list `MUTANTS`.
"""

from __future__ import annotations

import ast
import inspect
import runpy
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.result import ExerciseResult
from minigrad.grader.run import Submission, grade_exercise


@dataclass(frozen=True)
class Mutant:
    """A wrong solution.

    Attributes:
        exercise: the exercise that it breaks.
        key: the key of the message that it must get.
        code: a redefinition, appended to the solution.
    """

    exercise: str
    key: str
    code: str


def load_mutants(root: Path, stem: str) -> list[Mutant]:
    """Return a lesson's mutants: its wrong versions, and those in the repository at `root`."""
    beside = [
        Mutant(name, one.key, text_of(one.function, name))
        for name, exercise in load_lesson(stem).exercises.items()
        for one in exercise.wrong_versions
    ]
    return beside + runpy.run_path(str(root / "tests" / "mutants" / f"m{stem}.py"))["MUTANTS"]


def text_of(function: Callable[..., Any], name: str) -> str:
    """Return a function's text under another name, below the definitions that it uses.

    A partial becomes the text of its function and a `functools.partial` of that.

    >>> import textwrap
    >>> print(text_of(textwrap.fill, "fill").splitlines()[-1].strip())
    return w.fill(text)
    """
    return "\n".join(_texts(function, name, {name}))


def _texts(function: Callable[..., Any], name: str, seen: set[str]) -> list[str]:
    """Return the definitions that a function uses, each name once, then its own."""
    if isinstance(function, partial):
        whole = function.func.__name__
        filled = f"{name} = functools.partial({whole}, **{function.keywords!r})"
        return ["import functools", *_texts(function.func, whole, seen | {whole}), filled]
    assert isinstance(function, FunctionType), f"{name}: {function!r} is not a function"
    assert not function.__closure__, f"{name}: a wrong version uses names of its module alone"
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef), f"{name}: a wrong version is no lambda"
    tree.name, tree.returns, tree.decorator_list = name, None, []
    own = {"_"}
    for argument in ast.walk(tree):
        if isinstance(argument, ast.arg):
            argument.annotation = None
            own.add(argument.arg)
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    own |= {one.id for one in names if isinstance(one.ctx, ast.Store)}
    texts = []
    for one in sorted(({one.id for one in names} - own - seen) & function.__globals__.keys()):
        seen.add(one)
        texts += _needed(one, function.__globals__[one], seen)
    return [*texts, ast.unparse(tree)]


def _needed(name: str, value: Any, seen: set[str]) -> list[str]:
    """Return the text that defines a global name as the check's module does."""
    if isinstance(value, ModuleType):
        return [f"import {value.__name__} as {name}"]
    if isinstance(value, FunctionType):
        return _texts(value, name, seen)
    return [f"{name} = {value!r}"]


def grade_source(
    server: Server, stem: str, name: str, source: str, seed: int, *, briefly: bool = False
) -> ExerciseResult:
    """Grade one exercise on a text instead of a file.

    With `briefly`, an open exercise, whose checks are long, ends at the first that fails.
    Raises GraderError where a check breaks; a learner would read that the answer's form is wrong.
    """
    submission = Submission(Path(f"exercises/{stem}.py"), source)
    exercise = load_lesson(stem).exercises[name]
    until_failure = briefly and exercise.is_open
    return sound(grade_exercise(server, exercise, submission, seed, until_failure=until_failure))


def sound(result: ExerciseResult) -> ExerciseResult:
    """Return a result; raise GraderError if a check broke instead of failing."""
    for check in result.checks:
        if check.message is not None and check.message.key == "unreadable":
            raise GraderError(f"the check {result.id}.{check.name} broke: {check.message.got}")
    return result


def survives(
    server: Server, stem: str, exercise: str, source: str, seed: int, call_seconds: float = 2.0
) -> bool:
    """Return whether a wrong solution passes all checks; stop at the first that fails."""
    original = load_lesson(stem).exercises[exercise]
    limits = replace(original.limits, call_seconds=call_seconds)
    submission = Submission(Path(f"exercises/{stem}.py"), source)
    hurried = replace(original, limits=limits)
    return sound(grade_exercise(server, hurried, submission, seed, until_failure=True)).passed


def run_mutants(
    server: Server, root: Path, stem: str, seed: int
) -> Iterator[tuple[Mutant, ExerciseResult]]:
    """Yield every mutant of a lesson with its result."""
    solution = (root / "solutions" / f"{stem}.py").read_text(encoding="utf-8")
    for mutant in load_mutants(root, stem):
        source = f"{solution}\n\n{mutant.code.strip()}\n"
        yield mutant, grade_source(server, stem, mutant.exercise, source, seed, briefly=True)


def message_key(result: ExerciseResult) -> str | None:
    """Return the key of the first failure's message, None if nothing failed."""
    failure = result.first_failure
    return failure.message.key if failure and failure.message else None
