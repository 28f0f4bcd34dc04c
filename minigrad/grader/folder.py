"""Finds lessons, their exercises, and the learner's folder."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from minigrad.grader.spec import PACKAGE, Exercise, Lesson

CHECKS_FOLDER = Path(__file__).parents[1] / "course"
STEM = re.compile(r"\d\d_[a-z0-9_]+")


class CourseError(ValueError):
    """A request that cannot be met, such as an unknown lesson; the text says what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return the text alone, which IPython shows instead of a traceback."""
        return [str(self)]


class UnsolvedError(CourseError):
    """A cell needs an exercise, such as `00.slope`, that is still a stub."""

    def __init__(self, exercise_id: str) -> None:
        super().__init__(
            f"This cell needs {exercise_id}, not solved yet: minigrad check {exercise_id}"
        )


class GraderError(Exception):
    """A fault of the grader itself, not of the learner's code."""


class LessonError(GraderError):
    """A lesson's package of checks does not load: minigrad's fault, not the learner's."""


def known_stems() -> list[str]:
    """Return the stems of all lessons that have checks, such as `00_start`, in order."""
    return sorted(path.name[1:] for path in CHECKS_FOLDER.glob("l[0-9][0-9]_*"))


def load_lesson(stem: str) -> Lesson:
    """Return the lesson with this stem; by name, as the grader must not import the course.

    Raises:
        LessonError: its package does not load.
    """
    try:
        return importlib.import_module(f"{PACKAGE}.l{stem}").lesson
    except Exception as error:  # whatever is wrong with one lesson's code, the others go on
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise LessonError(f"lesson {stem[:2]} cannot be loaded: {what}") from error


def loadable(stems: Iterable[str]) -> Iterator[Lesson]:
    """Yield the lessons with these stems; skip, with a message, one that does not load."""
    for stem in stems:
        try:
            yield load_lesson(stem)
        except LessonError as error:
            say_once(str(error))


@cache
def say_once(text: str) -> None:
    """Write a line to standard error, but the same line only once."""
    sys.stderr.write(f"minigrad: {text}\n")


def driver_of(exercise: Exercise) -> dict | None:
    """Return the driver of an exercise's lesson, None if there is none."""
    name = "driver.py" if exercise.needs == "plain" else "engine_driver.py"
    path = CHECKS_FOLDER / f"l{exercise.lesson.stem}" / name
    if not path.is_file():
        return None
    # A bare name: when the engine looks for the user's line, it skips files of its own package.
    return {"source": path.read_text(encoding="utf-8"), "path": path.name}


def find_stem(name: str) -> str:
    """Return the stem for `00`, `0`, `00_start` or a path to its file."""
    stems = known_stems()
    wanted = Path(checked_text(name)).stem
    for stem in stems:
        if wanted == stem or (wanted.isdigit() and int(wanted) == int(stem[:2])):
            return stem
    raise CourseError(f"there is no lesson {name!r}.{_nearest(name)} There are {', '.join(stems)}")


def checked_text(name: object) -> str:
    """Return a name unchanged; raise CourseError if it is no string, but the number 0, say."""
    if isinstance(name, str):
        return name
    raise CourseError(
        f'a lesson is named by a text such as "00", an exercise by one such as "00.hello"; this is '
        f"{name!r:.60}, of type {type(name).__name__}"
    )


def _nearest(name: str) -> str:
    """Return a question that suggests similar lessons and exercises; "" if there are none."""
    wanted = name.lower()
    stems = known_stems()
    ids = [one.id for lesson in loadable(stems) for one in lesson.exercises.values()]
    meant = [stem for stem in stems if wanted in stem.split("_") or wanted == stem[3:]]
    meant += [one for one in ids if wanted in (one.lower(), one.partition(".")[2].lower())]
    functions = {one.partition(".")[2]: one for one in ids}
    for names in (dict(zip(ids, ids, strict=True)), functions, {stem[3:]: stem for stem in stems}):
        lower = {key.lower(): one for key, one in names.items()}
        meant = meant or [lower[match] for match in get_close_matches(wanted, lower, 3)]
    return f" Did you mean {' or '.join(meant)}?" if meant else ""


def find_exercises(name: str) -> tuple[Lesson, list[Exercise]]:
    """Return the lesson and the exercises for `00`, `00.hello` or a path to the file.

    `hello` alone is enough where one lesson has an exercise of this name.
    """
    number, dot, function = checked_text(name).partition(".")
    if name.endswith(".ipynb"):
        stem = find_stem(name)
        raise CourseError(
            f"{name} is a lesson, to be read and run; what is graded are its exercises, in "
            f"exercises/{stem}.py: check {stem[:2]}"
        )
    if name.isidentifier() and len(exercises := exercises_called(name)) == 1:
        return exercises[0].lesson, exercises
    if not dot or name.endswith(".py"):
        lesson = load_lesson(find_stem(name))
        return lesson, list(lesson.exercises.values())
    lesson = load_lesson(find_stem(number))
    if function not in lesson.exercises:
        known = ", ".join(exercise.id for exercise in lesson.exercises.values())
        raise CourseError(f"there is no exercise {name!r}.{_nearest(name)} There are {known}")
    return lesson, [lesson.exercises[function]]


def exercises_called(name: str) -> list[Exercise]:
    """Return the exercises with this name in all lessons that load."""
    lessons = loadable(known_stems())
    return [lesson.exercises[name] for lesson in lessons if name in lesson.exercises]


def find_id(function_name: str, module_name: str = "") -> Exercise:
    """Return the exercise with this name; the end of `module_name` decides between lessons."""
    exercises = exercises_called(function_name)
    for exercise in exercises:
        if module_name.endswith(exercise.lesson.stem):
            return exercise
    if len(exercises) == 1:
        return exercises[0]
    if exercises:
        ids = " or ".join(f'check("{exercise.id}")' for exercise in exercises)
        raise CourseError(f"{function_name} is an exercise of several lessons; say {ids}")
    raise CourseError(
        f"no lesson has an exercise called {function_name}; `minigrad status` lists them"
    )


@dataclass(frozen=True)
class CourseFolder:
    """A learner's folder: `lessons/`, `exercises/`, and `.minigrad/` for progress and backups."""

    root: Path

    @property
    def state(self) -> Path:
        """Return the folder that holds progress and backups."""
        return self.root / ".minigrad"

    def stems(self) -> list[str]:
        """Return the stems of the lessons whose exercise file is here."""
        files = {path.stem for path in (self.root / "exercises").glob("*.py")}
        return [stem for stem in known_stems() if stem in files]

    def exercise_file(self, stem: str) -> Path:
        """Return the learner's file for a lesson; raise CourseError if there is none."""
        path = self.root / "exercises" / f"{stem}.py"
        if not path.is_file():
            raise CourseError(f"{path} is missing; `minigrad reset {stem[:2]}` brings it back")
        return path


def find_folder(start: Path | None = None) -> CourseFolder:
    """Return the course folder at or above `start` (default: the current folder)."""
    start = (start or Path.cwd()).resolve()
    for root in (start, *start.parents):
        exercises = root / "exercises"
        if exercises.is_dir() and any(STEM.fullmatch(path.stem) for path in exercises.glob("*.py")):
            return CourseFolder(root)
        if (root / ".minigrad" / "course").is_dir():  # somebody deleted the exercises
            return CourseFolder(root)
    raise CourseError(
        f"no course here: neither {start} nor a folder above it has exercises/NN_slug.py; "
        "go to the folder of the course first, or make one with `minigrad start FOLDER`"
    )
