"""Lights a tile per part of the engine once the learner's part has run a training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.grader import progress
from minigrad.grader.folder import CourseError, find_exercises, find_folder


class Found(str):
    """A sentence that a notebook shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


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
    ours, theirs = np.asarray(mine, float), np.asarray(reference, float)
    if calls < 1:
        return Found("Your function was never called, so the tile stays dark.")
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=1e-3, atol=1e-6):
        return Found("The losses differ from the reference's, so the tile stays dark.")

    def change(data: dict[str, Any]) -> None:
        data["engine"][exercises[0].id] = {
            "calls": calls,
            "last_loss": float(ours[-1]),
            "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }

    try:
        progress.update(find_folder().state, change)
    except (CourseError, OSError) as error:
        return Found(f"Your part runs the engine. (Not remembered: {error})")
    return Found(f"■ {exercises[0].id} runs the engine: called {calls} times, the same losses.")
