"""The trusted side of a worker: starts it, asks it, and ends it when its time is up."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from minigrad.grader.disk_usage import excess
from minigrad.grader.launcher import GraderError, Server, clean_environment, no_call, remove
from minigrad.grader.limits import Limits
from minigrad.grader.wire import Channel, GarbledError

MAX_PRINTED = 2000
PATIENCE, STARVED = 3, 20
OVER = "the time for all files of this submission is over"
LOOK_SECONDS = 0.05  # between two measurements of a worker's folder
PACKAGE = str(Path(__file__).resolve().parents[1])


class Ended(Exception):
    """Raised when a worker gives no answer. `key` tells programs why, the text tells people."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


@dataclass
class Reply:
    """The worker's reply, and how long Numba compiled for it."""

    content: dict
    compile_seconds: float


@dataclass
class Spent:
    """Counts the seconds that an exercise's workers have used, and those of Numba among them.

    At `until`, a time of `time.monotonic`, they end in any case.
    """

    seconds: float = 0.0
    compile_seconds: float = 0.0
    until: float = math.inf


class Worker:
    """One process that runs one learner's file.

    Args:
        server: starts the process.
        source: the text of the file, as the parent read (and hashed) it.
        path: the path that tracebacks show.
        limits: limits on its time, memory and files.
        driver: the lesson's driver, `{"source": …, "path": …}`, or None.
        engine: None if the engine is closed; else its `environment` (gate.py).
        answers: the dotted names that would be the answer: they raise.
        closed: folders whose files it cannot open, such as that of the solutions.
        spent: the seconds that earlier workers of the exercise used; this one adds its own.

    `loaded` is the reply to loading: `{"ok": {"lines": …, "names": …}}` or `{"raised": …}`.
    Raises Ended when loading ends the process or takes too long.
    """

    def __init__(
        self,
        server: Server,
        source: str,
        path: str,
        *,
        limits: Limits | None = None,
        driver: dict | None = None,
        engine: dict | None = None,
        answers: tuple[str, ...] = (),
        closed: tuple[str, ...] = (),
        spent: Spent | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.spent = spent or Spent()
        self._server = server
        self._lock = threading.Lock()
        self._folder = server.new_folder()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._printed_from = 0
        self._last_printed = ""
        self._pid: int | None = None
        self._pid_here: int | None = None  # the id that this process sees
        self._process: subprocess.Popen | None = None
        self._status: int | None = None
        self._timed_out = ""
        self._too_much = ""  # in its folder
        self._closed = threading.Event()
        try:
            self.channel = self._fork() if server.fork else self._spawn()
        except BaseException:
            self._output.close()
            remove(self._folder)
            raise
        first = {
            "source": source,
            "path": path,
            "folder": self._folder,
            "limits": asdict(replace(self.limits, processes=server.processes)),
            "package": PACKAGE,
            "driver": driver,
            "engine": engine and {**engine, "kernels": server.kernels},
            "answers": list(answers),
            "walled": server.walled,
            "closed": list(closed),
        }
        threading.Thread(target=self._look, daemon=True).start()
        try:
            opened = self._ask(first, self.limits.load_seconds).content
            if "fault" in opened:
                raise GraderError(f"{path}: its worker could not be set up: {opened['fault']}")
            self.limits_missing: list[str] = opened["limits_missing"]
            self.loaded = self._ask(None, self.limits.load_seconds).content
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fork(self) -> Channel:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as where_it_fails:
            where_it_fails.callback(ours.close)
            answer = self._server.order({"do": "start"}, (theirs.fileno(), self._output.fileno()))
            where_it_fails.pop_all()
        self._pid = answer["pid"]
        self._pid_here = self._server.pid_here(answer["pid"])
        fd = ours.detach()
        return Channel(fd, fd)

    def _spawn(self) -> Channel:
        self._process = subprocess.Popen(
            self._server.command("work"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env=clean_environment(self._folder),
            cwd=self._folder,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return Channel(os.dup(self._process.stdout.fileno()), os.dup(self._process.stdin.fileno()))

    def call(self, name: str, arguments: list, *, drive: bool = False) -> Reply:
        """Call a function of the file or the driver. Raises Ended if no answer comes."""
        request = {"do": "drive" if drive else "call", "name": name, "arguments": arguments}
        self._server.call_seconds = self._clock()
        try:
            return self._ask(request, self.limits.call_seconds)
        finally:
            self._server.call_seconds = no_call

    def get(self, name: str) -> Any:
        """Return the value of a name in the file, None if it has no such name."""
        reply = self._ask({"do": "get", "name": name}, self.limits.call_seconds).content
        return reply.get("ok")

    def printed(self) -> str:
        """Return what the file printed since the last time, shortened."""
        if self._output.closed:
            text, self._last_printed = self._last_printed, ""
            return text
        # The worker shares the descriptor's position, so it must not be moved here.
        size = os.fstat(self._output.fileno()).st_size
        start, self._printed_from = min(self._printed_from, size), size  # may have shrunk
        if not hasattr(os, "pread"):  # on Windows the position is not shared
            self._output.seek(start)
            return self._output.read(min(size - start, MAX_PRINTED)).decode(errors="replace")
        try:
            text = os.pread(self._output.fileno(), min(size - start, MAX_PRINTED), start)
        except OSError:  # the worker made it readable in whole blocks only
            return ""
        return text.decode(errors="replace")

    def _ask(self, request: dict | None, seconds: float) -> Reply:
        """Send a request (None: the reply comes without one) and wait for the reply."""
        spent, limits = self.spent, self.limits
        at_most = spent.until - time.monotonic()
        left = {
            "time": min(seconds, limits.total_seconds - spent.seconds, at_most),
            "compile": min(limits.compile_seconds - spent.compile_seconds, at_most),
        }
        before, doing = spent.compile_seconds, "time"
        watch = _Watch(self)
        watch.start(left[doing], doing)
        started = time.monotonic()

        def account() -> None:
            nonlocal started
            now = time.monotonic()
            left[doing] -= now - started
            spent.seconds += now - started
            spent.compile_seconds += (now - started) * (doing == "compile")
            started = now

        try:
            if request is not None:
                self.channel.send(request, trusted=True)
            while True:
                content = self.channel.receive()
                if not isinstance(content, dict):
                    raise GarbledError("a reply is a dict")
                account()
                if "compiling" not in content:
                    return Reply(content, spent.compile_seconds - before)
                if content["compiling"] is not (doing == "time"):
                    raise GarbledError("it says twice that Numba compiles, or that it is done")
                doing = "compile" if content["compiling"] else "time"
                watch.start(left[doing], doing)
                self._server.call_seconds = self._clock() if doing == "time" else no_call
        except GarbledError as error:
            self.close()
            raise Ended("garbled", f"its reply is not a value: {error}") from None
        except (EOFError, OSError):
            self._end(died=not (self._timed_out or self._too_much))
            self.close()
            raise Ended(*self._why(seconds)) from None
        finally:
            watch.stop()
            account()

    def _why(self, seconds: float) -> tuple[str, str]:
        status = self._status
        if self._too_much:
            return "files", self._too_much
        if time.monotonic() >= self.spent.until:
            return "budget", OVER
        if self._timed_out == "compile":
            limit = self.limits.compile_seconds
            return "compile_time", f"Numba was still compiling after {limit:g} s"
        if self.spent.seconds >= self.limits.total_seconds:
            return "time", f"all calls together took more than {self.limits.total_seconds:g} s"
        if self._timed_out or status == -getattr(signal, "SIGXCPU", 24):
            return "time", f"no answer within {seconds:.3g} s: an endless loop, or a slow one"
        if status is not None and status < 0:
            return "killed", f"the process was killed by {_signal_name(-status)}"
        if status is None:
            return "killed", "it ended the process that started it"
        return "exit", f"the process ended itself with exit status {status}"

    def _time_is_up(self, kind: str) -> None:
        self._timed_out = kind
        self._end()

    def _look(self) -> None:
        """End the worker once its folder, or in a jail the server's, holds too much."""
        folder = self._server.folder if self._server.jailed else self._folder
        while not self._closed.wait(LOOK_SECONDS):
            too_much = excess(folder, self.limits.folder_bytes, self.limits.folder_files)
            if too_much and not self._closed.is_set():
                self._too_much = too_much
                self._end()
                return

    def cpu_seconds(self) -> float | None:
        """Return the processor time that the worker has used, None if unknown."""
        pid = self._pid_here or (self._process and self._process.pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, AttributeError, IndexError, ValueError):
            return None

    def delay_seconds(self) -> float | None:
        """Return how long the worker has waited for a processor, None if unknown."""
        pid = self._pid_here or (self._process and self._process.pid)
        try:
            with open(f"/proc/{pid}/schedstat") as file:
                return int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return None

    def _clock(self) -> Callable[[], float]:
        """Return a function that gives the processor time, or else the time, spent from now on."""
        used, began = self.cpu_seconds(), time.monotonic()

        def seconds() -> float:
            now = self.cpu_seconds()
            return time.monotonic() - began if used is None or now is None else now - used

        return seconds

    def _end(self, *, died: bool = False) -> None:
        with self._lock:
            if self._pid is not None:
                pid, self._pid = self._pid, None
                self._status = self._server.end(pid)
            if self._process is not None:
                process, self._process = self._process, None
                if died:  # its own exit status is on the way
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(1)
                if hasattr(os, "killpg"):
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                self._status = process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        pipe.close()

    def close(self) -> None:
        """End the process and everything it started; a second call does nothing."""
        self._closed.set()
        self._end()
        self.channel.close()
        if not self._output.closed:
            self._last_printed = self.printed()
            self._output.close()
        remove(self._folder)


class _Watch:
    """A timer that ends the worker; another `start` resets it, `stop` switches it off.

    On a busy machine a worker waits for a processor. Waiting does not count, up to STARVED times
    the seconds. A worker with less processor time than the seconds may go on as well, for at most
    PATIENCE times as many.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def start(self, seconds: float, kind: str) -> None:
        self.stop()
        worker, began = self._worker, time.monotonic()
        used_before, delay_before = worker.cpu_seconds(), worker.delay_seconds()

        def missing() -> float:
            """Return the seconds that the worker still has."""
            passed = time.monotonic() - began
            used, delay, left = worker.cpu_seconds(), worker.delay_seconds(), seconds - passed
            if used is not None and used_before is not None:
                left = max(left, min(seconds - (used - used_before), PATIENCE * seconds - passed))
            if delay is not None and delay_before is not None:
                had = passed - (delay - delay_before)
                left = max(left, min(seconds - had, STARVED * seconds - passed))
            return left

        def ring() -> None:
            left = missing()
            with self._lock:
                if self._timer is not timer:
                    return  # stopped meanwhile, or started for something else
                if left > 0.05 * seconds:
                    arm(left)
                    return
            worker._time_is_up(kind)

        def arm(wait: float) -> None:
            nonlocal timer
            self._timer = timer = threading.Timer(max(wait, 0.0), ring)
            timer.daemon = True
            timer.start()

        timer: threading.Timer | None = None
        with self._lock:
            arm(seconds)

    def stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
