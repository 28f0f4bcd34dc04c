"""Runs a capstone (lesson 17) seed by seed, and keeps what each seed came to.

A file `.minigrad/capstone/NAME/ENGINE-SEED.json` in the course folder holds one finished run, with
a fingerprint of the code that ran. A run of other code does not count, and one of the present code
is never repeated. Files of a folder prove nothing to anybody else: points come from what the grader
trains itself.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minigrad.course.capstone_tasks import CAPSTONES, N_SEEDS, Capstone
from minigrad.course.notebook import module_of, untouched
from minigrad.course.parts import engine
from minigrad.grader import progress
from minigrad.grader.atomic import write_atomically
from minigrad.grader.fingerprint import file_hash
from minigrad.grader.folder import CourseError, CourseFolder, find_exercises, find_stem
from minigrad.grader.opening import NotAFileError, read_file
from minigrad.grader.run import Submission
from minigrad.grader.worker import describe
from minigrad.parsing import tree_of

VERSION = 1
ENGINES = ("reference", "mine")
MOST_POINTS = 400  # of a kept curve
LARGEST = 2**20  # bytes of a kept run


@dataclass(frozen=True)
class Run:
    """What a training with one seed came to.

    Attributes:
        parts: the learner's exercises that ran in the engine.
        fingerprint: of the code that ran.
        score: None if the training diverged.
        curve: [x, y] pairs, for a plot.
    """

    exercise: str
    engine: str
    parts: list[str]
    seed: int
    fingerprint: str
    score: float | None
    curve: list[list[float]]
    seconds: float
    when: str
    version: int = VERSION


class DivergedError(Exception):
    """Raised by `record`: what the training records is no number any more."""


def find_capstone(name: str) -> Capstone:
    """Return the capstone with this name, with or without the lesson's number."""
    if (capstone := CAPSTONES.get(name.removeprefix("17."))) is None:
        raise CourseError(f"there is no capstone {name!r:.60}. There are {', '.join(CAPSTONES)}")
    return capstone


def submitted(folder: CourseFolder, exercise_id: str) -> Submission:
    """Return the file of an exercise as it is now."""
    return Submission.read(folder.exercise_file(find_stem(exercise_id[:2])))


def fingerprint_of(
    folder: CourseFolder, own: Submission, capstone: Capstone, parts: Iterable[str]
) -> str:
    """Return a hash of the code on which a run depends: the exercise's and that of the parts."""
    codes = []
    for exercise_id in (capstone.exercise_id, *parts):
        _, [exercise] = find_exercises(exercise_id)
        file = own if exercise_id == capstone.exercise_id else submitted(folder, exercise_id)
        codes.append(f"{exercise_id} {file.fingerprint(exercise)}")
    return file_hash("\n".join(codes))


def file_of(folder: CourseFolder, capstone: Capstone, which: str, seed: int) -> Path:
    """Return the file that keeps a run."""
    return folder.state / "capstone" / capstone.name / f"{which}-{seed}.json"


def kept(folder: CourseFolder, name: str, which: str, parts: Iterable[str] = ()) -> list[Run]:
    """Return the kept runs of the present code on an engine, by seed; skip damaged files.

    With no `parts`, a run's own say with which it must agree: they were passed when it ran.
    """
    capstone, runs, wanted = find_capstone(name), [], {}
    for seed in range(N_SEEDS):
        run = _read(file_of(folder, capstone, which, seed))
        if run is None or (run.exercise, run.engine, run.seed) != (
            capstone.exercise_id, which, seed,
        ):  # fmt: skip
            continue
        ran = tuple(parts) or tuple(run.parts)
        if ran not in wanted:
            with contextlib.suppress(CourseError):
                own = submitted(folder, capstone.exercise_id)
                wanted[ran] = fingerprint_of(folder, own, capstone, ran)
        if run.fingerprint == wanted.get(ran):
            runs.append(run)
    return runs


def standing(folder: CourseFolder, name: str, which: str) -> str:
    """Return in a sentence what the runs on an engine have come to."""
    return verdict(find_capstone(name), kept(folder, name, which))


def verdict(capstone: Capstone, runs: list[Run]) -> str:
    """Return in a sentence what these runs have come to."""
    if not runs:
        return "not run yet"
    diverged = sum(run.score is None for run in runs)
    scores = [run.score for run in runs if run.score is not None]
    said = f"{len(runs)} of {N_SEEDS} seeds"
    if scores:
        said += f", {', '.join(map(capstone.shown, scores))}"
    if diverged:
        said += f", {diverged} diverged"
    if len(runs) < N_SEEDS:
        return said
    return f"{said}: {'passed' if is_passed(capstone, runs) else 'not passed'} ({capstone.bar})"


def is_passed(capstone: Capstone, runs: list[Run]) -> bool:
    """Return whether these are all seeds and reach the bar; a diverged run has the worst score."""
    scores = [capstone.worst if run.score is None else run.score for run in runs]
    return len(runs) == N_SEEDS and capstone.is_passed(scores)


