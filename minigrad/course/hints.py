"""Hints: three steps, then the place of the solution. Remembered, never charged."""

from __future__ import annotations

import textwrap

from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    checked_text,
    find_exercises,
    find_folder,
)


def next_hint(name: str, folder: CourseFolder) -> str:
    """Return the next hint for `00.slope`, or the hint with this number for `00.slope.2`."""
    front, _, back = checked_text(name).rpartition(".")
    asked = int(back) if back.isdigit() and "." in front else None
    _, exercises = find_exercises(front if asked is not None else name)
    if len(exercises) != 1:
        names = ", ".join(exercise.id for exercise in exercises)
        raise CourseError(f"a hint is for one exercise: {names}")
    exercise = exercises[0]
    entry = progress.load(folder.state)["exercises"].get(exercise.id, {})
    step = entry.get("hints", 0) + 1 if asked is None else asked
    if step < 1:
        raise CourseError("hints are numbered from 1")
    progress.record_hint(folder.state, exercise.id, min(step, len(exercise.hints) + 1))
    if step > len(exercise.hints):
        assert exercise.lesson is not None
        return (
            f"All hints for {exercise.id} are given. The solution stands in\n"
            f"solutions/{exercise.lesson.stem}.py: read it, close it, and write it yourself."
        )
    text = textwrap.indent(textwrap.fill(exercise.hints[step - 1], 88), "  ")
    return f"Hint {step} of {len(exercise.hints)} for {exercise.id}:\n{text}"


def hint(name: str) -> None:
    """Print the next hint for an exercise such as `"00.slope"`, in a notebook."""
    print(next_hint(name, find_folder()))  # noqa: T201 - this is what it is for
