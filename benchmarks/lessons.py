"""How long lessons take to run: `python -m benchmarks.lessons` writes results/lessons.md.

Each notebook runs from top to bottom with the solutions, its process's start included: with an
empty folder for compiled kernels, with what `minigrad lab` compiles ahead, and once more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe, in_words
from benchmarks.tables import publish, table
from minigrad.course import executing
from minigrad.course.percent import notebook_text

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results") / "lessons.md"
SOURCES = sorted((ROOT / "lessons" / "source").glob("[0-9][0-9]_*.py"))


def course(folder: Path) -> Path:
    """Write a course folder whose exercises are solved; return the folder of its notebooks."""
    shutil.copytree(ROOT / "solutions", folder / "exercises")
    (folder / "lessons").mkdir()
    return folder / "lessons"


def seconds(source: Path, folder: Path, kernels: Path) -> float:
    """Run a lesson's notebook and return how long it took."""
    text = notebook_text(source.read_text(encoding="utf-8"), source.name)
    os.environ["MINIGRAD_CACHE"] = str(kernels)
    started = time.perf_counter()
    _, errors = executing.execute(text, folder)
    elapsed = time.perf_counter() - started
    if errors:
        raise SystemExit(f"{source.name}: {errors[0]}")
    return elapsed


def main() -> int:
    """Measure, write the table, print it."""
    machine = describe()  # before the load is ours
    rows = []
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        folder, ahead = course(top / "course"), top / "ahead"
        ahead.mkdir()
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "minigrad.cli.ahead"],
            env={**os.environ, "MINIGRAD_CACHE": str(ahead)}, check=True, capture_output=True,
        )  # fmt: skip
        took = time.perf_counter() - started
        for source in SOURCES:
            empty = top / source.stem
            empty.mkdir()
            figures = [seconds(source, folder, kernels) for kernels in (empty, ahead, empty)]
            rows.append([source.stem[:2], *(f"{figure:.1f} s" for figure in figures)])
    note = (
        f"{in_words(machine)}. One run each; to compile ahead took {took:.0f} s by itself. "
        "Made by `python -m benchmarks.lessons`."
    )
    titles = ["lesson", "nothing compiled", "compiled ahead", "all compiled"]
    publish(RESULTS, table(titles, rows), note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
