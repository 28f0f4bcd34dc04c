"""`minigrad next`: shows the next unsolved exercise, where it is, and how to go on."""

from __future__ import annotations

import argparse

from minigrad.course.contents import FAST_TRACK
from minigrad.course.scores import Standing, first_unsolved
from minigrad.grader.again import grade_again
from minigrad.grader.folder import CourseFolder, find_folder, find_stem, known_stems
from minigrad.grader.reading import line_of
from minigrad.grader.report import Style
from minigrad.grader.run import Submission
from minigrad.grader.spec import Exercise, Lesson


def run(options: argparse.Namespace) -> int:
    """Show what comes next, in the whole course or in one lesson."""
    folder = find_folder()
    grade_again(folder, known_stems())
    stem = find_stem(options.lesson) if options.lesson else None
    unsolved = first_unsolved(folder, stem)
    if unsolved is None:
        where = f"lesson {stem[:2]} is solved" if stem else "everything is solved"
        print(f"Nothing is left: {where}. `minigrad status` shows the wall of your parts.")
        return 0
    print("\n".join(describe(folder, *unsolved, Style())))
    return 0


def describe(folder: CourseFolder, lesson: Lesson, standing: Standing, style: Style) -> list[str]:
    """Return lines that say what to do, where, how long it takes and what helps."""
    exercise = standing.exercise
    stars = style.stars(exercise.difficulty)
    points = f"{exercise.points} point{'s' if exercise.points != 1 else ''}"
    head = style.paint(f"next: {exercise.id}", "bold")
    lines = [f"{head}  {stars}  about {exercise.minutes} min, {points}"]
    fast = f", {FAST_TRACK}" * lesson.on_fast_track
    rows = [
        ("write it", place_of(folder, exercise)),
        ("lesson", f"{lesson.number} {lesson.title} (lessons/{lesson.stem}.ipynb){fast}"),
        ("open both", f"minigrad lab {lesson.number}"),
        ("grade it", f"minigrad check {exercise.id}"),
        ("stuck", f"minigrad hint {exercise.id}"),
    ]
    lines += [f"  {label:<10} {text}" for label, text in rows]
    if standing.is_checked and not standing.is_current:
        lines.append("  Its code has changed since it was graded. Is it solved? Grade it.")
    return lines


def brief(folder: CourseFolder) -> str:
    """Return what comes next in one line."""
    unsolved = first_unsolved(folder)
    if unsolved is None:
        return "next: nothing, everything is solved"
    exercise = unsolved[1].exercise
    place = place_of(folder, exercise)
    return f"next: {exercise.id}, about {exercise.minutes} min ({place})"


def place_of(folder: CourseFolder, exercise: Exercise) -> str:
    """Return the file and line of an exercise."""
    path = folder.root / "exercises" / f"{exercise.lesson.stem}.py"
    if not path.is_file():
        return f"exercises/{path.name} is missing: `minigrad reset {exercise.lesson.number}`"
    line = line_of(Submission.read(path).source, exercise.name)
    return f"exercises/{path.name}" + (f":{line}" if line else "")
