"""Mutants: wrong solutions that people really write. They prove that the checks can fail.

A mutant redefines one name of a lesson's solution. The exercise must fail, with the message meant
for the mutant. `tests/mutants/mNN_slug.py` holds them as a list `MUTANTS`.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import Server
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
    """Return the mutants of a lesson from the repository at `root`."""
    return runpy.run_path(str(root / "tests" / "mutants" / f"m{stem}.py"))["MUTANTS"]


def grade_source(
    server: Server, stem: str, exercise: str, source: str, seed: int
) -> ExerciseResult:
    """Grade one exercise on a text instead of a file."""
    submission = Submission(Path(f"exercises/{stem}.py"), source)
    return grade_exercise(server, load_lesson(stem).exercises[exercise], submission, seed)


def run_mutants(
    server: Server, root: Path, stem: str, seed: int
) -> Iterator[tuple[Mutant, ExerciseResult]]:
    """Yield every mutant of a lesson with its result."""
    solution = (root / "solutions" / f"{stem}.py").read_text(encoding="utf-8")
    for mutant in load_mutants(root, stem):
        source = f"{solution}\n\n{mutant.code.strip()}\n"
        yield mutant, grade_source(server, stem, mutant.exercise, source, seed)


def message_key(result: ExerciseResult) -> str | None:
    """Return the key of the first failure's message, None when nothing failed."""
    failure = result.first_failure
    return failure.message.key if failure and failure.message else None
