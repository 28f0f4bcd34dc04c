"""`minigrad reset NN`: the exercise file as it came, after a dated copy of the learner's."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from minigrad.course.stubs import cut
from minigrad.grader.folder import CourseError, CourseFolder, find_exercises, find_folder, find_stem
from minigrad.grader.progress import write_atomically


def backup(folder: CourseFolder, path: Path) -> Path:
    """Copy a learner's file into `.minigrad/backup/DATE/`, under a name that is free."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number, target = 1, folder.state / "backup" / stamp / path.name
    while target.exists():
        number += 1
        target = folder.state / "backup" / f"{stamp}-{number}" / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)
    if target.read_bytes() != path.read_bytes():
        raise OSError(f"the copy {target} differs from {path}")
    return target


def run(options: argparse.Namespace) -> int:
    """Keep a copy, then write the stub. Nothing is written when the copy fails."""
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
    solution = folder.root / "solutions" / f"{stem}.py"
    if not solution.is_file():
        raise CourseError(f"{solution} is missing, and the stub is made from it")
    stub = cut(solution.read_text(encoding="utf-8"), solution.name)
    try:
        if path.exists():
            if path.read_text(encoding="utf-8", errors="replace") == stub:
                print(f"exercises/{path.name} is as it came already")
                return 0
            kept = backup(folder, path)
            print(f"kept yours as {kept.relative_to(folder.root)}")
        write_atomically(path, stub.encode())
    except OSError as error:
        raise CourseError(f"nothing was reset: {error}") from error
    print(f"exercises/{path.name} is as it came")
    return 0
