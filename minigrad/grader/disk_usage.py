"""Measures what a worker's folder holds while the worker runs.

A kernel bounds the bytes of a file, but not those of all files of a process.
"""

from __future__ import annotations

import os

TRIES = 20  # to look through a folder in which others vanish meanwhile
BLOCK = 512  # bytes of what st_blocks counts


def excess(folder: str, most_bytes: int, most_files: int) -> str:
    """Return what is too much about a folder in words, "" if nothing is.

    Counted are bytes that lie on the disk, and files and folders of whatever kind. What cannot be
    looked into is too much, and so are folders that vanish whenever they are looked for.
    """
    for _ in range(TRIES):
        try:
            return _excess(folder, most_bytes, most_files)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return f"it made a folder that nobody can look into ({error.strerror})"
    return "it moved its folders while they were looked at"


def _excess(folder: str, most_bytes: int, most_files: int) -> str:
    waiting, n_bytes, n_files = [folder], 0, 0
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                n_files += 1
                n_bytes += _bytes_of(entry)
                if n_files > most_files:
                    return f"it made more than {most_files:,} files and folders"
                if n_bytes > most_bytes:
                    return f"its files together took more than {most_bytes:,} bytes"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return ""


def _bytes_of(entry: os.DirEntry) -> int:
    """Return how many bytes of the disk a file takes: fewer than it has, where it has gaps."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed or renamed meanwhile; it is counted as a file
        return 0
    blocks = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else blocks * BLOCK
