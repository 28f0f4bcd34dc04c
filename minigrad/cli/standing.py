"""How far a learner is: what each exercise earned with its present code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad.course.parts import PARTS
from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    known_stems,
    load_lesson,
)
from minigrad.grader.run import Submission
from minigrad.grader.spec import Exercise, Lesson


@dataclass(frozen=True)
class Standing:
    """An exercise: `entry` is its progress, `is_current` whether its code is as it was graded."""

    exercise: Exercise
    entry: dict[str, Any]
    is_current: bool
    ran_the_engine: bool

    @property
    def is_checked(self) -> bool:
        """Whether it was graded at all."""
        return "points" in self.entry

    @property
    def points(self) -> int:
        """What it earned, 0 once its code has changed."""
        return self.entry.get("points", 0) if self.is_current else 0

    @property
    def is_solved(self) -> bool:
        """Whether every check passed on the present code."""
        return self.points == self.exercise.points

    @property
    def is_part(self) -> bool:
        """Whether it is a part that can run in the engine."""
        return self.ran_the_engine or self.exercise.id in PARTS

    @property
    def is_lit(self) -> bool:
        """Whether it is solved and ran in the engine."""
        return self.ran_the_engine and self.is_solved


def standings(folder: CourseFolder) -> Iterator[tuple[Lesson, list[Standing]]]:
    """Yield each lesson with its exercises, in order."""
    remembered = progress.load(folder.state)
    for stem in known_stems():
        lesson = load_lesson(stem)
        submission = submission_of(folder, stem)
        found = []
        for exercise in lesson.exercises.values():
            entry = remembered["exercises"].get(exercise.id, {})
            now = submission.fingerprint(exercise) if submission and entry else None
            current = progress.is_current(entry, now)
            lit = exercise.id in remembered["engine"]
            found.append(Standing(exercise, entry, current, lit))
        yield lesson, found


def submission_of(folder: CourseFolder, stem: str) -> Submission | None:
    """Return a lesson's exercise file as it is now, None if it cannot be read."""
    try:
        return Submission.read(folder.exercise_file(stem))
    except (CourseError, OSError):
        return None
