"""The commands that look at exercises: check, hint, status."""

from __future__ import annotations

import argparse
import json
import textwrap

from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
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
        for what in options.what or known_stems():
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
    name, _, number = options.exercise.rpartition(".")
    asked = int(number) if number.isdigit() and "." in name else None
    _, exercises = find_exercises(name if asked else options.exercise)
    if len(exercises) != 1:
        names = ", ".join(exercise.id for exercise in exercises)
        raise CourseError(f"a hint is for one exercise: {names}")
    exercise = exercises[0]
    folder = find_folder()
    entry = progress.load(folder.state)["exercises"].get(exercise.id, {})
    step = asked or entry.get("hints", 0) + 1
    if step < 1:
        raise CourseError("hints are numbered from 1")
    progress.record_hint(folder.state, exercise.id, min(step, len(exercise.hints) + 1))
    if step > len(exercise.hints):
        assert exercise.lesson is not None
        print(
            f"All hints for {exercise.id} are given. The solution stands in "
            f"solutions/{exercise.lesson.stem}.py; read it, close it, write it yourself."
        )
        return 0
    print(f"Hint {step} of {len(exercise.hints)} for {exercise.id}:")
    print(textwrap.fill(exercise.hints[step - 1], 88, initial_indent="  ", subsequent_indent="  "))
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
