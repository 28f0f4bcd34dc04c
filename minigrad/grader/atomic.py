"""Writes files so that a crash, a kill or a full disk at any moment loses nothing.

A file is first written under a temporary name in the same folder and flushed to disk, then renamed
in one step of the file system. An interrupted write leaves a hidden file, which `is_leftover`
recognizes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}\.new")


def write_atomically(path: Path, content: bytes) -> None:
    """Write or replace a file so that a crash at any moment leaves the old content or the new.

    An existing file keeps its permissions. A link is followed: its target is written.
    """
    path = Path(os.path.realpath(path))
    temporary = _write_beside(path, content)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(path.parent)


def place(path: Path, content: bytes) -> None:
    """Write a new file; raise FileExistsError, and change nothing, if the path is taken."""
    if os.path.lexists(path):
        raise FileExistsError(f"{path} is there already")
    temporary = _write_beside(path, content)
    try:
        try:
            os.link(temporary, path)  # unlike a rename, it never replaces
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with open(path, "xb") as file:
                file.write(content)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    _sync(path.parent)


def is_leftover(path: Path) -> bool:
    """Return whether a file was left behind by an interrupted write."""
    return LEFTOVER.fullmatch(path.name) is not None


def free_name(path: Path) -> Path:
    """Return the first of `path`, `path-2`, `path-3`, ... that is free."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def _write_beside(path: Path, content: bytes) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _sync(folder: Path) -> None:
    """Flush a folder's entries to disk, on systems that can open folders."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
