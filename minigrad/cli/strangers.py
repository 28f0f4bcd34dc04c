"""Chooses what strangers' files are graded with: a user's rights, and kernels that they only read.

Walls take from root what root may do beyond any user (`walls.py`), but root owns most files, and no
limit on processes holds for root. So where root grades, files run as a user who owns nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from minigrad.devices.loader import cache_folder
from minigrad.grader.launcher import SERVER_FOLDER, GraderError, Server
from minigrad.grader.sandbox import Ended, Worker

USER = 61234  # nobody's id: no distribution assigns such numbers by itself


def is_root() -> bool:
    """Return whether this process has the rights of root."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def other_user(*, jailed: bool) -> tuple[int | None, str]:
    """Return a user for strangers' files, or None and why that user cannot grade here.

    Only root can choose one. Where root cannot change the user inside a jail, the jail reads Python
    with that user's rights.
    """
    try:
        with Server(user=USER, jailed=jailed) as server:
            if not server.changes_user_inside and (why := server.hindrance()):
                return None, why
            if not jailed or server.changes_user_inside:
                Worker(server, "", "x.py").close()
    except (GraderError, Ended, OSError) as error:
        return None, str(error)
    return USER, ""


@contextlib.contextmanager
def kernels_for(user: int | None) -> Iterator[str]:
    """Yield the folder of compiled kernels; for another user, one that this user can only read.

    Its files are links if both folders are on one file system, else copies: there may be hundreds
    of megabytes. That user owns neither.
    """
    if user is None:
        yield str(cache_folder())
        return
    with tempfile.TemporaryDirectory(prefix=f"{SERVER_FOLDER}{os.getpid()}-") as readable:
        os.chmod(readable, 0o755)
        for path in cache_folder().glob("*"):
            with contextlib.suppress(OSError):  # another process may just have removed it
                os.chmod(_linked(path, Path(readable) / path.name), 0o644)
        yield readable


def _linked(path: Path, target: Path) -> Path:
    """Make `target` a link to a file, or a copy where links are impossible; return it."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
    return target
