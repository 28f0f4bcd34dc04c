"""Lets a lesson declare its exercises: functions, checks with points, hints."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from minigrad.grader.limits import Limits

NEEDS = ("plain", "engine")
PACKAGE = "minigrad.course"  # the lessons' package; imported by name, as the grader stands below it
Run = Callable[[Any], None]  # what a check does with its `tester.Tester`
Wrong = TypeVar("Wrong", bound=Callable[..., Any])


@dataclass(frozen=True)
class Check:
    """One thing that an exercise must do, worth points of its own.

    `run(t)` calls the learner's function through the tester `t` and raises Failed. `only_with`
    names checks of the exercise, one of which must pass too: alone, this check would also give
    points to a function that always does the same thing, such as raise.
    """

    name: str
    points: int
    summary: str
    run: Run
    only_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrongVersion:
    """A wrong version of a solution that people really write.

    `Tester.mistakes` recognizes its answers and names the mistake. It is also graded like a
    learner's own code (`course.mutants`): it must fail, with its own message.

    Attributes:
        key: names the mistake.
        attempt: the Try line; empty where the answer speaks for itself, such as None.
        function: called like the solution.
    """

    key: str
    attempt: str
    function: Callable[..., Any]


@dataclass
class Exercise:
    """One function (or diagnosis) that the learner writes.

    Args:
        lesson: the lesson that it belongs to.
        name: what the file must define.
        difficulty: 1 to 5.
        minutes: how long it takes most people.
        hints: three steps, from a nudge to nearly the code; the solution comes after them.
        returns: says what a call returns, for the message of a call that raises.
        needs: 'plain': graded with Python, NumPy, Numba, the plain objects and the machine that
            runs CUDA kernels alone; 'engine': with minigrad's engine, where isolation is weaker.
        answers: the dotted names that would be the answer, in the engine or in NumPy: they raise.
        is_open: whether many solutions are right, such as any network that learns a task. Then
            changes of one of them prove nothing (`course.mechanical`).
    """

    lesson: Lesson = field(repr=False)
    name: str
    difficulty: int
    minutes: int
    hints: tuple[str, ...]
    returns: str
    needs: str = "plain"
    answers: tuple[str, ...] = ()
    is_open: bool = False
    limits: Limits = field(default_factory=Limits)
    checks: list[Check] = field(default_factory=list)
    wrong_versions: list[WrongVersion] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.needs not in NEEDS:
            raise ValueError(f"{self.name}: needs is one of {', '.join(NEEDS)}, not {self.needs!r}")

    @property
    def id(self) -> str:
        """Return the name that `check` takes, such as `00.central_difference`."""
        return f"{self.lesson.number}.{self.name}"

    @property
    def points(self) -> int:
        """Return the points of all checks together."""
        return sum(check.points for check in self.checks)

    def check(self, points: int, *, only_with: tuple[str, ...] = ()) -> Callable[[Run], Callable]:
        """Decorate a function `(t) -> None` as a check; its docstring's first line is the summary.

        `only_with` as in `Check`.
        """

        def decorate(run: Run) -> Run:
            summary = (inspect.getdoc(run) or "").partition("\n")[0]
            if not summary and sys.flags.optimize < 2:  # python -OO removes docstrings
                raise ValueError(f"the check {run.__name__} needs a docstring")
            name = run.__name__.strip("_")
            summary = summary or name.replace("_", " ")
            self.checks.append(Check(name, points, summary, run, only_with))
            return run

        return decorate

    def mistake(self, key: str, attempt: str = "") -> Callable[[Wrong], Wrong]:
        """Decorate a wrong version of the solution; the arguments as in `WrongVersion`.

        The function needs no annotations. It may call functions and use constants of its module.
        """

        def decorate(function: Wrong) -> Wrong:
            self.wrong_versions.append(WrongVersion(key, attempt, function))
            return function

        return decorate


@dataclass
class Lesson:
    """A lesson's exercises, in the order of its file.

    `on_fast_track`: whether it is one of the lessons that fit in a weekend and lead to an engine
    of one's own that trains.
    """

    stem: str
    title: str
    on_fast_track: bool = False
    exercises: dict[str, Exercise] = field(default_factory=dict)

    @property
    def number(self) -> str:
        """Return the two digits."""
        return self.stem.partition("_")[0]

    @property
    def points(self) -> int:
        """Return the points of all exercises together."""
        return sum(exercise.points for exercise in self.exercises.values())

    def load(self, *modules: str) -> None:
        """Import modules of the lesson's package in this order; each adds its exercises."""
        for name in modules:
            importlib.import_module(f"{PACKAGE}.l{self.stem}.{name}")

    def exercise(self, name: str, **facts: Any) -> Exercise:
        """Add an exercise; `facts` are the arguments of `Exercise`."""
        self.exercises[name] = Exercise(self, name, **facts)
        return self.exercises[name]
