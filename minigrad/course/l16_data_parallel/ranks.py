"""Runs a script as several ranks from a notebook: processes, or threads where MPI is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import wraps
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import distributed
from minigrad.course.objects import Worker
from minigrad.distributed.membership import membership
from minigrad.errors import MinigradError
from minigrad.grader.card import BORDER, FAILED, QUIET
from minigrad.grader.folder import CourseError

REPORTS = "MINIGRAD_RANK_REPORTS"  # the environment variable that names the folder of reports
MISSING = 3  # the exit code of `minigrad run` without MPI
FAILURE = "minigrad run: the ranks have failed."

_folders: dict[str, str] = {}  # where ranks that are threads write


class Launched:
    """What came of a script that several ranks ran; a notebook shows it as a card.

    Attributes:
        reports: for each rank what it gave to `report`, None if it did not come to that.
        error: what `minigrad run` says of ranks that failed; "" if all ended well.
        seconds: how long it took.
        advice: what to do, where MPI is missing: then the ranks were threads.
    """

    def __init__(self, reports: list[Any], error: str, seconds: float, advice: str) -> None:
        self.reports, self.error, self.seconds, self.advice = reports, error, seconds, advice

    def needed(self) -> list[Any]:
        """Return the reports of all ranks.

        Raises:
            CourseError: a rank has not reported; a notebook shows it in one line.
        """
        missing = [rank for rank, one in enumerate(self.reports) if one is None]
        if missing:
            ranks = ", ".join(map(str, missing))
            raise CourseError(
                f"no report of rank {ranks}: the card above, below launch(…), says why"
            )
        return self.reports

    def _lines(self) -> list[str]:
        n, kind = len(self.reports), "threads" if self.advice else "processes"
        how = "have failed" if self.error else "have ended well"
        lines = [f"{n} {kind} {how}, after {self.seconds:.1f} s", *self.error.splitlines()]
        return [*lines, *self.advice.splitlines()]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        first, *others = (escape(line) for line in self._lines())
        colour = FAILED if self.error else BORDER
        rest = "".join(f'<div style="color:{QUIET}">{line}</div>' for line in others)
        return (
            f'<div style="border:1px solid {BORDER};border-left:5px solid {colour};'
            f'border-radius:4px;padding:8px 14px;max-width:62em"><b>{first}</b>{rest}</div>'
        )


def launch(text: str, ranks: int, timeout: float = 120.0) -> Launched:
    """Run a script as several ranks of `mg.distributed`, and wait for them.

    Args:
        text: the script. It calls `mg.distributed.init()`, and may call `report` and `die`.
        ranks: how many.
        timeout: seconds, after which all are ended.
    """
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="minigrad-ranks-") as folder:
        script = Path(folder, "train.py")
        script.write_text(text, encoding="utf-8")
        words = [sys.executable, "-m", "minigrad.cli.main", "run", "-n", f"{ranks}", str(script)]
        error, advice = "", ""
        try:
            done = subprocess.run(
                words,
                env={**os.environ, REPORTS: folder},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            error = (
                f"They did not end within {timeout:g} s, and were ended.\n"
                "try: run the cell again, or launch(…, timeout=600) on a busy machine; after a "
                "change to your file check it first: does a rank wait for what nobody sends?"
            )
        else:
            if done.returncode == MISSING:
                advice = f"{done.stderr.strip()}\nUntil then this lesson runs with threads."
                error = run_threads(text, ranks, folder)
            elif done.returncode:
                error = told(done.stderr)
        paths = [Path(folder, f"{rank}.json") for rank in range(ranks)]
        reports = [json.loads(p.read_text("utf-8")) if p.is_file() else None for p in paths]
    return Launched(reports, error, time.perf_counter() - started, advice)


def told(output: str) -> str:
    """Return what is worth reading of the output of ranks that failed."""
    _, separator, lines = output.rpartition(FAILURE)
    return "\n".join((lines if separator else output).strip().splitlines()[-8:])


def run_threads(text: str, ranks: int, folder: str) -> str:
    """Run the script as ranks that are threads; return what went wrong."""
    code = compile(text, "train.py", "exec", dont_inherit=True)
    _folders[REPORTS] = folder
    try:
        distributed.run(lambda: exec(code, {"__name__": "__main__"}), ranks)
    except Exception as error:
        notes = "; ".join(getattr(error, "__notes__", ()))
        return f"{type(error).__name__}: {str(error).splitlines()[0]} ({notes})"
    finally:
        del _folders[REPORTS]
    return ""


def report(**values: Any) -> None:
    """Give the notebook numbers, lists and texts of this rank."""
    folder = _folders.get(REPORTS) or os.environ[REPORTS]
    path = Path(folder, f"{distributed.rank()}.json")
    path.write_text(json.dumps(values), encoding="utf-8")


def die() -> None:
    """End this rank as a crash would: a process is killed, a thread raises."""
    if membership.group is None:
        os.kill(os.getpid(), signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    raise MinigradError(f"{threading.current_thread().name} was killed")


class _Clock:
    """Carries arrays as another post does, and notes when, and how long a worker waits."""

    def __init__(self, post: Any, events: list[dict]) -> None:
        self.post, self.events = post, events

    def send(self, rank: int, to: int, array: np.ndarray) -> None:
        """Send an array."""
        self.events.append({"to": to, "at": time.time(), "nbytes": np.asarray(array).nbytes})
        self.post.send(rank, to, array)

    def receive(self, rank: int, source: int) -> np.ndarray:
        """Return the next array."""
        begun = time.time()
        array = self.post.receive(rank, source)
        self.events.append({"source": source, "begun": begun, "ended": time.time()})
        return array


def timed(all_reduce: Callable, events: list[dict]) -> Callable:
    """Return a sum over workers that notes in `events` what it sends, and for whom it waits.

    An event is a dict: of what was sent "to", "at" and "nbytes"; of what was waited for "source",
    "begun" and "ended". Times are in seconds, as `time.time()`, and the same on all ranks of a
    machine.
    """

    @wraps(all_reduce)
    def with_times(worker: Worker, x: np.ndarray) -> np.ndarray:
        return all_reduce(Worker(worker.rank, worker.size, _Clock(worker.post, events)), x)

    return with_times
