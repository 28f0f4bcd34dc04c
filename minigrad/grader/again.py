"""Grades again, in silence, what an edit elsewhere in its file has put in doubt.

Points belong to code. Adding an import or mending a helper changes the code of every exercise that
uses it, but must not send the learner back to those. They keep their points, and are graded again
when somebody looks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from minigrad.grader import progress
from minigrad.grader.folder import CourseError, CourseFolder, loadable
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.result import Result
from minigrad.grader.run import Submission, grade_exercise, new_seed


def grade_again(
    folder: CourseFolder, stems: Iterable[str], server: Server | None = None
) -> list[str]:
    """Grade the exercises whose code has changed since they earned points; remember the result.

    A file or lesson that does not load is left for later: its exercises keep their points.

    Args:
        folder: the learner's course.
        stems: the lessons to look at.
        server: starts the workers; None: a server for this call alone.

    Returns:
        The ids of the exercises that had full marks and lost them.
    """
    lost: list[str] = []
    entries = progress.load(folder.state)["exercises"]
    with contextlib.ExitStack() as opened:
        for lesson in loadable(stems):
            had = [
                (exercise, entries[exercise.id])
                for exercise in lesson.exercises.values()
                if entries.get(exercise.id, {}).get("points")
            ]
            try:
                submission = Submission.read(folder.exercise_file(lesson.stem)) if had else None
            except (CourseError, OSError):
                continue
            for exercise, entry in had:
                assert submission is not None
                if progress.is_current(entry, submission.fingerprint(exercise)):
                    continue
                server = server or opened.enter_context(Server())
                try:
                    graded = grade_exercise(server, exercise, submission, new_seed())
                    progress.record(folder.state, Result(0, [graded]))
                except (GraderError, OSError):
                    return lost
                if not graded.loaded:
                    break
                if entry["points"] == exercise.points and not graded.passed:
                    lost.append(exercise.id)
    return lost
