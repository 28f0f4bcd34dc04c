"""What a worker is given beside the learner's file: the lesson's driver, and the engine's cache."""

from __future__ import annotations

import os

from minigrad.grader.folder import CHECKS_FOLDER
from minigrad.grader.spec import Exercise

# Variables that locate the cache of the kernels that the user's own processes compiled.
HOMES = ("MINIGRAD_CACHE", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")


def driver_of(exercise: Exercise) -> dict | None:
    """Return the driver of an exercise's lesson, None if there is none."""
    name = "driver.py" if exercise.needs == "plain" else "engine_driver.py"
    if exercise.lesson is None:
        return None
    path = CHECKS_FOLDER / f"l{exercise.lesson.stem}" / name
    if not path.is_file():
        return None
    # A bare name: when the engine looks for the user's line, it skips files of its own package.
    return {"source": path.read_text(encoding="utf-8"), "path": path.name}


def engine_of(exercise: Exercise) -> dict | None:
    """Return what the gate needs to open the engine, None where it stays closed."""
    if exercise.needs != "engine":
        return None
    environment = {name: os.environ[name] for name in HOMES if name in os.environ}
    return {"answers": list(exercise.answers), "environment": environment}
