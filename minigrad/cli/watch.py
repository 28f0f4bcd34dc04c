"""`minigrad watch`: looks at the exercise files a few times a second, and grades what was saved.

Only the exercises that a save affects are graded (`affected.py`). A file is read once it has
stopped changing, so an editor may take its time to write it.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
import time
from pathlib import Path

from minigrad.cli.affected import affected
from minigrad.cli.checking import remember
from minigrad.cli.following import brief
from minigrad.course.keeping import stub_of
from minigrad.grader.folder import CourseFolder, find_folder, find_stem, known_stems, load_lesson
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.reading import parse
from minigrad.grader.report import Style, text
from minigrad.grader.run import Submission, grade
from minigrad.grader.sandbox import Worker

POLL_SECONDS = 0.25
SETTLE_SECONDS = 0.05  # a file that has not changed for so long is taken as written
PATIENCE_SECONDS = 0.3  # the same for a file that is empty or cannot be parsed (yet)

Signature = tuple[int, int, int]


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    folder = find_folder()
    stems = [find_stem(options.lesson)] if options.lesson else known_stems()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Server() as server:
            watch = Watch(folder, stems, server)
            watch.warm_up()
            print("Watching exercises/: save a file, and what you changed is graded. Ctrl-C ends.")
            print(brief(folder))
            while True:
                time.sleep(POLL_SECONDS)
                watch.step()
    except KeyboardInterrupt:
        print(f"\nStopped watching. {brief(folder)}")
        return 0


class Watch:
    """The files as they were last seen, and the exercises of each that were graded last."""

    def __init__(self, folder: CourseFolder, stems: list[str], server: Server) -> None:
        self.folder = folder
        self.server = server
        self.files = {folder.root / "exercises" / f"{stem}.py": stem for stem in stems}
        self.signatures = {path: signature_of(path) for path in self.files}
        self.texts = {path: read(path) for path in self.files}
        self.n_missing = dict.fromkeys(self.files, 0)
        self.graded_last: dict[Path, list[str]] = {}

    def warm_up(self) -> None:
        """Start the process from which workers are forked, so that the first save is quick too."""
        Worker(self.server, "", "watch.py").close()

    def step(self) -> None:
        """Look once; grade every file that was saved since the last look."""
        for path in self.files:
            now = signature_of(path)
            if now is None and self.signatures[path] is not None:
                self.n_missing[path] += 1
                if self.n_missing[path] == 2:  # an editor may replace a file in two steps
                    self.signatures[path] = None
                    number = self.files[path][:2]
                    print(
                        f"exercises/{path.name} is gone; `minigrad reset {number}` brings it back"
                    )
                continue
            self.n_missing[path] = 0
            if now != self.signatures[path]:
                self.signatures[path] = settled(path)
                self.grade(path)

    def grade(self, path: Path) -> None:
        """Grade what a save of one file affects, and print each result as it comes."""
        before, now = self.texts[path], read(path)
        if now is None:
            return
        lesson = load_lesson(self.files[path])
        names = list(lesson.exercises)
        stub = stub_of(self.folder, lesson.stem)
        print(f"--- exercises/{path.name} saved at {time.strftime('%H:%M:%S')}")
        if now == stub:
            self.texts[path] = now
            print("this is the stub: nothing to grade")
            return
        chosen = affected(names, before, now, stub) or self.graded_last.get(path) or names[:1]
        is_whole = parse(now) is not None
        if is_whole:  # else the next save is compared with the last whole one
            self.texts[path] = now
            self.graded_last[path] = chosen
        has_passed = True
        for name in chosen:
            try:
                result = grade(self.server, lesson, path, names=[name])
            except (GraderError, OSError) as error:
                print(f"minigrad: {name} could not be graded: {error}")
                return
            remember(self.folder, result)
            print(text(result, Style()))
            has_passed = has_passed and result.passed
            if not is_whole:
                return  # the others would say the same
        if has_passed:
            print(brief(self.folder))


def signature_of(path: Path) -> Signature | None:
    """Return a value that changes when the file is written, None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def settled(path: Path) -> Signature | None:
    """Wait until a file has stopped changing; return its signature."""
    signature, since = signature_of(path), time.monotonic()
    deadline = since + 10 * PATIENCE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(SETTLE_SECONDS)
        now = signature_of(path)
        if now != signature:
            signature, since = now, time.monotonic()
            continue
        written = read(path) or ""
        is_ready = bool(written.strip()) and parse(written) is not None
        if is_ready or time.monotonic() - since >= PATIENCE_SECONDS:
            break
    return signature


def read(path: Path) -> str | None:
    """Return a file's text, None if it cannot be read."""
    try:
        return Submission.read(path).source
    except OSError:
        return None
