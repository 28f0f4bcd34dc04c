"""What a check works with: it calls the learner's function, compares, explains."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, NoReturn, Protocol

import numpy as np

from minigrad.grader.compare import HUGE, agree, comparable, first, type_name, worst
from minigrad.grader.formula import Formula
from minigrad.grader.message import Failed, Message, show, show_call
from minigrad.grader.spec import Exercise
from minigrad.grader.translate import explain_raised
from minigrad.grader.wire import Other, leaves


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give: its value, and what to say about it."""

    key: str
    value: Any
    attempt: str


class Runner(Protocol):
    """Where the learner's code runs: a worker process, or this one (`check(function)`)."""

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict: ...

    def get(self, name: str) -> Any: ...

    def line_of(self, name: str) -> str: ...

    def printed(self) -> str: ...


class Tester:
    """Passed to each check of an exercise as `t`.

    Attributes:
        random: a NumPy Generator; seeded by the run's seed and the check's name.
        evaluated_at: per formula of the last call, the points at which it was evaluated.
        n_calls: per formula of the last call, how often it was called.
        given: what the message's first part says; set by `call`, or by the check.
    """

    def __init__(self, exercise: Exercise, check_name: str, runner: Runner, seed: int) -> None:
        self.exercise = exercise
        self.runner = runner
        self.random = np.random.default_rng(
            [abs(seed), zlib.crc32(f"{exercise.id}.{check_name}".encode())]
        )
        self.evaluated_at: list[list[Any]] = []
        self.n_calls: list[int] = []
        self.given = ""

    # ---- asking ---------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the learner's function and return its result.

        Fails the check if it raises, or writes into an array that it was given.
        """
        self.given = show_call(name, list(arguments))
        reply = self._ask(name, list(arguments))
        if "raised" in reply:
            self._explain(reply["raised"])
        self._unchanged(list(arguments), reply["arrays_after"])
        return reply["ok"]

    def drive(self, name: str, *arguments: Any, given: str) -> Any:
        """Call a function of the lesson's driver on the learner's module and return its result.

        The driver (`driver.py`, `engine_driver.py` for exercises that need the engine) runs in the
        learner's process as `name(mine, *arguments)`: it builds what cannot be sent, such as graphs
        and classes, and returns plain data, which is as untrusted as any answer.

        Args:
            name: the driver's function.
            arguments: plain data and arrays.
            given: what the message's first part says.
        """
        self.given = given
        reply = self._ask(name, list(arguments), drive=True)
        if "raised" in reply:
            self._explain(reply["raised"], driven=True)
        return reply["ok"]

    def _explain(self, raised: dict, *, driven: bool = False) -> NoReturn:
        if "NotImplementedError" in raised["kinds"] and raised["n_frames"] <= 1:
            self.fail(
                "stub",
                self.exercise.returns,
                "nothing yet: this part is still a stub",
                "Replace the line that raises NotImplementedError by your own code.",
                where=self._frame(raised),
            )
        key, got, attempt = explain_raised(raised)
        if driven and not raised["n_frames"]:
            attempt = "What came back is not of the form that the docstring states. Compare them."
        where = self._frame(raised)
        self.fail(key, self.exercise.returns, got, attempt, where=where, full=raised["full"])

    def raises(self, name: str, *arguments: Any, expected: str = "an error") -> dict:
        """Return the description of what the call raised; fails when it raises nothing.

        `expected` says which error in words, such as "a ValueError". The description's `kinds` are
        the names of the exception's classes, the most derived first.
        """
        self.given = show_call(name, list(arguments))
        reply = self._ask(name, list(arguments))
        if "raised" not in reply:
            attempt = "What should happen for arguments that make no sense?"
            if isinstance(reply["ok"], Other) and reply["ok"].type_name.endswith("Error"):
                attempt = "The error was returned, like any value. How is it raised?"
            self.fail("did_not_raise", expected, show(reply["ok"]), attempt)
        return reply["raised"]

    def get(self, name: str) -> Any:
        """Return the value of a name in the learner's file, None where it has none.

        Arrays and huge integers arrive as `Other`, so that a check may compare what it gets with
        `==` and `in`.
        """
        self.given = f"the value of {name}"
        return comparable(self.runner.get(name))

    def formula(self, text: str, **numbers: float) -> Formula:
        """Return a formula with `{names}` replaced by numbers, rounded as they are shown."""
        shown = {name: f"{value:.3g}" for name, value in numbers.items()}
        return Formula(text.format(**shown).replace("+ -", "- "))

    def _ask(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        reply = self.runner.call(name, arguments, drive=drive)
        if used := reply.get("answers_used"):
            self.fail(
                "answer_used",
                f"your own {self.exercise.name}",
                f"a call of {used[0]}",
                "That name is closed here: it is what this exercise asks you to write.",
            )
        self.evaluated_at = reply.get("evaluated_at", [])
        self.n_calls = reply.get("n_calls", [])
        return reply

    def _unchanged(self, arguments: list, after: list) -> None:
        before = leaves(arguments, np.ndarray)
        same = len(before) == len(after) and all(
            isinstance(b, np.ndarray) and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
            for a, b in zip(before, after, strict=True)
        )
        if not same:
            self.fail(
                "changed_input",
                "arguments that are left as they were",
                "an argument was written to",
                "Make a new array instead of working in place: the caller still needs its own.",
            )

    # ---- comparing ------------------------------------------------------------------------

    def fail(
        self,
        key: str,
        expected: str,
        got: str,
        attempt: str,
        *,
        where: str | None = None,
        full: str = "",
    ) -> NoReturn:
        """Fail the check with a message."""
        where = where or self.runner.line_of(self.exercise.name)
        raise Failed(Message(key, self.given, expected, got, where, attempt, full))

    def close(
        self,
        got: Any,
        expected: Any,
        *,
        attempt: str,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        mistakes: Sequence[Mistake] = (),
        what: str = "",
    ) -> None:
        """Fail unless `got` equals `expected` (numbers or arrays) within the tolerances.

        A `mistake` whose value `got` equals gives the message its key and its Try; without one
        the key is `none`, `type`, `shape`, `nan` or `value`.
        """
        prefix = f"{what} = " if what else ""
        expected_text = prefix + show(expected)
        if got is None:
            self.none(expected_text)
        if isinstance(got, Other | str | list | tuple | dict | bool):
            self.fail(
                "type",
                expected_text,
                f"{prefix}{show(got)}, a {type_name(got)}",
                f"Return {'an array' if np.ndim(expected) else 'a number'}.",
            )
        if type(got) is int and abs(got) >= HUGE:
            self.fail("value", expected_text, f"{prefix}a huge integer", attempt)
        if agree(got, expected, rtol=rtol, atol=atol):
            return
        close, tiny = max(rtol, 1e-6), min(atol, 1e-10)  # a 0 must not pass for a small mistake
        for mistake in mistakes:
            if agree(got, mistake.value, rtol=close, atol=tiny):
                self.fail(mistake.key, expected_text, prefix + show(got), mistake.attempt)
        if np.shape(got) != np.shape(expected):
            self.fail(
                "shape",
                f"{prefix}an array of shape {np.shape(expected)}",
                prefix + show(got),
                "Compare the shapes: which step changes it?",
            )
        kind, wanted = np.asarray(got).dtype.kind, np.asarray(expected).dtype.kind
        if kind != wanted and (kind in "bc" or wanted == "b"):
            self.fail(
                "type",
                expected_text,
                f"{prefix}{show(got)}, of dtype {np.asarray(got).dtype}",
                "Reals, complex numbers and bools differ. Which step turns one into another?",
            )
        if np.isnan(got).any() and not np.isnan(expected).any():
            where_nan = "" if np.ndim(got) == 0 else f", first at {first(np.isnan(got))}"
            self.fail(
                "nan",
                expected_text,
                f"{prefix}{show(got)}{where_nan}",
                "Which step gives nan here? Look for 0/0, 0*inf and powers of negatives.",
            )
        entries = worst(got, expected, rtol, atol)
        self.fail("value", expected_text, prefix + show(got) + entries, attempt)

    def none(self, expected: str) -> NoReturn:
        """Fail because the function gave None: it printed, or forgot `return`."""
        if printed := self.runner.printed().strip():
            self.fail(
                "printed",
                expected,
                f"None (and printed: {shorten(printed, 60, placeholder=' …')})",
                "print shows a value to a person; return hands it back to the caller.",
            )
        attempt = "Does every path end in return? (list.sort, .reverse and .append give None.)"
        self.fail("none", expected, "None", attempt)

    def pair(self, got: Any, n: int, names: str) -> tuple:
        """Fail unless `got` is a tuple or list of n values; return it as a tuple."""
        if got is None:
            self.none(f"{n} values: {names}")
        if not isinstance(got, tuple | list) or len(got) != n:
            self.fail(
                "count",
                f"{n} values: {names}",
                show(got),
                f"Return one value for each of {names}, in this order.",
            )
        return tuple(got)

    def dtype(self, got: Any, expected: Any, attempt: str) -> None:
        """Fail unless `got` has this dtype."""
        found = getattr(got, "dtype", None)
        if found != np.dtype(expected):
            name = type_name(got) if found is None else str(found)
            self.fail("dtype", f"a {np.dtype(expected)}", f"{show(got)}, a {name}", attempt)

    def _frame(self, raised: dict) -> str:
        if not raised["frames"]:
            return self.runner.line_of(self.exercise.name)
        line, function, text = raised["frames"][-1]
        place = self.runner.line_of("").partition(":")[0]
        return f"{place}:{line}{f', in {function}' if function else ''}\n  {text}"
