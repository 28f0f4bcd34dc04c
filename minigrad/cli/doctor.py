"""`minigrad doctor`: reports what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from minigrad import __version__
from minigrad.cli import strangers
from minigrad.cli.findings import Finding, kernel, package, python_version, setup_command
from minigrad.course.source import PACKAGE, SHIPPED, is_checkout
from minigrad.devices.gpu.driver import state as cuda_state
from minigrad.devices.loader import cache_folder
from minigrad.grader import progress
from minigrad.grader.folder import (
    CourseError,
    CourseFolder,
    LessonError,
    find_folder,
    known_stems,
    load_lesson,
)
from minigrad.grader.jail import hindrance, root_changes_user
from minigrad.grader.launcher import THREADS, GraderError, Server, can_fork, other_user
from minigrad.grader.message import counted
from minigrad.grader.sandbox import Ended, Worker

PLACES = ("lessons", "work", "exercises")  # a course's folders where notebooks and programs start
ENOUGH_BYTES = 200_000_000


def minigrad() -> Finding:
    """Report which minigrad this is, and where."""
    how = "installed" if SHIPPED.is_dir() else "a checkout"
    return Finding(True, f"minigrad {__version__}, {how} in {PACKAGE.parent}")


def engine() -> Finding:
    """Report whether a gradient can be computed: NumPy, Numba and the kernels work together."""
    started = time.perf_counter()
    try:
        mg: Any = importlib.import_module("minigrad")
        x = mg.variable([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        gradient = x.grad.numpy().tolist() if x.grad is not None else None
    except Exception as error:  # whatever is wrong with an installation, the report goes on
        what = f"the engine does not run: {type(error).__name__}: {error}".splitlines()[0]
        return Finding(False, what, f"{setup_command()}, in a fresh environment if that fails")
    seconds = time.perf_counter() - started
    if gradient != [2.0, 4.0]:
        return Finding(False, f"the engine's gradient is wrong: {gradient}", "please report this")
    return Finding(True, f"the engine runs: its first gradient took {seconds:.1f} s")


def kernel_cache() -> Finding:
    """Report whether compiled kernels are kept for the next process."""
    folder = cache_folder()
    asked = os.environ.get("MINIGRAD_CACHE")
    if not folder.parent.is_dir():
        what = "compiled kernels cannot be kept: each process compiles them again"
        return Finding(False, what, "set MINIGRAD_CACHE to a folder that you may write")
    is_temporary = Path(tempfile.gettempdir()) in folder.parents
    if is_temporary and (asked is None or Path(asked) not in (folder, *folder.parents)):
        return Finding(
            False,
            f"compiled kernels are kept in {folder}, which does not last",
            "set HOME or MINIGRAD_CACHE to a folder that you may write",
        )
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    return Finding(
        True, f"compiled kernels are kept in {folder} ({len(files)} files, {size:.0f} MB)"
    )


def disk() -> Finding:
    """Report whether there is room on the disks that minigrad writes to."""
    places = {cache_folder(), Path.cwd(), Path(tempfile.gettempdir())}
    tight = [p for p in sorted(places) if p.is_dir() and shutil.disk_usage(p).free < ENOUGH_BYTES]
    if tight:
        return Finding(False, f"the disk of {tight[0]} is nearly full", "free 200 MB there")
    return Finding(True, "there is room on the disk")


def threads() -> Finding:
    """Report how many cores there are, and whether a variable keeps them from being used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    what = f"{cores} cores" + (f", limited by {', '.join(limits)}" if limits else "")
    return Finding(True, what)


def gpu() -> Finding:
    """Report whether device='cuda' works, and if not, why. A GPU is not needed."""
    hindrance = cuda_state.hindrance()
    if hindrance is None:
        return Finding(True, f"device='cuda' works: {cuda_state.gpu_name()}")
    names = gpus_by_nvidia_smi()
    if names:
        what = f"GPU: {names}; not used, because {hindrance}"
    elif hindrance.has_gpu:
        what = f"a GPU is not used, because {hindrance}"
    else:
        what = (
            f"no GPU found, and none is needed: device='simt' runs its kernels ({hindrance.what})"
        )
    return Finding(True, what)


def gpus_by_nvidia_smi() -> str:
    """Return the names of the GPUs that nvidia-smi sees, "" if none."""
    if not shutil.which("nvidia-smi"):
        return ""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ", ".join(line.strip() for line in done.stdout.splitlines() if line.strip())


def course() -> Finding:
    """Report whether there is a course here, with all its files."""
    try:
        folder = find_folder()
    except CourseError:
        remedy = "go to the folder of the course, or make one: minigrad start FOLDER"
        return Finding(False, f"no course in {Path.cwd()}", remedy)
    missing = [stem for stem in known_stems() if stem not in folder.stems()]
    if missing:
        is_clone = is_checkout(folder.root)
        remedy = f"minigrad reset {missing[0][:2]}" if is_clone else "minigrad update"
        names = ", ".join(stem[:2] for stem in missing)
        return Finding(False, f"the course in {folder.root} lacks lessons {names}", remedy)
    return Finding(True, f"the course in {folder.root}, {counted(len(folder.stems()), 'lesson')}")


