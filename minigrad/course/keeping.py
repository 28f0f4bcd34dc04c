"""What a learner's folder keeps of its own: dated copies, and the course as it came.

.minigrad/backup/DATE/          copies of what a command was about to change
.minigrad/course/               exercises and lessons as they came, which `update` compares with
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from minigrad.course.source import Source, installed
from minigrad.grader.atomic import free_name, write_atomically
from minigrad.grader.folder import CourseFolder


def keep_copy(folder: CourseFolder, paths: Iterable[Path]) -> Path:
    """Copy files of the learner's into a dated folder, and return that folder.

    It gets its name when all copies are complete; an interrupted one keeps the ending `.part`.
    """
    backups = folder.state / "backup"
    backups.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    part = free_name(backups / f"{stamp}.part")
    part.mkdir()
    for path in paths:
        target = part / path.relative_to(folder.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        write_atomically(target, content)
        if target.read_bytes() != content:
            raise OSError(f"the copy {target} differs from {path}")
    final = free_name(backups / stamp)
    os.rename(part, final)
    return final


def as_it_came(folder: CourseFolder, path: Path) -> str | None:
    """Return an exercise file's stub or a lesson's notebook as the learner got it, if remembered.

    In a checkout nothing is remembered: there the course and the learner's files come together.
    """
    try:
        return _remembered(folder, path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def remember(folder: CourseFolder, path: Path, text: str) -> None:
    """Remember a stub or a notebook as it came."""
    place = _remembered(folder, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, text.encode())


def stub_of(folder: CourseFolder, stem: str) -> str | None:
    """Return the stub that `reset` brings back: this folder's own, else the installed course's."""
    if (folder.root / "solutions" / f"{stem}.py").is_file():
        own = Source(folder.root).stubs().get(stem)
        if own is not None:
            return own
    came = as_it_came(folder, folder.root / "exercises" / f"{stem}.py")
    return installed().stubs().get(stem) if came is None else came


def _remembered(folder: CourseFolder, path: Path) -> Path:
    return folder.state / "course" / path.relative_to(folder.root)
