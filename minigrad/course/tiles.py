"""Lights a tile per part of the engine once the learner's part has run a training."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.grader import progress
from minigrad.grader.folder import CourseError, CourseFolder, find_exercises, find_folder


class Found(str):
    """A sentence that a notebook shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def agree(mine: Sequence[float], reference: Sequence[float]) -> bool:
    """Return whether two trainings have the same losses, up to rounding."""
    ours, theirs = np.asarray(mine, float), np.asarray(reference, float)
    return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-3, atol=1e-6)


def light(
    exercise_id: str, *, mine: Sequence[float], reference: Sequence[float], calls: int
) -> Found:
    """Compare two trainings; light the exercise's tile if they agree.

    Args:
        exercise_id: such as `"01.mul_backward"`.
        mine: the losses with the learner's part in the engine.
        reference: the losses with the engine's own part.
        calls: how often the learner's function was called; with 0 the tile stays dark.

    Returns:
        One sentence that says whether they agree.
    """
    lesson, exercises = find_exercises(exercise_id)
    if len(exercises) != 1:
        raise CourseError(f"a tile belongs to one exercise, not to lesson {lesson.number}")
    if calls < 1:
        return Found("Your function was never called, so the tile stays dark.")
    if not agree(mine, reference):
        return Found("The losses differ from the reference's, so the tile stays dark.")
    try:
        remember(find_folder(), {exercises[0].id: calls}, float(mine[-1]))
    except (CourseError, OSError) as error:
        return Found(f"Your part runs the engine. (Not remembered: {error})")
    return Found(f"■ {exercises[0].id} runs the engine: called {calls} times, the same losses.")


def remember(folder: CourseFolder, calls: Mapping[str, int], last_loss: float) -> None:
    """Light the tiles of exercises whose parts ran in one training; `calls`: how often each."""
    ran = {
        exercise_id: {
            "calls": n, "last_loss": last_loss, "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }
        for exercise_id, n in calls.items()
        if n
    }  # fmt: skip

    def change(data: dict[str, Any]) -> None:
        data["engine"].update(ran)

    progress.update(folder.state, change)
