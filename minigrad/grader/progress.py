"""Stores a learner's progress: one small JSON file, never half written.

`.minigrad/progress.json` holds, per exercise, the last and the best points, the fingerprint of the
graded code and the number of hints taken; also the predictions, and the parts that ran in the
engine. Points count as long as the fingerprint is the same (`fingerprint.py`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minigrad.grader.atomic import free_name, write_atomically
from minigrad.grader.opening import NotAFileError, open_file, read_file
from minigrad.grader.result import Result

try:
    import fcntl
except ImportError:  # Windows: of two processes that save at once, one may lose its points
    fcntl = None

VERSION = 1
LARGEST = 64 * 2**20  # bytes; a year's progress is a thousandth of that
EMPTY = {"version": VERSION, "exercises": {}, "predictions": {}, "engine": {}}
TEXT = str | None
# Per section: the types of an entry's fields, and the fields that every entry has.
ENTRIES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "exercises": (
        {
            **dict.fromkeys(("points", "of", "best", "runs", "hints"), int),
            **dict.fromkeys(("hash", "passed_hash", "when"), TEXT),
        },
        set(),
    ),
    "predictions": (
        {"question": str, "right": bool | None},
        {"question", "said", "measured", "right"},
    ),
    "engine": ({}, set()),
}


def load(state: Path) -> dict[str, Any]:
    """Return the progress; set a damaged file aside, never overwrite it.

    If the system refuses to read the file, say so and return empty progress.
    """
    try:
        data = _read(state / "progress.json")
    except OSError as error:
        sys.stderr.write(f"minigrad: your progress cannot be read: {error}\n")
        return _fresh()
    if data is None:
        with contextlib.suppress(OSError):  # where nothing can be written, nothing is lost either
            _set_aside(state / "progress.json")
    return data or _fresh()


def update(state: Path, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Load, change, save and return the progress, while no other process does.

    Raises OSError where the folder or a file in it is a link: its target may be somebody else's.
    """
    for path in (state, state / "progress.json", state / "progress.lock"):
        if path.is_symlink():
            raise OSError(errno.ELOOP, "this is a link, and is not written through", str(path))
    state.mkdir(parents=True, exist_ok=True)
    path = state / "progress.json"
    with _alone(state):
        data = _read(path)
        if data is None:
            _set_aside(path)
            data = _fresh()
        change(data)
        write_atomically(path, json.dumps(data, indent=1).encode())
    return data


def _fresh() -> dict[str, Any]:
    return json.loads(json.dumps(EMPTY))


def _read(path: Path) -> dict[str, Any] | None:
    """Return the file's content; empty progress if there is no file, None if it is damaged."""
    fresh = _fresh()
    try:
        data = json.loads(read_file(path, LARGEST))
        well_formed = isinstance(data, dict) and data["version"] == VERSION
        well_formed = well_formed and all(isinstance(data[key], type(fresh[key])) for key in fresh)
        return data if well_formed and all(_is_whole(data, key) for key in ENTRIES) else None
    except FileNotFoundError:
        return fresh
    except (ValueError, KeyError, RecursionError, IsADirectoryError, NotAFileError):
        return None


def _is_whole(data: dict[str, Any], section: str) -> bool:
    """Return whether every entry of a section has the fields it needs, of the right types."""
    kinds, needed = ENTRIES[section]
    return all(
        isinstance(entry, dict)
        and needed <= entry.keys()
        and all(isinstance(entry[key], kinds[key]) for key in kinds.keys() & entry.keys())
        for entry in data[section].values()
    )


def _set_aside(path: Path) -> None:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path.replace(free_name(path.with_name(f"progress.json.unreadable-{stamp}")))


@contextlib.contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Lock the progress, so that no other process saves between this one's loading and saving."""
    if fcntl is None:
        yield
        return
    fd = open_file(state / "progress.lock", os.O_RDWR | os.O_CREAT)
    with open(fd, "ab") as lock:
        with contextlib.suppress(OSError):  # some network folders have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def record(state: Path, result: Result, is_watched: bool = False) -> dict[str, Any]:
    """Save a graded result; a file that did not load takes no points away.

    is_watched: whether a save was graded, not because somebody asked.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%S")

    def change(data: dict[str, Any]) -> None:
        for exercise in result.exercises:
            if not exercise.loaded:
                continue
            entry = data["exercises"].setdefault(exercise.id, {"best": 0, "runs": 0, "hints": 0})
            entry.update(points=exercise.points, of=exercise.of, when=now)
            entry["best"] = max(entry.get("best", 0), exercise.points)
            entry["runs"] = entry.get("runs", 0) + 1
            entry["hash"], entry["watched"] = exercise.fingerprint, is_watched
            entry["passed_hash"] = exercise.fingerprint if exercise.passed else None

    return update(state, change)


def is_current(entry: dict[str, Any], hash_now: str | None) -> bool:
    """Return whether an entry's points were earned by the present code (None: there is no file)."""
    return hash_now is not None and entry.get("hash", entry.get("passed_hash")) == hash_now


def record_hint(state: Path, exercise_id: str, step: int) -> None:
    """Save that a hint was taken."""

    def change(data: dict[str, Any]) -> None:
        entry = data["exercises"].setdefault(exercise_id, {"best": 0, "runs": 0, "hints": 0})
        entry["hints"] = max(entry.get("hints", 0), step)

    update(state, change)
