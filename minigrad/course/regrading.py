"""Looks at the exercise files a few times a second, and grades what was saved.

Grades only the exercises that a save affects (`affected.py`). Reads a file once it has stopped
changing, so an editor may take its time to write it. `minigrad watch` prints the results, and
`watch("04")` in a lesson shows them as a card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from minigrad.course.affected import affected
from minigrad.course.copies import stub_of
from minigrad.grader.folder import CourseFolder, load_lesson
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.reading import parse
from minigrad.grader.result import Result
from minigrad.grader.run import Submission, grade
from minigrad.grader.spec import Exercise

POLL_SECONDS = 0.25
SETTLE_SECONDS = 0.05  # a file that has not changed for this long counts as written
PATIENCE_SECONDS = 0.3  # the same for a file that is empty or cannot be parsed yet

Signature = tuple[int, int, int]


class Watch:
    """Remembers the files as last seen, and the exercises of each that were graded last."""

    def __init__(
        self,
        folder: CourseFolder,
        stems: list[str],
        server: Server,
        around: Callable[[Exercise], AbstractContextManager] = nullcontext,
    ) -> None:
        self.folder = folder
        self.server = server
        self.around = around
        self.files = {folder.root / "exercises" / f"{stem}.py": stem for stem in stems}
        self.signatures = {path: signature_of(path) for path in self.files}
        self.texts = {path: read(path) for path in self.files}
        self.n_missing = dict.fromkeys(self.files, 0)
        self.graded_last: dict[Path, list[str]] = {}

    def step(self) -> Iterator[str | Result]:
        """Look once; yield news about the files, and a result for each exercise."""
        for path in self.files:
            now = signature_of(path)
            if now is None and self.signatures[path] is not None:
                self.n_missing[path] += 1
                if self.n_missing[path] == 2:  # an editor may replace a file in two steps
                    self.signatures[path] = None
                    yield gone(self.files[path])
                continue
            self.n_missing[path] = 0
            if now != self.signatures[path]:
                self.signatures[path] = settled(path)
                yield from self._grade(path)

    def _grade(self, path: Path) -> Iterator[str | Result]:
        """Grade the exercises that a save of one file affects."""
        before, now = self.texts[path], read(path)
        if now is None:
            return
        try:
            lesson = load_lesson(self.files[path])
        except GraderError as error:
            yield f"minigrad: {error}"
            return
        names = list(lesson.exercises)
        stub = stub_of(self.folder, lesson.stem)
        yield f"--- exercises/{path.name} saved at {time.strftime('%H:%M:%S')}"
        if now == stub:
            self.texts[path] = now
            yield "this is the stub: nothing to grade"
            return
        chosen = affected(names, before, now, stub) or self.graded_last.get(path) or names[:1]
        is_whole = parse(now) is not None
        if is_whole:  # else the next save is compared with the last one that was whole
            self.texts[path] = now
            self.graded_last[path] = chosen
        for name in chosen:
            try:
                yield grade(self.server, lesson, path, names=[name], around=self.around)
            except (GraderError, OSError) as error:
                yield f"minigrad: {name} could not be graded: {error}"
                return
            if not is_whole:
                return  # the others would say the same


def gone(stem: str) -> str:
    """Return what to say of an exercise file that is not there."""
    return f"exercises/{stem}.py is gone; `minigrad reset {stem[:2]}` brings it back"


def signature_of(path: Path) -> Signature | None:
    """Return a value that changes when the file is written, None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def settled(path: Path) -> Signature | None:
    """Wait until a file stops changing; return its signature."""
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
