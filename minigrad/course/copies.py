"""Keeps in `.minigrad` dated copies of a learner's files, and the course as it came.

.minigrad/backup/DATE/          copies of files that a command was about to change
.minigrad/course/               unchanged exercises and lessons, which `update` compares with
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from minigrad.course.source import Source, installed
from minigrad.grader.atomic import free_name, write_atomically
from minigrad.grader.folder import CourseFolder
from minigrad.grader.opening import LARGEST_KEPT, read_file, read_text


def keep_copy(folder: CourseFolder, paths: Iterable[Path]) -> Path:
    """Copy the learner's files into a dated folder, and return that folder.

    Its name ends in `.part` until all copies are complete.
    """
    backups = folder.state / "backup"
    backups.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    part = free_name(backups / f"{stamp}.part")
    part.mkdir()
    for path in paths:
        target = part / path.relative_to(folder.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = read_file(path, LARGEST_KEPT)
        write_atomically(target, content)
        if target.read_bytes() != content:
            raise OSError(f"the copy {target} differs from {path}")
    final = free_name(backups / stamp)
    os.rename(part, final)
    return final


def as_it_came(folder: CourseFolder, path: Path) -> str | None:
    """Return an exercise file or notebook as the learner got it, None if unknown.

    A checkout keeps none of them, since it has the solutions and lesson sources.
    """
    try:
        return read_text(_remembered(folder, path))
    except (OSError, UnicodeDecodeError):
        return None


def remember(folder: CourseFolder, path: Path, text: str) -> None:
    """Keep a stub or notebook as the learner gets it."""
    place = _remembered(folder, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, text.encode())


def stub_of(folder: CourseFolder, stem: str) -> str | None:
    """Return the stub that `reset` writes: this folder's own, else the installed course's."""
    if (folder.root / "solutions" / f"{stem}.py").is_file():
        own = Source(folder.root).stubs().get(stem)
        if own is not None:
            return own
    came = as_it_came(folder, folder.root / "exercises" / f"{stem}.py")
    return installed().stubs().get(stem) if came is None else came


def _remembered(folder: CourseFolder, path: Path) -> Path:
    return folder.state / "course" / path.relative_to(folder.root)
