"""How long grading takes: `python -m benchmarks.grading` writes results/grading.md.

Each figure is the median of whole processes, started one after another. Cold means an empty folder
for compiled kernels; warm that everything needed lies there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe, in_words
from benchmarks.tables import publish
from minigrad.grader.jail import hindrance
from minigrad.grader.launcher import THREADS

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results") / "grading.md"
MINIGRAD = [sys.executable, "-m", "minigrad.cli.main"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
CLASS, JAIL = 10, "--jail=bwrap"
EMPTY_TEST = "def test_nothing():\n    pass\n"
WALLS = """import time, numpy
from minigrad.grader import walls
started = time.perf_counter()
missing = walls.build(*walls.libraries("minigrad"), [])
print(time.perf_counter() - started if not missing else "nan")
"""


def seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Run a command, which must end with 0, and return how long it took."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    elapsed = time.perf_counter() - started
    if done.returncode:
        said = done.stdout[-2000:]
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return elapsed


def median(command: list[str], folder: Path, environment: dict[str, str], rounds: int) -> float:
    """Return the median over some rounds, after one that is not counted."""
    seconds(command, folder, environment)
    return statistics.median(seconds(command, folder, environment) for _ in range(rounds))


def walls(rounds: int) -> float:
    """Return the median time in which a process builds its walls, NaN where it cannot."""
    alone = {**os.environ, **dict.fromkeys(THREADS, "1")}  # as workers are
    command = [sys.executable, "-c", WALLS]
    return statistics.median(
        float(subprocess.run(command, env=alone, capture_output=True, check=True).stdout)
        for _ in range(rounds)
    )


def course(folder: Path) -> Path:
    """Write a course folder whose exercises are solved."""
    for name in ("exercises", "lessons"):
        (folder / name).mkdir(parents=True)
    for path in sorted((ROOT / "solutions").glob("[0-9][0-9]_*.py")):
        (folder / "exercises" / path.name).write_bytes(path.read_bytes())
    return folder


def handed_in(folder: Path, course: Path) -> Path:
    """Write a class of which everybody hands in lesson 01, solved."""
    [solved] = course.glob("exercises/01_*.py")
    for number in range(CLASS):
        (folder / f"student{number}").mkdir(parents=True)
        (folder / f"student{number}" / solved.name).write_bytes(solved.read_bytes())
    return folder


def largest(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Return the megabytes of the largest process that a command starts, NaN where not known."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout) / 1024 if sys.platform == "linux" else float("nan")


def measure(rounds: int) -> list[tuple[str, float, float | None, float | None]]:
    """Return the rows: what, seconds warm, seconds cold or None, megabytes or None."""
    rows: list[tuple[str, float, float | None, float | None]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = course(Path(name) / "course")
        test = Path(name) / "other" / "test_nothing.py"
        test.parent.mkdir()
        test.write_text(EMPTY_TEST)
        here = {"MINIGRAD_CACHE": str(Path(name) / "cache")}
        without = median([*PYTEST, "-p", "no:minigrad_grader"], test.parent, here, rounds)
        with_plugin = median(PYTEST, test.parent, here, rounds)
        rows.append(("pytest's start, without the plugin", without, None, None))
        other = "pytest's start, with the plugin, another project"
        rows.append((other, with_plugin, None, None))
        rows.append(("the walls around a process", walls(rounds), None, None))

        def row(what: str, command: list[str]) -> None:
            cold = seconds(command, folder, {"MINIGRAD_CACHE": str(Path(name) / what / "cold")})
            warm = median(command, folder, here, rounds)
            rows.append((what, warm, cold, largest(command, folder, here)))

        row("one plain exercise, `minigrad check 01.chain`", [*MINIGRAD, "check", "01.chain"])
        row("one engine exercise, `minigrad check 07.hvp`", [*MINIGRAD, "check", "07.hvp"])
        for path in sorted((folder / "exercises").glob("*.py")):
            row(f"lesson {path.stem[:2]}, `minigrad check {path.stem[:2]}`",
                [*MINIGRAD, "check", path.stem[:2]])  # fmt: skip
        row("all solutions, `pytest exercises`", [*PYTEST, "exercises"])
        graded = [*MINIGRAD, "grade", "--unsafe", str(handed_in(Path(name) / "class", folder))]
        row(f"a class of {CLASS}, lesson 01, `minigrad grade`", graded)
        if hindrance() is None:
            row(f"the same in jails, `minigrad grade {JAIL}`", [*graded, JAIL])
    return rows


def main() -> int:
    """Measure, write the table, print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    machine = describe()  # before the load is ours
    rows = measure(options.rounds)
    lines = ["| what | warm | cold | largest process |", "|---|---:|---:|---:|"]
    lines += [
        f"| {what} | {f'{warm:.2f} s' if warm > 0.1 else f'{1000 * warm:.1f} ms'} "
        f"| {'–' if cold is None else f'{cold:.1f} s'} "
        f"| {'–' if megabytes is None else f'{megabytes:.0f} MB'} |"
        for what, warm, cold, megabytes in rows
    ]
    note = (
        f"{in_words(machine)}. Medians of {options.rounds} processes, start included; "
        "cold: no compiled kernels yet, one process. "
        "Made by `python -m benchmarks.grading`."
    )
    publish(RESULTS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
