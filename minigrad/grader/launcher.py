"""The trusted side of the fork server: starts it, gives it orders, closes it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.grader import jail
from minigrad.grader.folder import GraderError

BARE = Path(__file__).with_name("bare.py")
NUMPY_FOLDER = str(Path(np.__file__).resolve().parents[1])
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WORKER_FOLDER, SERVER_FOLDER = "minigrad-worker-", "minigrad-grader-"
OLDEST = 3600.0  # seconds; a worker lives for minutes (limits.py)
PATIENCE_SECONDS = 120.0  # for the fork server's answers: a worker without walls can stop it
PROCESSES = 32  # at most, the server included, for a user or jail of its own
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")


def other_user(user: int) -> dict[str, Any]:
    """Return options for subprocess that run a program as this user, in no other group."""
    return {"user": user, "group": user, "extra_groups": []}


def remove(folder: str) -> None:
    """Remove a worker's folder as far as possible, even where its code took permissions away."""

    def allow(_: Any, path: str, __: Any) -> None:
        with contextlib.suppress(OSError):
            if path != folder:  # the parent of the folder is not the worker's
                os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    with contextlib.suppress(RecursionError):  # thousands of nested folders
        shutil.rmtree(folder, onerror=allow)
    if os.path.lexists(folder) and os.name == "posix":
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def sweep() -> None:
    """Remove folders that killed graders left: older than any worker lives, no live server's."""
    temporary = Path(tempfile.gettempdir())
    for path in (*temporary.glob(f"{WORKER_FOLDER}*"), *temporary.glob(f"{SERVER_FOLDER}*")):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            is_own = not hasattr(os, "getuid") or os.getuid() in (0, facts.st_uid)
            is_old = stat.S_ISDIR(facts.st_mode) and time.time() - facts.st_mtime > OLDEST
            if is_own and is_old and not _is_used(path.name):
                remove(str(path))