def lessons() -> Finding:
    """Report whether the checks of every lesson can be loaded."""
    broken = []
    for stem in known_stems():
        try:
            load_lesson(stem)
        except LessonError as error:
            broken.append(str(error).replace("cannot be loaded", "does not load"))
    if broken:
        remedy = "undo what was changed in minigrad/course, or install minigrad again"
        return Finding(False, "; ".join(broken), remedy)
    return Finding(True, f"all {len(known_stems())} lessons load")


def hidden() -> Finding | None:
    """Report a learner's file that hides a module; None without such a file, or without a course.

    Python searches the folder where a program starts first.
    """
    try:
        root = find_folder().root
    except CourseError:
        return None
    for folder in dict.fromkeys([Path.cwd(), root, *(root / name for name in PLACES)]):
        elsewhere = [path for path in sys.path if Path(path).resolve() != folder]
        for path in sorted([*folder.glob("*.py"), *folder.glob("*/__init__.py")]):
            file = path.parent if path.name == "__init__.py" else path
            is_python = file.stem in sys.stdlib_module_names
            if is_python or PathFinder.find_spec(file.stem, elsewhere):
                owner = "Python's own" if is_python else "the installed"
                what = f"{file} hides {owner} {file.stem} from what is started beside it"
                return Finding(False, what, f"rename {file.name}")
    return None


def memory_of_points() -> Finding | None:
    """Report whether points can be saved, and none are damaged; None without a course."""
    try:
        folder = find_folder()
    except CourseError:
        return None
    try:
        folder.state.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.state):
            pass
    except OSError as error:
        remedy = f"make {folder.root} a folder that you may write"
        return Finding(False, f"points cannot be remembered: {error}", remedy)
    return remembered(folder)


def remembered(folder: CourseFolder) -> Finding:
    """Report whether a damaged file of points was set aside."""
    n = len(progress.load(folder.state)["exercises"])
    aside = sorted(folder.state.glob("progress.json.unreadable-*"))
    if not aside:
        return Finding(True, f"points are remembered in {folder.state} ({n} exercises so far)")
    return Finding(
        False,
        f"a damaged file of points was set aside as {aside[-1].name}",
        "grade everything again with `minigrad check`; then delete that file",
    )


def grading() -> Finding:
    """Report whether a learner's file can run in a process of its own, and with which limits."""
    try:
        with Server() as server, Worker(server, "def f():\n    return 1\n", "doctor.py") as worker:
            answer = worker.call("f", []).content.get("ok")
            missing = worker.limits_missing
    except (Ended, GraderError, OSError) as error:
        return Finding(False, f"grading does not work: {error}", "please report this as a bug")
    what = f"grading works; its processes are {'forked' if can_fork() else 'spawned'}"
    if missing:
        what += f" (this system sets no limit on {', '.join(missing)})"
    else:
        what += ", with limits and walls: they cannot reach your files, processes or the network"
    return Finding(answer == 1, what)


def jail() -> Finding:
    """Report whose rights `grade` gives to files, and whether it can put them in bubblewrap."""
    whose, options, uncounted = "", {}, ""
    if strangers.is_root():
        user, why = strangers.other_user(jailed=False)
        whose = f"grade runs files as user {user}; " if user else f"grade needs --unsafe: {why}; "
        user, why = strangers.other_user(jailed=True)
        options = {} if user is None or root_changes_user() else other_user(user)
        if user is None:
            uncounted = f"; inside, files are root's, and no limit counts their processes: {why}"
    why = hindrance(**options)
    jailed = f"cannot be used: {why}" if why else f"works here{uncounted}"
    return Finding(True, f"{whose}grade --jail=bwrap {jailed}")


CHECKS: tuple[tuple[str, Callable[[], Finding | None]], ...] = (
    ("installed", minigrad),
    ("installed", python_version),
    ("installed", lambda: package("numpy")),
    ("installed", lambda: package("numba")),
    ("installed", lambda: package("pytest", "test")),
    ("lessons", lambda: package("jupyterlab", "lab")),
    ("lessons", lambda: package("matplotlib", "lab")),
    ("lessons", lambda: package("ipywidgets", "lab")),
    ("lessons", lambda: package("nbconvert", "lab")),
    ("lessons", kernel),
    ("machine", threads),
    ("machine", gpu),
    ("machine", disk),
    ("machine", kernel_cache),
    ("machine", engine),
    ("course", course),
    ("course", lessons),
    ("course", hidden),
    ("course", memory_of_points),
    ("course", grading),
    ("course", jail),
)


def run(options: argparse.Namespace) -> int:
    """Print a line per check, with a remedy if it fails; return 1 if one fails."""
    del options
    wrong = 0
    section = ""
    for name, check in CHECKS:
        if name != section:
            section = name
            print(section, flush=True)
        finding = check()
        if finding is None:
            continue
        print(f"  {'ok ' if finding.fine else 'NO '} {finding.what}", flush=True)
        if not finding.fine:
            wrong += 1
            print(f"        do: {finding.remedy or 'please report this'}", flush=True)
    print("all is well" if not wrong else f"{wrong} to fix, as the lines with `do:` say")
    return 1 if wrong else 0
