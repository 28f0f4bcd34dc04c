"""Collects an exercise file for pytest: a collector per exercise, an item per check."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minigrad.grader import progress
from minigrad.grader.fingerprint import file_hash
from minigrad.grader.folder import load_lesson
from minigrad.grader.launcher import Server
from minigrad.grader.report import Style, message_lines, next_step, untouched_line
from minigrad.grader.result import CheckResult, ExerciseResult, Result
from minigrad.grader.run import Submission, grade_exercise, new_seed
from minigrad.grader.spec import Check, Exercise

SESSION = "minigrad-grading"  # the name of this run's GradingSession among pytest's plugins


class GradingSession:
    """Holds the server, the seed and the results of a pytest run, of which it is a plugin."""

    def __init__(self, config: pytest.Config) -> None:
        seed = config.getoption("--grade-seed")
        self.seed = new_seed() if seed is None else seed
        self.server = Server()
        self.results: dict[Path, Result] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> GradingSession:
        """Return this run's session; create it on the first call."""
        session = config.pluginmanager.get_plugin(SESSION)
        if session is None:
            session = cls(config)
            config.pluginmanager.register(session, SESSION)
        return session

    def grade(self, exercise: Exercise, submission: Submission) -> ExerciseResult:
        """Grade one exercise and store its result."""
        graded = grade_exercise(self.server, exercise, submission, self.seed)
        result = self.results.setdefault(submission.path, Result(self.seed))
        result.exercises.append(graded)
        result.file_hashes[submission.path.stem] = file_hash(submission.source)
        return graded

    def told_before(self, exercise: ExerciseResult) -> bool:
        """Return whether the file does not load and an earlier exercise has said so."""
        message = exercise.first_message
        first = next(
            one for result in self.results.values() for one in result.exercises
            if one.first_message == message
        )  # fmt: skip
        return not exercise.loaded and first is not exercise

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the table of points."""
        if not self.results:
            return
        style, terminal = Style(), terminalreporter
        terminal.section("points", sep="=")
        total = of = 0
        for path, result in self.results.items():
            terminal.write_line(f"{path.parent.name}/{path.name}")
            for exercise in result.exercises:
                total, of = total + exercise.points, of + exercise.of
                if exercise.is_untouched:
                    terminal.write_line(f"  {untouched_line(exercise, style)}", light=True)
                    continue
                sign = style.signs["passed" if exercise.passed else "failed"]
                terminal.write_line(
                    f"  {sign} {exercise.id:<28} {style.stars(exercise.difficulty)}"
                    f" {exercise.points:>3} of {exercise.of:<3}{exercise.seconds:6.2f} s"
                    + (
                        f" ({exercise.compile_seconds:.1f} s compiling)"
                        if exercise.compile_seconds
                        else ""
                    ),
                    green=exercise.passed,
                    red=not exercise.passed,
                )
        terminal.write_line(f"{total} of {of} points   seed {self.seed} (--grade-seed repeats it)")
        unfinished = [result for result in self.results.values() if not result.passed]
        if unfinished:
            terminal.write_line(next_step(unfinished[0]))

    def pytest_sessionfinish(self) -> None:
        """End the workers; save the points of a learner's own exercises."""
        self.server.close()
        for path, result in self.results.items():
            if path.parent.name == "exercises":
                with contextlib.suppress(OSError):  # a read-only folder can be graded as well
                    progress.record(path.parents[1] / ".minigrad", result)


class CheckFailed(Exception):
    """Raised for a failed check; pytest shows the message of its result."""

    def __init__(self, outcome: CheckResult, exercise_id: str) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome
        self.exercise_id = exercise_id


class GradedFile(pytest.File):
    """An exercise file. It is read, never imported."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield a collector per exercise of the lesson."""
        self.submission = Submission.read(self.path)
        for exercise in load_lesson(self.path.stem).exercises.values():
            yield GradedExercise.from_parent(self, name=exercise.name, exercise=exercise)


class GradedExercise(pytest.Collector):
    """One exercise: `pytest exercises/01_chain_rule.py::chain` grades it alone."""

    def __init__(self, *, exercise: Exercise, **options: Any) -> None:
        super().__init__(**options)
        self.exercise = exercise
        self.result: ExerciseResult | None = None

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item per check."""
        for check in self.exercise.checks:
            yield GradedItem.from_parent(self, name=check.name, check=check)

    def graded(self) -> ExerciseResult:
        """Return the exercise's result; the first item runs it, once."""
        if self.result is None:
            assert isinstance(self.parent, GradedFile)
            session = GradingSession.of(self.config)
            self.result = session.grade(self.exercise, self.parent.submission)
        return self.result


class GradedItem(pytest.Item):
    """One check of one exercise."""

    def __init__(self, *, check: Check, **options: Any) -> None:
        super().__init__(**options)
        self.check = check

    def runtest(self) -> None:
        """Report this check; grade its exercise first if no item has yet."""
        assert isinstance(self.parent, GradedExercise)
        session, result = GradingSession.of(self.config), self.parent.graded()
        outcome = next(check for check in result.checks if check.name == self.check.name)
        self.user_properties.append(("points", outcome.points))
        self.user_properties.append(("max_points", outcome.of))
        if result.is_untouched:
            self.user_properties.append(("not begun", True))
        elif outcome.status == "not_run" or session.told_before(result):
            self.user_properties.append(("not run", True))
        if outcome.status != "passed":
            raise CheckFailed(outcome, result.id)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """Return the teaching message instead of a traceback."""
        error = excinfo.value
        if not isinstance(error, CheckFailed):
            return str(super().repr_failure(excinfo, style=style))
        if error.outcome.message is None:
            return "not run: see the first check of this exercise"
        head = f"{error.outcome.summary}   (0 of {error.outcome.of} points)"
        lines = [head, *message_lines(error.outcome, error.exercise_id)]
        if self.config.getoption("--grade-full"):
            lines.append(error.outcome.message.full)
        return "\n".join(lines)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location and name that pytest shows for this item."""
        assert isinstance(self.parent, GradedExercise)
        return self.path, None, f"{self.parent.exercise.id}: {self.check.name}"
