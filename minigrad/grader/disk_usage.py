"""Measures what a worker's folder holds while the worker runs.

The operating system bounds the size of each file, but not the sum over a process's files.
"""

from __future__ import annotations

import os

TRIES = 20  # attempts to walk a folder in which others vanish meanwhile
BLOCK = 512  # bytes: the unit of st_blocks


def excess(folder: str, most_bytes: int, most_files: int) -> str:
    """Return in words which limit a folder exceeds, "" if none.

    Counts the bytes allocated on disk, and all files and folders of whatever kind. A folder that
    cannot be read counts as an excess, and so do folders that vanish at every attempt to read them.
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
    """Return how many bytes of disk a file takes: fewer than its size if it has gaps."""
    try:
        facts = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed or renamed meanwhile; it is counted as a file
        return 0
    blocks = getattr(facts, "st_blocks", None)
    return facts.st_size if blocks is None else blocks * BLOCK
