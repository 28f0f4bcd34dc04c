"""`minigrad doctor`: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from minigrad.grader.folder import CourseError, find_folder
from minigrad.grader.launcher import GraderError, Server, can_fork
from minigrad.grader.sandbox import Ended, Worker
from minigrad.kernels.loader import cache_folder

OLDEST, NEWEST = (3, 11), (3, 14)


@dataclass(frozen=True)
class Finding:
    """One line of the report: fine or not, what was seen, and the remedy when it is not fine."""

    fine: bool
    what: str
    remedy: str = ""


def python_version() -> Finding:
    """Whether this Python is one of those the project is tested on."""
    version = sys.version_info[:2]
    what = f"Python {platform.python_version()}"
    if OLDEST <= version <= NEWEST:
        return Finding(True, what)
    return Finding(False, what, "install Python 3.11 to 3.14 and run start.py with it")


def package(name: str, command: str) -> Finding:
    """Whether a package is installed."""
    try:
        return Finding(True, f"{name} {importlib.metadata.version(name)}")
    except importlib.metadata.PackageNotFoundError:
        return Finding(False, f"{name} is not installed", command)


def kernel_cache() -> Finding:
    """Whether compiled kernels outlive the process."""
    folder = cache_folder()
    if Path(tempfile.gettempdir()) in folder.parents:
        return Finding(
            False,
            f"compiled kernels are kept in {folder}, which does not last",
            "set HOME or MINIGRAD_CACHE to a folder that you may write",
        )
    return Finding(True, f"compiled kernels are kept in {folder}")


def threads() -> Finding:
    """How many cores there are, and whether a variable keeps them from being used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [
        f"{name}={os.environ[name]}"
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
        if name in os.environ
    ]
    what = f"{cores} cores" + (f", limited by {', '.join(limits)}" if limits else "")
    return Finding(True, what)


def course() -> Finding:
    """Whether a course is at hand."""
    try:
        return Finding(True, f"the course in {find_folder().root}")
    except CourseError as error:
        return Finding(False, "no course here", str(error))


def grading() -> Finding:
    """Whether a learner's file can be run in a process of its own, and with which limits."""
    try:
        with Server() as server, Worker(server, "def f():\n    return 1\n", "doctor.py") as worker:
            answer = worker.call("f", []).content.get("ok")
            missing = worker.limits_missing
    except (Ended, GraderError, OSError) as error:
        return Finding(False, f"grading does not work: {error}", "please report this as a bug")
    how = "forked" if can_fork() else "started afresh"
    what = f"grading works, its processes are {how}"
    if missing:
        what += f" (this system sets no limit on {', '.join(missing)})"
    return Finding(answer == 1, what)


def notebook_kernel() -> Finding:
    """Whether a notebook started from here would find this very Python."""
    if importlib.util.find_spec("ipykernel") is None:
        return Finding(False, "no notebook kernel", 'pip install "minigrad[lab]"')
    if "site-packages" in str(Path(__file__)) or sys.prefix != sys.base_prefix:
        return Finding(True, f"notebooks run {sys.executable}")
    return Finding(True, "notebooks run the system's Python")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python_version,
    lambda: package("numpy", "pip install -e . in the folder of the project"),
    lambda: package("numba", "pip install -e . in the folder of the project"),
    lambda: package("pytest", 'pip install "minigrad[test]"'),
    lambda: package("jupyterlab", 'pip install "minigrad[lab]"'),
    lambda: package("matplotlib", 'pip install "minigrad[lab]"'),
    notebook_kernel,
    kernel_cache,
    threads,
    course,
    grading,
)


def run(options: argparse.Namespace) -> int:
    """Print a line per check and a remedy where one is needed; 1 when something is wrong."""
    del options
    findings = [check() for check in CHECKS]
    for finding in findings:
        print(f"{'ok ' if finding.fine else 'NO '} {finding.what}")
        if not finding.fine and finding.remedy:
            print(f"      do: {finding.remedy}")
    return 0 if all(finding.fine for finding in findings) else 1
