"""Rounds of faults: how soon every rank has its error, and what never came."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import describe, in_words
from benchmarks.process import ROOT, environment
from benchmarks.tables import quantity, table

SCRIPT = ROOT / "benchmarks" / "ranks" / "faults.py"
WATCHDOG = 90.0  # seconds until a run counts as a hang and is killed
TIMEOUT, STOPPED = 30.0, 5.0  # init(timeout=...): of most faults; where it is what is measured
RANKS = (2, 4, 8)


class Fault(NamedTuple):
    """What happens on rank 1, with which timeout, and whether rank 1 has an error, too."""

    title: str
    timeout: float = TIMEOUT
    everywhere: bool = False


FAULTS = {  # by their names in benchmarks/ranks/faults.py
    "exception": Fault("an exception"),
    "killed": Fault("SIGKILL"),
    "stopped": Fault(f"SIGSTOP, `timeout={STOPPED:g}`", STOPPED),
    "ends": Fault("its script ends early"),
    "shape": Fault("another shape", everywhere=True),
    "order": Fault("another call", everywhere=True),
    "nan": Fault("its loss is NaN", everywhere=True),
}


def round_of(name: str, ranks: int, watchdog: float = WATCHDOG) -> dict[str, Any]:
    """Commit a fault once.

    Return {"seconds": from the fault to the error of each rank that must have one, None without
    an error that names rank 1; "hangs": whether the watchdog ended it; "left": processes that were
    alive after the command had returned}.
    """
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", "-n", f"{ranks}", str(SCRIPT), name, f"{fault.timeout}", folder]
        hangs = watched([sys.executable, "-m", "minigrad.cli.main", *words], watchdog)
        left = [one for one in map(_number, Path(folder).glob("*.pid")) if is_alive(one)]
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        return {"seconds": seconds(Path(folder), ranks, fault), "hangs": hangs, "left": len(left)}


def watched(command: list[str], watchdog: float) -> bool:
    """Run a command; kill it with all that it started, and return True, if it does not end."""
    child = subprocess.Popen(
        command,
        env=environment(1),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        child.wait(watchdog)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return True
    return False


def seconds(folder: Path, ranks: int, fault: Fault) -> list[float | None]:
    """Return what the files of a round say, as `round_of` does."""
    times: list[float | None] = []
    began = _told(folder / "fault.json")
    for rank in range(ranks):
        if rank != 1 or fault.everywhere:
            error = _told(folder / f"{rank}.json")
            is_right = (
                began
                and error
                and re.search(r"\brank 1\b", error["text"])
                and error["at"] >= began["at"]
            )
            times.append(error["at"] - began["at"] if is_right else None)
    return times


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what rounds of one fault come to: median and worst seconds, and what is missing."""
    times = [t for one in rounds for t in one["seconds"]]
    came = [t for t in times if t is not None]
    return {
        "rounds": len(rounds),
        "errors": len(times),
        "median": statistics.median(came) if came else None,
        "worst": max(came, default=None),
        "missing": len(times) - len(came),
        "hangs": sum(one["hangs"] for one in rounds),
        "left": sum(one["left"] for one in rounds),
    }


def measure(rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Commit every fault with every number of ranks, round by round; return the summaries."""
    described = describe()
    found: dict[Any, list] = {(name, ranks): [] for name in FAULTS for ranks in RANKS}
    for k in range(rounds):
        for (name, ranks), one in found.items():
            say(f"round {k + 1}, {ranks} ranks: {FAULTS[name].title}")
            one.append(round_of(name, ranks))
    entries = [{"fault": n, "ranks": k} | summary(one) for (n, k), one in found.items()]
    return {"machine": described, "rounds": rounds, "entries": entries}


def lines(part: dict[str, Any]) -> list[str]:
    """Return the page's section on what `measure` returned."""
    titles = ["on rank 1", "ranks", "median", "worst", "errors", "missing", "hangs", "left over"]
    rows = [
        [
            FAULTS[e["fault"]].title,
            f"{e['ranks']}",
            *("–" if e[k] is None else quantity(e[k], "s") for k in ("median", "worst")),
            *(f"{e[k]}" for k in ("errors", "missing", "hangs", "left")),
        ]
        for e in part["entries"]
    ]
    return [
        "## Faults",
        "",
        *table(titles, rows),
        "",
        f"Time from the fault to the error on each rank that waits, in {part['rounds']} rounds; "
        "with another shape, another call and a NaN on rank 1, too. Errors: how many must come. "
        "Missing: those that did not come, or did not name rank 1. Hangs: runs that a watchdog "
        f"ended after {WATCHDOG:g} s. Left over: processes alive after the command had returned. "
        "A rank in `minigrad run` that is killed is noted in a file, at which the others look "
        "every 20 ms; one that is stopped is known by the timeout alone. "
        f"{in_words(part['machine'])}. `python -m benchmarks.distributed --faults "
        f"{part['rounds']}`.",
    ]  # fmt: skip


def is_alive(process: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent to look."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def _number(path):
    return int(path.read_text() or 0)


def _told(path):
    return json.loads(path.read_text()) if path.exists() else None
