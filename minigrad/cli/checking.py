"""The commands `check` and `hint`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from minigrad.cli.following import brief
from minigrad.course.hints import next_hint
from minigrad.grader import progress
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, CourseFolder, find_exercises, find_folder
from minigrad.grader.launcher import Server
from minigrad.grader.report import text
from minigrad.grader.result import Result
from minigrad.grader.run import grade, new_seed
from minigrad.grader.views import as_json, gradescope, junit


def check(options: argparse.Namespace) -> int:
    """Grade the saved files; return 0 for full marks, 1 otherwise."""
    folder = find_folder()
    result = Result(new_seed() if options.seed is None else options.seed)
    with Server() as server:
        for what in folder.stems() if options.what in ([], ["all"]) else options.what:
            lesson, exercises = find_exercises(what)
            names = [exercise.name for exercise in exercises]
            path = folder.exercise_file(lesson.stem)
            graded = grade(server, lesson, path, names=names, seed=result.seed)
            remember(folder, graded)
            result.exercises += graded.exercises
            result.file_hashes |= graded.file_hashes
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
        if result.passed:
            print(brief(folder))
    return 0 if result.passed else 1


def remember(folder: CourseFolder, graded: Result) -> None:
    """Remember the points; if that fails, say so and go on."""
    try:
        progress.record(folder.state, graded)
    except OSError as error:
        print(f"minigrad: the points are not remembered: {error}", file=sys.stderr)


def hint(options: argparse.Namespace) -> int:
    """Show the next hint, or the one with a number; after the third, where the solution is."""
    print(next_hint(options.exercise, find_folder()))
    return 0
