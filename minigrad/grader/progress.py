"""What is remembered about a learner: one small JSON file, never half written.

`.minigrad/progress.json` holds, per exercise, the points of the last check, the best, the hash of
the file that was checked and the hints looked at; the predictions; and which parts run the engine.
Points hold for the file that was checked and for no other: `is_current` tells.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minigrad.grader.result import Result

VERSION = 1
EMPTY = {"version": VERSION, "exercises": {}, "predictions": {}, "engine": {}}


def load(state: Path) -> dict[str, Any]:
    """Return what is remembered; a file that cannot be read is set aside, never overwritten."""
    path = state / "progress.json"
    fresh = json.loads(json.dumps(EMPTY))
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return fresh
    try:
        data = json.loads(text)
        well_formed = isinstance(data, dict) and data["version"] == VERSION
        well_formed = well_formed and all(isinstance(data[key], type(fresh[key])) for key in fresh)
        if not well_formed:
            raise ValueError
    except (ValueError, KeyError):
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path.replace(_free_name(path.with_name(f"progress.json.unreadable-{stamp}")))
        return fresh
    return data


def _free_name(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def update(state: Path, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Load, change and save at once; return what is remembered now."""
    state.mkdir(parents=True, exist_ok=True)
    data = load(state)
    change(data)
    write_atomically(state / "progress.json", json.dumps(data, indent=1).encode())
    return data


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one."""
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".new")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def record(state: Path, result: Result) -> dict[str, Any]:
    """Remember a graded result."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    hashes = {stem[:2]: name for stem, name in result.file_hashes.items()}

    def change(data: dict[str, Any]) -> None:
        for exercise in result.exercises:
            entry = data["exercises"].setdefault(exercise.id, {"best": 0, "runs": 0, "hints": 0})
            entry.update(points=exercise.points, of=exercise.of, when=now)
            entry["best"] = max(entry.get("best", 0), exercise.points)
            entry["runs"] = entry.get("runs", 0) + 1
            entry["hash"] = hashes.get(exercise.id[:2])
            entry["passed_hash"] = hashes.get(exercise.id[:2]) if exercise.passed else None

    return update(state, change)


def is_current(entry: dict[str, Any], hash_now: str | None) -> bool:
    """Whether an entry's points were given to the file as it is now (None: there is no file)."""
    return hash_now is not None and entry.get("hash", entry.get("passed_hash")) == hash_now


def record_hint(state: Path, exercise_id: str, step: int) -> None:
    """Remember that a hint was looked at. It costs nothing."""

    def change(data: dict[str, Any]) -> None:
        entry = data["exercises"].setdefault(exercise_id, {"best": 0, "runs": 0, "hints": 0})
        entry["hints"] = max(entry.get("hints", 0), step)

    update(state, change)
