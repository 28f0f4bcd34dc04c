"""bubblewrap around the fork server: what a class's files are graded in, `grade --jail=bwrap`.

Inside are another user, no network, no process but the grader's own, an empty temporary folder, and
of the machine's files what Python, its packages, and minigrad without its course and commands are
read from. It holds where the walls that a worker builds around itself (`walls.py`) do not, and they
stand inside it, too. Linux with bubblewrap and user namespaces.

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
NOBODY = "65534"  # the user and the group inside
COMMON = ("--die-with-parent", "--proc", "/proc", "--dev", "/dev")
BEGINNING = (
    "--unshare-all", "--unshare-user", "--uid", NOBODY, "--gid", NOBODY, "--cap-drop", "ALL",
    *COMMON,
)  # fmt: skip
# For root, who becomes another user inside (bare.py): a new space of users would have no other.
CHANGING_USER = (
    "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", *COMMON,
)  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[1]
HIDDEN = ("course", "cli")  # folders of minigrad that no worker needs, but for one file
OBJECTS = PACKAGE / "course" / "objects.py"


def command(folder: str, readable: Iterable[str], *, changing_user: bool = False) -> list[str]:
    """Return the beginning of a command line that runs the rest of it inside.

    Args:
        folder: the one that can be written to; workers' own folders are made in it.
        readable: folders that are only read inside, besides Python's, the system's and minigrad's.
        changing_user: whether the rest, started by root, becomes another user.
    """
    beginning = CHANGING_USER if changing_user else BEGINNING
    line = [PROGRAM, *beginning, "--new-session", "--tmpfs", "/tmp"]
    python = [sys.base_prefix, sys.prefix, os.path.dirname(os.path.realpath(sys.executable))]
    system = [path for path in walls.SYSTEM if not path.startswith(("/proc/", "/dev/"))]
    for path in dict.fromkeys([*system, *python, *readable, str(PACKAGE)]):
        # Folders that bubblewrap makes by itself on the way are closed to any other user.
        line += ["--dir", os.path.dirname(path), "--ro-bind-try", path, path]
    for name in HIDDEN:
        line += ["--tmpfs", str(PACKAGE / name)]
    line += ["--ro-bind", str(OBJECTS), str(OBJECTS)]
    line += ["--dir", os.path.dirname(folder), "--bind", folder, folder]
    # What else bubblewrap makes lies in the machine's memory, of which it bounds no use.
    for path in ["/dev", "/tmp", *(str(PACKAGE / name) for name in HIDDEN), "/"]:
        line += ["--remount-ro", path]
    return [*line, "--chdir", "/" if changing_user else folder, "--"]


def hindrance(**user: Any) -> str | None:
    """Return why no jail can be made here, in words; None if it can.

    Args:
        user: options of subprocess's, for another user.
    """
    if shutil.which(PROGRAM) is None:
        return f"there is no {PROGRAM}: it comes with the package bubblewrap"
    return _why_not(BEGINNING, **user)


@functools.cache
def root_changes_user() -> bool:
    """Whether this process is root's, and may become another user in a jail.

    Such a user's processes are counted, and Python may lie where only root can enter.
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
    """Return the number that a process of a jail has outside, None if it is not found.

    Args:
        jailed: the process that was started: bubblewrap itself.
        pid: the number inside.
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
