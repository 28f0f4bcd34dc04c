"""An audit hook that restricts a learner's process; Python code cannot remove it.

It blocks closed files, new processes, and signals to others, and says so in words. It is a fence,
not a wall: `ctypes` and folder descriptors get around it, as far as `walls.py` lets them. Runs in
the learner's process.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# Audit events whose first arguments are paths.
FILES = {"open": 1, "os.listdir": 1, "os.scandir": 1, "os.link": 2, "os.symlink": 2, "os.rename": 2}
STARTS = {
    "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn",
    "subprocess.Popen", "os.startfile",
}  # fmt: skip


def install(closed: list[str], opened: list[str]) -> None:
    """Block files in closed folders, starting processes and ending other ones, from now on.

    Args:
        closed: folders whose files raise PermissionError when they are opened.
        opened: files in these folders that stay open.
    """
    folders = tuple(os.path.realpath(folder) + os.sep for folder in closed)
    exceptions = frozenset(os.path.realpath(path) for path in opened)
    realpath, fsdecode, own = os.path.realpath, os.fsdecode, os.getpid()

    def is_closed(path: Any) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        place = realpath(fsdecode(path))
        return (place + os.sep).startswith(folders) and place not in exceptions

    def hook(event: str, arguments: tuple) -> None:
        if event in FILES:
            for path in arguments[: FILES[event]]:
                if is_closed(path):
                    raise PermissionError(f"closed while an exercise is graded: {event}")
        elif event in STARTS:
            raise PermissionError(f"no process can be started while an exercise is graded: {event}")
        elif event in ("os.kill", "os.killpg") and arguments[0] not in (own, 0):
            raise PermissionError(f"no other process can be signalled: {event}")

    sys.addaudithook(hook)
