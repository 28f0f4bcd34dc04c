"""Where things lie: the lessons that have checks, and the learner's folder."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path

from minigrad.grader.spec import Exercise, Lesson

CHECKS_PACKAGE = "minigrad.course"
CHECKS_FOLDER = Path(__file__).parents[1] / "course"
STEM = re.compile(r"\d\d_[a-z0-9_]+")


class CourseError(ValueError):
    """A lesson, exercise or folder that does not exist was asked for; the text says which do."""


def known_stems() -> list[str]:
    """Return the stems of all lessons that have checks, such as `00_start`, in order."""
    return sorted(path.name[1:] for path in CHECKS_FOLDER.glob("l[0-9][0-9]_*"))


def load_lesson(stem: str) -> Lesson:
    """Return the lesson with this stem, imported by name: the grader itself knows none."""
    return importlib.import_module(f"{CHECKS_PACKAGE}.l{stem}").lesson


def find_stem(name: str) -> str:
    """Return the stem for `00`, `0`, `00_start` or a path to its file."""
    stems = known_stems()
    wanted = Path(name).stem
    for stem in stems:
        if wanted == stem or (wanted.isdigit() and int(wanted) == int(stem[:2])):
            return stem
    raise CourseError(f"there is no lesson {name!r}; there are {', '.join(stems)}")


def find_exercises(name: str) -> tuple[Lesson, list[Exercise]]:
    """Return the lesson and the exercises for `00`, `00.hello` or a path to the file."""
    number, dot, function = name.partition(".")
    if not dot or function == "py":
        lesson = load_lesson(find_stem(name))
        return lesson, list(lesson.exercises.values())
    lesson = load_lesson(find_stem(number))
    if function not in lesson.exercises:
        known = ", ".join(exercise.id for exercise in lesson.exercises.values())
        raise CourseError(f"there is no exercise {name!r}; there are {known}")
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
    """A learner's folder: `lessons/`, `exercises/`, and `.minigrad/` for what is remembered."""

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
        """Return the learner's file for a lesson; raise CourseError when it is not there."""
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
    raise CourseError(
        f"no course here: neither {start} nor a folder above it has exercises/NN_slug.py; "
        "go to the folder of the course first"
    )
