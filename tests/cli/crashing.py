"""Runs a command of minigrad in copies of a folder, and breaks it at each of its steps on disk.

    python crashing.py TEMPLATE WORK COURSE HOW ARGUMENTS...

COURSE is what `start` takes for the installed course. HOW is `kill` (the process ends there, and
what was not brought to the disk is half there), `full` (from there on every write fails as on a
full disk) or `short` (no file grows beyond some size). Prints as JSON, for each step: the status it
ended with, what of the learner's is then lost, and in what the folder differs from a whole run's
once the command was run again.
"""

import contextlib
import errno
import io
import json
import os
import shutil
import sys
from pathlib import Path

from minigrad.cli import start
from minigrad.cli.main import main
from minigrad.course.source import Source

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
STEPS = {"os.rename", "os.link", "os.mkdir", "os.remove", "os.chmod", "os.truncate"}
GROWING = {"os.link", "os.mkdir", "open", "fsync"}  # what a full disk refuses
SIZES = [0, 1, 100, 400, 700, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 40_000, 10_000_000]


class Breaker:
    """Counts steps on the file system and breaks the process at one of them."""

    def __init__(self, how, at):
        self.how, self.at, self.n = how, at, 0

    def arm(self):
        os.fsync = lambda fd: self.step("fsync", fd)  # a real one would only take time
        sys.addaudithook(self.watch)

    def watch(self, event, arguments):
        if event in STEPS or (event == "open" and (arguments[2] or 0) & WRITING):
            self.step(event, None)

    def step(self, event, fd):
        self.n += 1
        if self.how == "kill" and self.n == self.at:
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, os.fstat(fd).st_size // 2)
            os._exit(99)
        if self.how == "full" and self.n >= self.at and event in GROWING:
            raise OSError(errno.ENOSPC, "No space left on device")


def quietly(arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(arguments)


def run_broken(folder, how, at, arguments):
    """Run in a child; return its status (99: killed, 100: nothing was left to break)."""
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        breaker = Breaker(how, at)
        status = 98
        try:
            if how == "short":
                import resource
                import signal

                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (SIZES[at - 1], SIZES[at - 1]))
            else:
                breaker.arm()
            status = quietly(arguments)
        finally:
            broken = how == "short" or breaker.n >= at
            os._exit(status if broken else 100)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def content(folder):
    """Return what is in a folder, but for copies, leftovers and dates."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and "/backup/" not in name and not name.endswith((".new", ".lock")):
            found[name] = path.read_bytes()
    return found


def lost(template, folder, after):
    """Return the learner's files that are neither as they were, nor replaced with a copy kept."""
    kept = {
        path.read_bytes()
        for path in (folder / ".minigrad").glob("backup/*/**/*")
        if path.is_file() and ".part" not in str(path)
    }
    before = content(template)
    gone = []
    for name, old in before.items():
        now = (folder / name).read_bytes() if (folder / name).exists() else None
        is_learners = not name.startswith(".minigrad/course")
        if now != old and (now != after.get(name) or (is_learners and old not in kept)):
            gone.append(name)
    if (folder / ".minigrad/progress.json").exists():
        json.loads((folder / ".minigrad/progress.json").read_text())
    return gone


def fresh(template, work):
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(template, work)


def report(template, work, how, arguments):
    fresh(template, work)
    run_broken(work, "none", 1, arguments)
    after = content(work)
    results, at = [], 0
    while True:
        at += 1
        fresh(template, work)
        status = run_broken(work, how, at, arguments)
        if status == 100:
            return results
        is_progress = arguments[0] == "hint"
        gone = [] if is_progress else lost(template, work, after)
        if is_progress:
            json.loads((work / ".minigrad/progress.json").read_text())
        run_broken(work, "none", 1, arguments)
        again = content(work)
        names = {*after, *again}
        differs = [] if is_progress else [n for n in names if after.get(n) != again.get(n)]
        results.append({"at": at, "status": status, "lost": gone, "differs": differs})
        if how == "short" and at == len(SIZES):
            return results


if __name__ == "__main__":
    template, work, course, how, *arguments = sys.argv[1:]
    start.installed = lambda: Source(Path(course))
    sys.stdout.write(json.dumps(report(Path(template), Path(work), how, arguments)))
