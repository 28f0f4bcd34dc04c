"""`minigrad reset NN`: resets an exercise file to its stub, after a dated copy."""

from __future__ import annotations

import argparse

from minigrad.course.copies import keep_copy, stub_of
from minigrad.grader.atomic import write_atomically
from minigrad.grader.folder import CourseError, find_exercises, find_folder, find_stem
from minigrad.grader.opening import LARGEST_KEPT, read_file


def run(options: argparse.Namespace) -> int:
    """Make a copy, then write the stub. Nothing is overwritten if the copy fails."""
    folder = find_folder()
    if "." in options.lesson and not options.lesson.endswith(".py"):
        lesson, exercises = find_exercises(options.lesson)
        raise CourseError(
            f"nothing was reset: {exercises[0].id} is one exercise, and reset brings back the "
            f"whole file exercises/{lesson.stem}.py with all {len(lesson.exercises)}; if that is "
            f"what you want, `minigrad reset {lesson.number}` (yours is kept)"
        )
    stem = find_stem(options.lesson)
    path = folder.root / "exercises" / f"{stem}.py"
    stub = stub_of(folder, stem)
    if stub is None:
        raise CourseError(f"nothing was reset: this course has no exercises for lesson {stem[:2]}")
    try:
        if path.exists():
            if read_file(path, LARGEST_KEPT) == stub.encode():
                print(f"exercises/{path.name} is the stub already")
                return 0
            kept = keep_copy(folder, [path]) / "exercises" / path.name
            print(f"kept yours as {kept.relative_to(folder.root)}")
        write_atomically(path, stub.encode())
    except OSError as error:
        raise CourseError(f"nothing was reset: {error}") from error
    print(f"exercises/{path.name} is the stub again")
    return 0
