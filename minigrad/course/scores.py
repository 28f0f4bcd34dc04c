"""Reports how far a learner is: what each exercise earned.

An exercise keeps its points when the code around it changes; `up_to_date` grades it again first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad.course.parts import PARTS
from minigrad.grader import progress
from minigrad.grader.again import grade_again
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    known_stems,
    loadable,
)
from minigrad.grader.run import Submission
from minigrad.grader.spec import Exercise, Lesson


def duration(minutes: int) -> str:
    """Return a time in words.

    >>> duration(165), duration(1014)
    ('165 min', '17 hours')
    """
    return f"{minutes} min" if minutes < 240 else f"{minutes / 60:.0f} hours"


@dataclass(frozen=True)
class Standing:
    """How one exercise stands.

    Attributes:
        entry: its saved progress.
        is_there: whether its file can be read.
        is_current: whether its code is the code that was graded.
        ran_the_engine: whether the learner's function ran in the engine.
    """

    exercise: Exercise
    entry: dict[str, Any]
    is_there: bool
    is_current: bool
    ran_the_engine: bool

    @property
    def is_checked(self) -> bool:
        """Return whether it was graded at all."""
        return "points" in self.entry

    @property
    def points(self) -> int:
        """Return the points of its last grading, 0 without a file."""
        return self.entry.get("points", 0) if self.is_there else 0

    @property
    def is_solved(self) -> bool:
        """Return whether every check passed."""
        return self.points == self.exercise.points

    @property
    def is_part(self) -> bool:
        """Return whether it is a part that can run in the engine."""
        return self.ran_the_engine or self.exercise.id in PARTS

    @property
    def is_lit(self) -> bool:
        """Return whether it is solved and ran in the engine."""
        return self.ran_the_engine and self.is_solved


def up_to_date(folder: CourseFolder) -> Iterator[tuple[Lesson, list[Standing]]]:
    """Yield what `standings` yields, after grading exercises whose points are in doubt."""
    grade_again(folder, known_stems())
    yield from standings(folder)


def standings(folder: CourseFolder) -> Iterator[tuple[Lesson, list[Standing]]]:
    """Yield each lesson that loads, in order, with its exercises."""
    remembered = progress.load(folder.state)
    for lesson in loadable(known_stems()):
        submission = submission_of(folder, lesson.stem)
        exercises = []
        for exercise in lesson.exercises.values():
            entry = remembered["exercises"].get(exercise.id, {})
            now = submission.fingerprint(exercise) if submission and entry else None
            current = progress.is_current(entry, now)
            lit = exercise.id in remembered["engine"]
            exercises.append(Standing(exercise, entry, submission is not None, current, lit))
        yield lesson, exercises


def first_unsolved(folder: CourseFolder, stem: str | None = None) -> tuple[Lesson, Standing] | None:
    """Return the next unsolved exercise, None if all are solved.

    Without a stem, search from the lesson that was graded last to the course's end, and then from
    its beginning.
    """
    lessons = [one for one in standings(folder) if stem is None or one[0].stem == stem]
    graded = [max(one.entry.get("when", "") for one in some) for _, some in lessons]
    begin = graded.index(max(graded)) if graded else 0
    for lesson, some in lessons[begin:] + lessons[:begin]:
        for standing in some:
            if not standing.is_solved:
                return lesson, standing
    return None


def submission_of(folder: CourseFolder, stem: str) -> Submission | None:
    """Return a lesson's exercise file as it is now, None if it cannot be read."""
    try:
        return Submission.read(folder.exercise_file(stem))
    except (CourseError, OSError):
        return None
