"""Puts the fork server into bubblewrap to grade a class's files: `grade --jail=bwrap`.

Inside are another user, no network, no process but the grader's own, and an empty temporary folder.
Of the machine's files only those of Python, its packages, and minigrad without its course and
commands can be read. The jail holds where the walls that a worker builds around itself (`walls.py`)
do not; inside it, workers build these walls as well. Linux with bubblewrap and user namespaces.

Source: the manual page bwrap(1).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from minigrad.grader import walls

PROGRAM = "bwrap"
NOBODY = "65534"  # user id and group id inside
COMMON = ("--die-with-parent", "--proc", "/proc", "--dev", "/dev")
BEGINNING = (
    "--unshare-all", "--unshare-user", "--uid", NOBODY, "--gid", NOBODY, "--cap-drop", "ALL",
    *COMMON,
)  # fmt: skip
# For root, who becomes another user inside (bare.py): a new user namespace would have no other.
CHANGING_USER = (
    "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", *COMMON,
)  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[1]
HIDDEN = ("course", "cli")  # folders of minigrad that no worker needs, but for one file
OBJECTS = PACKAGE / "course" / "objects.py"


def command(folder: str, readable: Iterable[str], *, changing_user: bool = False) -> list[str]:
    """Return a prefix for a command line that runs the command inside the jail.

    Args:
        folder: the only writable folder; workers' own folders are made in it.
        readable: more read-only folders, besides Python's, the system's and minigrad's.
        changing_user: whether the command, started by root, becomes another user.
    """
    beginning = CHANGING_USER if changing_user else BEGINNING
    line = [PROGRAM, *beginning, "--new-session", "--tmpfs", "/tmp"]
    python = [sys.base_prefix, sys.prefix, os.path.dirname(os.path.realpath(sys.executable))]
    system = [path for path in walls.SYSTEM if not path.startswith(("/proc/", "/dev/"))]
    for path in dict.fromkeys([*system, *python, *readable, str(PACKAGE)]):
        # Parent folders that bubblewrap makes by itself are closed to any other user.
        line += ["--dir", os.path.dirname(path), "--ro-bind-try", path, path]
    for name in HIDDEN:
        line += ["--tmpfs", str(PACKAGE / name)]
    line += ["--ro-bind", str(OBJECTS), str(OBJECTS)]
    line += ["--dir", os.path.dirname(folder), "--bind", folder, folder]
    # bubblewrap's other folders lie in memory, whose use it does not bound.
    for path in ["/dev", "/tmp", *(str(PACKAGE / name) for name in HIDDEN), "/"]:
        line += ["--remount-ro", path]
    return [*line, "--chdir", "/" if changing_user else folder, "--"]


def hindrance(**user: Any) -> str | None:
    """Return in words why no jail can be made here, None if one can.

    Args:
        user: options for subprocess that set another user.
    """
    if shutil.which(PROGRAM) is None:
        return f"there is no {PROGRAM}: it comes with the package bubblewrap"
    return _why_not(BEGINNING, **user)


@functools.cache
def root_changes_user() -> bool:
    """Return whether this process is root's and may become another user in a jail.

    That user's processes can be counted, and Python may lie where only root can enter.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which(PROGRAM) is None:
        return False
    return _why_not(CHANGING_USER) is None


def _why_not(beginning: Iterable[str], **user: Any) -> str | None:
    line = [PROGRAM, "--ro-bind", "/", "/", *beginning, "true"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, **user)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{PROGRAM} does not start: {error}"
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"{PROGRAM} makes no jail here: {said}" if done.returncode else None


def pid_outside(jailed: int, pid: int) -> int | None:
    """Return the id that a process in a jail has outside, None if it is not there.

    Args:
        jailed: the id of bubblewrap itself, the process that was started.
        pid: the id inside.
    """
    waiting = [jailed]
    while waiting:
        one = waiting.pop()
        try:
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        numbers = status.partition("NSpid:")[2].partition("\n")[0].split()
        if len(numbers) > 1 and int(numbers[-1]) == pid:
            return one
    return None
