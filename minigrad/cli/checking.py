"""The commands `check` and `hint`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from minigrad.cli.next_exercise import brief
from minigrad.cli.ranges import spelled_out
from minigrad.course.hints import next_hint
from minigrad.grader import progress
from minigrad.grader.again import grade_again
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    LessonError,
    find_exercises,
    find_folder,
    known_stems,
)
from minigrad.grader.launcher import Server
from minigrad.grader.report import text
from minigrad.grader.result import Result
from minigrad.grader.run import grade, new_seed
from minigrad.grader.spec import Exercise
from minigrad.grader.views import as_json, gradescope, junit

QUIET_SECONDS = 2.0
SLOW_SECONDS = 2.0  # for one call
POLL_SECONDS = 0.1


def check(options: argparse.Namespace) -> int:
    """Grade the saved files; return 0 for full marks, 1 otherwise.

    A lesson that does not load raises LessonError once all others are graded and shown.
    """
    folder = find_folder()
    result = Result(new_seed() if options.seed is None else options.seed)
    stems: list[str] = []
    unsaved, broken = False, None
    with Server() as server:
        is_all = options.what in ([], ["all"])
        for what in folder.stems() if is_all else spelled_out(options.what, known_stems()):
            try:
                lesson, exercises = find_exercises(what)
            except LessonError as error:
                broken = error
                continue
            path = folder.exercise_file(lesson.stem)
            names = [exercise.name for exercise in exercises]
            around = partial(patience, server)
            graded = grade(server, lesson, path, names=names, seed=result.seed, around=around)
            unsaved |= remember(folder, graded)
            result.exercises += graded.exercises
            result.file_hashes |= graded.file_hashes
            stems.append(lesson.stem)
        lost = grade_again(folder, stems, server)
    if broken is not None and not stems:
        raise broken
    for path, content in (
        (options.junit, lambda: junit(result)),
        (options.gradescope, lambda: json.dumps(gradescope(result), indent=1)),
    ):
        if path is not None:
            try:
                write_atomically(Path(path), content().encode())
            except OSError as error:
                raise CourseError(f"{path} cannot be written: {error.strerror}") from None
    if options.json:
        print(as_json(result))
    else:
        print(text(result, full=options.full))
        if unsaved:
            print("What failed has not changed since the last check. Is the file saved?")
        for exercise_id in lost:
            print(f"{exercise_id} passed before this change and does not any more.")
        if result.passed:
            print(brief(folder))
    if broken is not None:
        raise broken
    return 0 if result.passed else 1


@contextlib.contextmanager
def patience(server: Server, exercise: Exercise) -> Iterator[None]:
    """Say that an exercise is still being graded when that takes long.

    If a call is slow, say also that it will end. On a busy machine grading takes long without one.
    """
    done = threading.Event()

    def say() -> None:
        if done.wait(QUIET_SECONDS):
            return
        print(f"still grading {exercise.id} ...", file=sys.stderr)
        while not done.wait(POLL_SECONDS):
            if (seconds := server.call_seconds()) >= SLOW_SECONDS:
                limit = exercise.limits.call_seconds
                ends = f"a call that gives no answer ends after {limit:g} s"
                print(f"  one call has run for {seconds:.1f} s; {ends}", file=sys.stderr)
                return

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def remember(folder: CourseFolder, graded: Result) -> bool:
    """Save the points; if that fails, say so and go on.

    Returns:
        Whether an exercise failed that had failed before with the very same code, when somebody
        had asked: a lesson's `watch` has graded each save already.
    """
    before = progress.load(folder.state)["exercises"]
    same = any(
        not exercise.passed
        and not exercise.is_untouched
        and (entry := before.get(exercise.id, {})).get("hash") == exercise.fingerprint
        and not entry.get("watched")
        for exercise in graded.exercises
    )
    try:
        progress.record(folder.state, graded)
    except OSError as error:
        print(f"minigrad: the points are not remembered: {error}", file=sys.stderr)
    return same


def hint(options: argparse.Namespace) -> int:
    """Show the next hint, or the one with a number; after the third, where the solution is."""
    print(next_hint(options.exercise, find_folder()))
    return 0
