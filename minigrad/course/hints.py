"""Gives hints: three steps, then where the solution is. They are recorded, but cost nothing."""

from __future__ import annotations

import textwrap

from minigrad.course.source import installed
from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    checked_text,
    find_exercises,
    find_folder,
)
from minigrad.grader.spec import Exercise


def next_hint(name: str, folder: CourseFolder) -> str:
    """Return the next hint for `00.slope`, or the hint with this number for `00.slope.2`.

    As everywhere, `slope` alone is enough if only one lesson has it.
    """
    front, _, back = checked_text(name).rpartition(".")
    asked = int(back) if back.isdigit() and not f"{front}0".isdigit() else None
    _, exercises = find_exercises(front if asked is not None else name)
    if len(exercises) != 1:
        names = ", ".join(exercise.id for exercise in exercises)
        raise CourseError(f"a hint is for one exercise: {names}")
    exercise = exercises[0]
    entry = progress.load(folder.state)["exercises"].get(exercise.id, {})
    if asked is None and entry.get("best", 0) >= exercise.points:  # no help that was needed
        return "\n".join([f"{exercise.id} is solved. Its hints:", *map(_shown, exercise.hints)])
    step = entry.get("hints", 0) + 1 if asked is None else asked
    if step < 1:
        raise CourseError("hints are numbered from 1")
    note = ""
    try:
        progress.record_hint(folder.state, exercise.id, min(step, len(exercise.hints) + 1))
    except OSError as error:
        note = f"\n(not remembered: {error}; `minigrad hint {exercise.id}.{step + 1}` is the next)"
    if step > len(exercise.hints):
        return f"All hints for {exercise.id} are given. {solution_place(folder, exercise)}{note}"
    of = f"Hint {step} of {len(exercise.hints)} for {exercise.id}:"
    return f"{of}\n{_shown(exercise.hints[step - 1])}{note}"


def _shown(text: str) -> str:
    """Return a hint's lines."""
    return textwrap.indent(textwrap.fill(text, 88), "  ")


def solution_place(folder: CourseFolder, exercise: Exercise) -> str:
    """Return a sentence that says where the solution is, or that none is here."""
    name = f"solutions/{exercise.lesson.stem}.py"
    path = folder.root / name
    if path.is_file():
        shown = name
    elif (shipped := installed().solution(exercise.lesson.stem)) is not None:
        shown = str(shipped)
    else:
        return "This class's course comes without solutions: ask your teacher."
    return f"The solution is in\n{shown}: read it, close it, and write it yourself."


def hint(name: str) -> None:
    """Print the next hint for an exercise such as `"00.slope"`, in a notebook."""
    print(next_hint(name, find_folder()))  # noqa: T201 - printing is its purpose
