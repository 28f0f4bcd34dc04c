"""Opens files in a learner's folder, where a pipe, a device or a link may stand instead of a file.

Opening a pipe may wait for ever, and a link may show what only the reader may read. The checks look
at the open descriptor, since nobody can replace that any more.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST_TEXT = 2**26  # bytes of a notebook, a page or a stub
LARGEST_KEPT = 2**30  # bytes of a file that is copied before it is replaced
SYSTEM = ("/proc/", "/sys/", "/dev/")  # their files are the system's, or a process's


class NotAFileError(OSError):
    """What was opened is no regular file of the learner's; the text says what it is."""


def read_file(path: Path, most: int, *, within: Path | None = None) -> bytes:
    """Return a file's content; never wait for one.

    Args:
        path: the file, or a link to one.
        most: how many bytes it may have.
        within: a resolved path: the file must lie there or below once all links are followed.

    Raises:
        NotAFileError: it is no regular file, or it is too large, or a link leads to a file of the
            system or, with `within`, out of that path.
    """
    fd = open_file(path, os.O_RDONLY, within=within)
    with open(fd, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _no_file(path, f"is larger than {most:,} bytes")
    return content


def read_text(path: Path, most: int = LARGEST_TEXT) -> str:
    r"""Return the text of a UTF-8 file with "\n" at the ends of lines; see `read_file`.

    Raises UnicodeDecodeError, besides what `read_file` raises.
    """
    return read_file(path, most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def open_file(path: Path, flags: int, *, within: Path | None = None) -> int:
    """Open a regular file as `os.open` does; return its descriptor. See `read_file`."""
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):  # each where the system has it
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _no_file(path, "is no regular file, but a folder, a pipe or a device")
        place = _place(fd, path)
        if within is not None and not place.is_relative_to(within):
            raise _no_file(path, "is a link that leads out of the submission")
        is_linked = place != path.parent.resolve() / path.name
        if is_linked and place.as_posix().startswith(SYSTEM):
            raise _no_file(path, f"is a link to {place}, a file of the system's")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _no_file(path: Path, why: str) -> NotAFileError:
    return NotAFileError(errno.EINVAL, f"it {why}", str(path))


def _place(fd: int, path: Path) -> Path:
    """Return the path of an open file."""
    try:
        return Path(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:  # not Linux: where the path leads now, if that is the same file
        place = path.resolve()
        if not os.path.samestat(place.lstat(), os.fstat(fd)):
            raise _no_file(path, "was replaced while it was opened") from None
        return place
