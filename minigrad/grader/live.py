"""Runs an exercise's checks on a function of this process: no isolation, no points."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from minigrad.grader.formula import Formula
from minigrad.grader.result import ExerciseResult
from minigrad.grader.run import hold_back, run_check
from minigrad.grader.spec import Exercise
from minigrad.grader.supplies import driver_of
from minigrad.grader.wire import as_if_received, as_if_sent, leaves


class LiveRunner:
    """Calls the function directly, so that prints show and a debugger stops inside it."""

    def __init__(self, exercise: Exercise, function: Callable) -> None:
        self.exercise = exercise
        self.function = function
        code = getattr(_any_function(function), "__code__", None)
        self.file = getattr(code, "co_filename", "<this session>")
        self.line = getattr(code, "co_firstlineno", 0)
        self.globals = getattr(_any_function(function), "__globals__", {})

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        """Return what a worker would reply. Other names come from the function's globals."""
        arguments = as_if_sent(arguments)
        formulas = leaves(arguments, Formula)
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
        except (Exception, SystemExit) as error:
            return {"raised": self._describe(error)}
        return {
            "ok": as_if_received(value),
            "arrays_after": leaves(arguments, np.ndarray),
            "evaluated_at": [formula.evaluated_at for formula in formulas],
            "n_calls": [formula.n_calls for formula in formulas],
        }

    def _describe(self, error: BaseException) -> dict:
        frames = [
            (line, frame.f_code.co_name, "")
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == self.file
        ]
        return {
            "type": type(error).__name__,
            "kinds": [kind.__name__ for kind in type(error).__mro__],
            "text": (str(error).splitlines() or [""])[0],
            "said": str(error),
            "full": "".join(traceback.format_exception(error)),
            "frames": frames,
            "n_frames": len(frames),
        }

    def get(self, name: str) -> Any:
        """Return the value of a name beside the function."""
        return self.globals.get(name)

    def line_of(self, name: str) -> str:
        """Return where the function is defined."""
        in_notebook = "ipykernel" in self.file or self.file.startswith("<")
        place = "this cell" if in_notebook else self.file
        return f"{place}:{self.line}, in {name}" if name else place

    def printed(self) -> str:
        """Return nothing: the learner has seen what it printed."""
        return ""


def _any_function(thing: Any) -> Any:
    """Return a function, or the first one of a class, which has the class's file and globals."""
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
