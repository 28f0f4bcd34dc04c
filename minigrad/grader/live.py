"""Runs an exercise's checks on a function of this process: no isolation, no points."""

from __future__ import annotations

import inspect
import textwrap
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from minigrad.grader.folder import driver_of
from minigrad.grader.formula import Formula
from minigrad.grader.message import begins
from minigrad.grader.result import ExerciseResult
from minigrad.grader.run import hold_back, run_check
from minigrad.grader.spec import Exercise
from minigrad.grader.wire import as_if_received, as_if_sent, leaves
from minigrad.grader.worker import describe


class LiveRunner:
    """Calls the function directly, so that prints show and a debugger stops inside it."""

    driven = True  # everything is measured in this process

    def __init__(self, exercise: Exercise, function: Callable) -> None:
        self.exercise = exercise
        self.function = function
        plain = _any_function(function)
        code = getattr(plain, "__code__", None)
        self.file = getattr(code, "co_filename", "<this session>")
        self.line = getattr(code, "co_firstlineno", 0)
        self.globals = getattr(plain, "__globals__", {})
        self.earlier: Any = None  # what the last call returned

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        """Return what a worker would reply; look other names up in the function's globals."""
        arguments, earlier = as_if_sent(arguments), None
        formulas = list({id(one): one for one in leaves(arguments, Formula)}.values())
        mine = SimpleNamespace(**{**self.globals, self.exercise.name: self.function})
        try:
            if drive:
                driver: dict = {}
                source = driver_of(self.exercise) or {"source": "", "path": ""}
                exec(compile(source["source"], source["path"], "exec", dont_inherit=True), driver)
                value = driver[name](mine, *arguments)
            elif not hasattr(mine, name):
                raise NameError(f"{name} is not defined beside {self.exercise.name}")
            else:
                value = getattr(mine, name)(*arguments)
                earlier, self.earlier = self.earlier, value
        except (Exception, SystemExit) as error:
            return {"raised": describe(error, self.file)}
        return {
            "ok": as_if_received(value),
            "arguments_after": as_if_received(arguments),
            "earlier": as_if_received(earlier),
            "evaluated_at": [formula.evaluated_at for formula in formulas],
            "n_calls": [formula.n_calls for formula in formulas],
        }

    def get(self, name: str) -> Any:
        """Return the value of a name beside the function."""
        return self.globals.get(name)

    def alone(self, name: str, arguments: list) -> Any:
        """Return None: what this process keeps between calls cannot be undone."""

    def line_of(self, name: str) -> str:
        """Return where the function, or the class's method, begins; else its file."""
        method = getattr(self.function, name.partition(".")[2], None)
        line = getattr(getattr(method, "__code__", None), "co_firstlineno", self.line)
        in_notebook = "ipykernel" in self.file or self.file.startswith("<")
        place = "this cell" if in_notebook else self.file
        if name.partition(".")[0] != self.exercise.name:
            return place
        return begins(name, f"line {line} of this cell" if in_notebook else f"{place}:{line}")

    def printed(self) -> str:
        """Return "": the learner has already seen the prints."""
        return ""

    def source(self) -> str:
        """Return the text of the function or class, "" if unknown."""
        try:
            return textwrap.dedent(inspect.getsource(self.function))
        except (OSError, TypeError):
            return ""


def _any_function(thing: Any) -> Any:
    """Return a function, or a class's first one, which shares the class's file and globals."""
    if not isinstance(thing, type):
        return inspect.unwrap(thing)
    return next((one for one in vars(thing).values() if inspect.isfunction(one)), thing)


def try_function(exercise: Exercise, function: Callable, seed: int) -> ExerciseResult:
    """Run an exercise's checks on a function of this process."""
    runner = LiveRunner(exercise, function)
    result = ExerciseResult(exercise.id, exercise.difficulty, exercise.minutes)
    started = time.perf_counter()
    for check in exercise.checks:
        result.checks.append(run_check(exercise, check, runner, seed))
    hold_back(exercise, result.checks)
    result.seconds = time.perf_counter() - started
    return result