def _is_used(name: str) -> bool:
    """Return whether a folder belongs to a server whose process may still run."""
    owner = re.match(rf"{SERVER_FOLDER}(\d+)-", name)
    if owner is None or os.name != "posix":
        return owner is not None
    try:
        os.kill(int(owner[1]), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def clean_environment(folder: str) -> dict[str, str]:
    """Return a grading process's environment: one thread, and only the variables in PASSED_ON."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**environment, **dict.fromkeys(THREADS, "1"), "HOME": folder}


def can_fork() -> bool:
    """Return whether workers can be forked from the server instead of spawned."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


def no_call() -> float:
    """Return 0, the seconds that a call has run when none runs."""
    return 0.0


class Server:
    """Starts workers: forks them from one clean process where fork exists, else spawns each.

    Close it, or use it in a `with` block; `shared_server()` is one for the whole process.

    Args:
        fork: whether workers are forked; None: where the system can.
        user: the user id that learners' code runs under; None: that of this process. Only root can
            choose another (`rights.become`). In a jail that user must be able to read this Python,
            unless root may change the user inside (`jail.root_changes_user`).
        kernels: a folder of compiled kernels that workers only read, for strangers' files. None:
            the user's own cache, to which they add what they compile.
        jailed: whether the server runs in a jail (`jail.py`), in addition to the walls that workers
            build; needs fork and `kernels`.
        walled: whether workers build walls; False only to test what a jail alone holds.

    `call_seconds()` returns how long the present call of learners' code has run.
    """

    def __init__(
        self,
        *,
        fork: bool | None = None,
        user: int | None = None,
        kernels: str | None = None,
        jailed: bool = False,
        walled: bool = True,
    ) -> None:
        self.fork = can_fork() if fork is None else fork
        self.user = user
        self.kernels = kernels
        self.jailed, self.walled = jailed, walled
        self.call_seconds: Callable[[], float] = no_call
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        self._folder = tempfile.TemporaryDirectory(
            prefix=f"{SERVER_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True
        )
        self.folder = self._folder.name
        sweep()
        if user is not None:
            os.chown(self.folder, user, user)

    @property
    def processes(self) -> int | None:
        """Return the most processes allowed; None if they are not counted, such as root's."""
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        return PROCESSES if self.user is not None or (self.jailed and not is_root) else None

    @property
    def changes_user_inside(self) -> bool:
        """Return whether root starts the jail and the process inside becomes another user."""
        return self.jailed and self.user is not None and jail.root_changes_user()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the fork server early, so that its first worker comes sooner."""
        with self._lock:
            if self.fork and self._control is None:
                self._start()

    def another(self) -> Server:
        """Return a new server of the same kind."""
        return Server(
            fork=self.fork,
            user=self.user,
            kernels=self.kernels,
            jailed=self.jailed,
            walled=self.walled,
        )

    def new_folder(self) -> str:
        """Return an empty folder for one worker, so that no other sees its files."""
        folder = tempfile.mkdtemp(prefix=WORKER_FOLDER, dir=self.folder if self.jailed else None)
        if self.user is not None:
            os.chown(folder, self.user, self.user)
        return folder

    def close(self) -> None:
        """End the server and all its workers; a second call does nothing."""
        with self._lock:
            self._end_server(patience=2)
        self._folder.cleanup()

    def _end_server(self, patience: float = 0) -> None:
        """End the fork server, by force after `patience` seconds; the next order starts another."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)  # if a worker traces it, it ends only with that worker
        self._control, self._process = None, None

    def end(self, pid: int) -> int | None:
        """Kill a worker; return its exit status, None if its server is gone too."""
        try:
            return self.order({"do": "end", "pid": pid})["status"]
        except GraderError:
            if self.jailed:  # the jail has ended, with all in it
                return None
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    kill(pid, signal.SIGKILL)
            return None

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a bare process."""
        is_changed = not self.jailed or self.changes_user_inside
        user = str(self.user) if self.user is not None and is_changed else ""
        return [sys.executable, "-I", str(BARE), *arguments, user, NUMPY_FOLDER]

    def hindrance(self) -> str:
        """Return why this server cannot start a bare process outside a jail; "" if it can."""
        try:
            done = subprocess.run(
                self.command("try"), capture_output=True, text=True, timeout=20, **self._options()
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return said if done.returncode else ""

    def _options(self) -> dict[str, Any]:
        """Return options for subprocess to start a bare process, or bubblewrap around it."""
        is_changed = self.jailed and not self.changes_user_inside
        user = other_user(self.user) if self.user is not None and is_changed else {}
        return {"env": clean_environment(self.folder), "start_new_session": True, **user}

    def pid_here(self, pid: int) -> int | None:
        """Translate a worker's process id, as the fork server reports it, to the one seen here."""
        if not self.jailed or self._process is None:
            return pid
        return jail.pid_outside(self._process.pid, pid)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        readable = [NUMPY_FOLDER, *([self.kernels] if self.kernels else [])]
        changing = self.changes_user_inside
        inside = jail.command(self.folder, readable, changing_user=changing) if self.jailed else []
        with theirs, contextlib.ExitStack() as where_it_fails:
            where_it_fails.callback(ours.close)
            self._process = subprocess.Popen(
                [*inside, *self.command("serve", str(theirs.fileno()))],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                **self._options(),
            )
            where_it_fails.pop_all()
        ours.settimeout(PATIENCE_SECONDS)
        self._control = ours
        return ours

    def order(self, order: dict, fds: tuple[int, ...] = ()) -> dict:
        """Send one order to the fork server, started if needed, and return its answer."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._end_server()
            control = self._control or self._start()
            try:
                socket.send_fds(control, [json.dumps(order).encode() + b"\n"], fds)
                text = b""
                while not text.endswith(b"\n"):
                    part = control.recv(4096)
                    if not part:
                        raise ConnectionError("it closed its socket")
                    text += part
            except OSError as error:
                self._end_server()
                raise GraderError(f"the fork server is gone: {error}") from error
            return json.loads(text)


_shared: Server | None = None


def shared_server() -> Server:
    """Return this process's server; create it on the first call and close it at exit."""
    global _shared
    if _shared is None:
        _shared = Server()
        atexit.register(_shared.close)
    return _shared
