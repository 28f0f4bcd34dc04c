"""The commands that look at exercises: check, hint, status."""

from __future__ import annotations

import argparse
import json

from minigrad.course.hints import next_hint
from minigrad.grader import progress
from minigrad.grader.folder import (
    find_exercises,
    find_folder,
    known_stems,
    load_lesson,
)
from minigrad.grader.launcher import Server
from minigrad.grader.report import Style, text
from minigrad.grader.result import Result
from minigrad.grader.run import grade, new_seed


def check(options: argparse.Namespace) -> int:
    """Grade the saved files; 0 for full marks, 1 otherwise."""
    folder = find_folder()
    result = Result(new_seed() if options.seed is None else options.seed)
    with Server() as server:
        for what in options.what or folder.stems():
            lesson, exercises = find_exercises(what)
            names = [exercise.name for exercise in exercises]
            path = folder.exercise_file(lesson.stem)
            graded = grade(server, lesson, path, names=names, seed=result.seed)
            progress.record(folder.state, graded)
            result.exercises += graded.exercises
            result.file_hashes |= graded.file_hashes
    print(json.dumps(result.as_dict(), indent=1) if options.json else text(result))
    return 0 if result.passed else 1


def hint(options: argparse.Namespace) -> int:
    """Show the next hint, or the one asked for by number; after the third, the solution's place."""
    print(next_hint(options.exercise, find_folder()))
    return 0


def status(options: argparse.Namespace) -> int:
    """Show every exercise with its points and a tile; a lit tile is a part that runs the engine."""
    del options
    folder = find_folder()
    remembered = progress.load(folder.state)
    style = Style()
    lit, dark = ("■", "□") if style.signs["passed"] == "✓" else ("#", "-")
    total = of = 0
    for stem in known_stems():
        lesson = load_lesson(stem)
        print(f"{stem[:2]}  {lesson.title}")
        for exercise in lesson.exercises.values():
            entry = remembered["exercises"].get(exercise.id, {})
            points = entry.get("points", 0)
            total, of = total + points, of + exercise.points
            runs_engine = exercise.id in remembered["engine"]
            sign = "passed" if points == exercise.points else "failed" if entry else "not_run"
            mark = style.paint(style.signs[sign], sign)
            hints = f"  {entry['hints']} hints" if entry.get("hints") else ""
            minutes = f"{exercise.minutes} min"
            print(
                f"  {lit if runs_engine else dark} {mark} {exercise.name:<24}"
                f"{points:>3} of {exercise.points:<3} {minutes:>7}{hints}"
            )
    print(f"{total} of {of} points   {lit} runs the engine")
    return 0
