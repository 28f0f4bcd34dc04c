"""Finds lessons, their exercises, and the learner's folder."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from minigrad.grader.spec import Exercise, Lesson

CHECKS_PACKAGE = "minigrad.course"
CHECKS_FOLDER = Path(__file__).parents[1] / "course"
STEM = re.compile(r"\d\d_[a-z0-9_]+")


class CourseError(ValueError):
    """A request that cannot be met, such as for an unknown lesson; the text says what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback: the text alone."""
        return [str(self)]


class UnsolvedError(CourseError):
    """A cell needs an exercise, such as `00.slope`, that is still a stub."""

    def __init__(self, exercise_id: str) -> None:
        super().__init__(
            f"This cell needs {exercise_id}, not solved yet: minigrad check {exercise_id}"
        )


def known_stems() -> list[str]:
    """Return the stems of all lessons that have checks, such as `00_start`, in order."""
    return sorted(path.name[1:] for path in CHECKS_FOLDER.glob("l[0-9][0-9]_*"))


def load_lesson(stem: str) -> Lesson:
    """Return the lesson with this stem; by name, as the grader must not import the course."""
    return importlib.import_module(f"{CHECKS_PACKAGE}.l{stem}").lesson


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
    raise CourseError(f"there is no lesson {name!r}; there are {', '.join(stems)}{_nearest(name)}")


def checked_text(name: object) -> str:
    """Return a name unchanged; raise CourseError if it is not a string, such as the number 0."""
    if isinstance(name, str):
        return name
    raise CourseError(
        f'a lesson is named by a text such as "00", an exercise by one such as "00.hello"; this is '
        f"{name!r:.60}, of type {type(name).__name__}"
    )


def _nearest(name: str) -> str:
    """Return a question that names similar exercises, or an empty string."""
    ids = [exercise for stem in known_stems() for exercise in _ids(stem)]
    meant = [one for one in ids if name == one.partition(".")[2]]
    meant = meant or get_close_matches(name, ids, 3)
    if not meant:
        functions = {one.partition(".")[2]: one for one in ids}
        meant = [functions[found] for found in get_close_matches(name, functions, 3)]
    return f". Did you mean {' or '.join(meant)}?" if meant else ""


def _ids(stem: str) -> list[str]:
    return [exercise.id for exercise in load_lesson(stem).exercises.values()]


def find_exercises(name: str) -> tuple[Lesson, list[Exercise]]:
    """Return the lesson and the exercises for `00`, `00.hello` or a path to the file."""
    number, dot, function = checked_text(name).partition(".")
    if name.endswith(".ipynb"):
        stem = find_stem(name)
        raise CourseError(
            f"{name} is a lesson, to be read and run; what is graded are its exercises, in "
            f"exercises/{stem}.py: check {stem[:2]}"
        )
    if not dot or name.endswith(".py"):
        lesson = load_lesson(find_stem(name))
        return lesson, list(lesson.exercises.values())
    lesson = load_lesson(find_stem(number))
    if function not in lesson.exercises:
        known = ", ".join(_ids(lesson.stem))
        raise CourseError(f"there is no exercise {name!r}; there are {known}{_nearest(name)}")
    return lesson, [lesson.exercises[function]]


def find_id(function_name: str, module_name: str = "") -> Exercise:
    """Return the exercise of this name; the end of `module_name` decides between lessons."""
    found = []
    for stem in known_stems():
        exercise = load_lesson(stem).exercises.get(function_name)
        if exercise is not None:
            found.append(exercise)
            if module_name.endswith(stem):
                return exercise
    if len(found) == 1:
        return found[0]
    if found:
        ids = " or ".join(f'check("{exercise.id}")' for exercise in found)
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
        """The folder of progress and backups."""
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