def run_seeds(
    folder: CourseFolder,
    name: str,
    which: str,
    seeds: Iterable[int],
    steps: Callable[[int], Any] = lambda seed: contextlib.nullcontext(lambda value: None),
) -> Iterator[tuple[Run, bool]]:
    """Train with each seed that has no kept run; yield each run, and whether it was kept already.

    Args:
        folder: the course folder.
        name: the capstone.
        which: 'mine' or 'reference'.
        seeds: such as range(5).
        steps: steps(seed) is a context around a training; what it gives is called with each number
            that is recorded.

    Raises:
        CourseError: the function is not written yet, or raises; the text is the whole story.
    """
    capstone = find_capstone(name)
    own = submitted(folder, capstone.exercise_id)  # all seeds run this copy, whatever is saved
    function_of(own, capstone)
    with engine(which) as parts:
        if which == "mine" and not parts:
            raise CourseError(
                "no part of yours has passed as its file is now, so your own engine is the "
                "reference: `minigrad status` shows the wall of parts"
            )
        wanted = fingerprint_of(folder, own, capstone, parts)
        have = {run.seed: run for run in kept(folder, name, which, parts)}
        for seed in seeds:
            if seed in have:
                yield have[seed], True
                continue
            with steps(seed) as report:
                run = _train(own, capstone, which, parts, seed, wanted, report)
            _keep(file_of(folder, capstone, which, seed), run)
            yield run, False
    _light(folder, capstone)


def function_of(own: Submission, capstone: Capstone) -> Callable[..., Any]:
    """Return the learner's function, of a module of its own.

    Raises:
        CourseError: it is not there or not written, or the file does not load; with the place.
    """
    check = f"minigrad check {capstone.exercise_id}"
    try:
        if capstone.name in untouched(tree_of(own.source, str(own.path))):
            raise CourseError(
                f"{capstone.name} in {own.shown} is not written yet; once it is, `{check}` first"
            )
        capstone.prepare()  # before the file, which may import the same library
        function = getattr(module_of(own.source, own.path), capstone.name, None)
    except CourseError:
        raise
    except Exception as error:
        raise CourseError(f"the file does not load: {_told(error, own.path)}") from error
    if not callable(function):
        raise CourseError(
            f"{own.shown} has no function {capstone.name}, at the left margin and of that name"
        )
    return function


def _train(
    own: Submission,
    capstone: Capstone,
    which: str,
    parts: list[str],
    seed: int,
    fingerprint: str,
    report: Callable[[float], None],
) -> Run:
    """Train with one seed."""
    numbers: list[tuple[float, float]] = []

    def record(value: float, at: float | None = None) -> None:
        value = float(value)
        numbers.append((len(numbers) + 1 if at is None else at, value))
        if not math.isfinite(value):
            raise DivergedError
        report(value)

    function = function_of(own, capstone)
    started, score = time.perf_counter(), None
    try:
        score = float(capstone.run(function, seed, record))
    except DivergedError:
        numbers.pop()
    except CourseError:
        raise
    except Exception as error:
        raise CourseError(f"seed {seed}: {_told(error, own.path)}") from error
    return Run(
        exercise=capstone.exercise_id,
        engine=which,
        parts=list(parts),
        seed=seed,
        fingerprint=fingerprint,
        score=score if score is not None and math.isfinite(score) else None,
        curve=thinned(numbers),
        seconds=round(time.perf_counter() - started, 3),
        when=time.strftime("%Y-%m-%dT%H:%M:%S"),
    )


def _keep(path: Path, run: Run) -> None:
    """Write a run; raise CourseError where a folder on the way is a link, perhaps to others."""
    for place in (*list(path.parents)[:3], path):
        if place.is_symlink():
            raise CourseError(f"nothing was kept: {place} is a link, and is not written through")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(run)).encode())


def _told(error: Exception, path: Path) -> str:
    """Return a learner's error in a line, with the place in the file."""
    said = describe(error, str(path))
    place = f"exercises/{path.name}"
    if said["frames"]:
        line, function, text = said["frames"][-1]
        place += f":{line}{', in ' * bool(function)}{function}: {text}"
    return f"{said['type']}: {said['text']} ({place})"


def thinned(curve: list[tuple[float, float]], most: int = MOST_POINTS) -> list[list[float]]:
    """Return a curve of at most so many points, each the mean of as many neighbours.

    >>> thinned([(1, 2.0), (2, 4.0), (3, 6.0)], 2)
    [[1.5, 3.0], [3.0, 6.0]]
    """
    width = max(1, math.ceil(len(curve) / most))
    pieces = (curve[i : i + width] for i in range(0, len(curve), width))
    means = ([sum(column) / len(piece) for column in zip(*piece, strict=True)] for piece in pieces)
    return [[round(x, 1), float(f"{y:.6g}")] for x, y in means]


def _read(path: Path) -> Run | None:
    """Return a kept run; None if there is none, or the file is damaged."""
    try:
        fields = json.loads(read_file(path, LARGEST))
        run = Run(**fields)
        xs = [[float(x), float(y)] for x, y in run.curve]
        whole = run.version == VERSION and type(run.seed) is int and isinstance(run.parts, list)
        whole = whole and all(isinstance(part, str) for part in run.parts)
        whole = whole and (run.score is None or math.isfinite(float(run.score)))
        return run if whole and len(xs) <= MOST_POINTS else None
    except (OSError, NotAFileError, ValueError, TypeError, RecursionError):
        return None


def _light(folder: CourseFolder, capstone: Capstone) -> None:
    """Light the capstone's tile if it has passed on both engines."""
    runs = {which: kept(folder, capstone.name, which) for which in ENGINES}
    if not all(is_passed(capstone, some) for some in runs.values()):
        return
    last = runs["mine"][-1]

    def change(data: dict[str, Any]) -> None:
        data["engine"][capstone.exercise_id] = {
            "calls": len(last.parts),
            "last_loss": last.curve[-1][1] if last.curve else None,
            "when": last.when,
        }

    with contextlib.suppress(OSError):
        progress.update(folder.state, change)
