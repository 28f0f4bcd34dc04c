"""The commands that look at exercises: check, hint, status."""

from __future__ import annotations

import argparse
import json

from minigrad.course.hints import next_hint
from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    find_exercises,
    find_folder,
    known_stems,
    load_lesson,
)
from minigrad.grader.launcher import Server
from minigrad.grader.report import Style, text
from minigrad.grader.result import Result
from minigrad.grader.run import Submission, file_hash, grade, new_seed
from minigrad.grader.spec import Exercise


def check(options: argparse.Namespace) -> int:
    """Grade the saved files; 0 for full marks, 1 otherwise."""
    folder = find_folder()
    result = Result(new_seed() if options.seed is None else options.seed)
    with Server() as server:
        for what in folder.stems() if options.what in ([], ["all"]) else options.what:
            lesson, exercises = find_exercises(what)
            names = [exercise.name for exercise in exercises]
            path = folder.exercise_file(lesson.stem)
            graded = grade(server, lesson, path, names=names, seed=result.seed)
            progress.record(folder.state, graded)
            result.exercises += graded.exercises
            result.file_hashes |= graded.file_hashes
    print(
        json.dumps(result.as_dict(), indent=1) if options.json else text(result, full=options.full)
    )
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
    is_stale = False
    for stem in known_stems():
        lesson = load_lesson(stem)
        hash_now = hash_of_file(folder, stem)
        print(f"{stem[:2]}  {lesson.title}")
        for exercise in lesson.exercises.values():
            entry = remembered["exercises"].get(exercise.id, {})
            checked, current = "points" in entry, progress.is_current(entry, hash_now)
            points = entry.get("points", 0) if current else 0
            total, of = total + points, of + exercise.points
            passed = points == exercise.points
            sign = "passed" if passed else "failed" if checked and current else "not_run"
            mark = style.paint(style.signs[sign], sign)
            tile = lit if passed and exercise.id in remembered["engine"] else dark
            notes = [hints_taken(exercise, entry.get("hints", 0))]
            if checked and not current:
                is_stale = True
                notes.append(f"had {entry['points']} before the file changed")
            line = (
                f"  {tile} {mark} {exercise.name:<24}{points:>3} of {exercise.points:<3} "
                f"{exercise.minutes:>3} min  {', '.join(note for note in notes if note)}"
            )
            print(line.rstrip())
    print(f"{total} of {of} points   {lit} runs the engine")
    if is_stale:
        print("points count for the file as it was checked; `minigrad check` checks it as it is")
    return 0


def hash_of_file(folder: CourseFolder, stem: str) -> str | None:
    """Return the hash of a lesson's exercise file as it is now, None when there is none."""
    try:
        return file_hash(Submission.read(folder.exercise_file(stem)).source)
    except CourseError:
        return None


def hints_taken(exercise: Exercise, n: int) -> str:
    """Return in words how many hints were looked at; after the last comes the solution."""
    if n > len(exercise.hints):
        return f"{len(exercise.hints)} hints and the solution"
    return f"{n} hint{'s' if n > 1 else ''}" if n else ""
