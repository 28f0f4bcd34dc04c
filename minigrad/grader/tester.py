"""Gives checks their tools: call the learner's function, compare, explain."""

from __future__ import annotations

import copy
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any, NoReturn, Protocol

import numpy as np

from minigrad.grader.compare import HUGE, agree, comparable, first, type_name, worst
from minigrad.grader.formula import Formula
from minigrad.grader.message import (
    Failed,
    Message,
    a_kind,
    digits_to_tell,
    show,
    show_call,
    show_typed,
)
from minigrad.grader.samples import odd_input
from minigrad.grader.signature import differing
from minigrad.grader.spec import Exercise
from minigrad.grader.translate import explain_raised, is_stub
from minigrad.grader.wire import Other, changed, leaves, memory_of


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people really give: its value, and what to say about it."""

    key: str
    value: Any
    attempt: str


MAX_KEPT = 64 * 2**20  # bytes of replies kept for one check
COMPARED = {"arguments_after", "earlier"}  # fields of a reply, not kept once they were right
KEPT = (
    "As the first call, the same one gives the right answer. What outlives a call in your code: a "
    "default argument, a global, an attribute of a class?"
)


@dataclass
class Survey:
    """Collects from answers to all inputs of a check what speaks for and against each mistake.

    Attributes:
        wrong: for each wrong answer the input, which value it is (such as "new_p"), and the keys of
            the mistakes that would give it.
        refuted: keys of the mistakes that would have given another answer somewhere.
        suspects: keys of the mistakes to look for.
    """

    suspects: frozenset[str] = frozenset()
    wrong: list[tuple[str, str, set[str]]] = field(default_factory=list)
    refuted: set[str] = field(default_factory=set)

    def confirms(self, key: str) -> bool:
        """Return whether this mistake gives all answers, and more than one of them is wrong."""
        about = {what for _, what, keys in self.wrong if key in keys}
        answers = [(given, keys) for given, what, keys in self.wrong if what in about]
        fits = key not in self.refuted and all(key in keys for _, keys in answers)
        return fits and len({given for given, _ in answers}) > 1


class Runner(Protocol):
    """Runs the learner's code: in a worker process, or in this one (`check(function)`).

    driven: whether a check relies on measurements made in the learner's process.
    """

    driven: bool

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict: ...

    def get(self, name: str) -> Any: ...

    def line_of(self, name: str) -> str: ...

    def printed(self) -> str: ...

    def source(self) -> str: ...


class Tester:
    """Passed to each check of an exercise as `t`.

    Attributes:
        random: a NumPy Generator for numbers; seeded by the run's seed and the check's name.
        fixed: a NumPy Generator for shapes, graphs and programs, which decide whether a mistake
            shows; seeded by the check's name alone, so that no seed passes what another refuses.
        replies: the replies of the learner's code to this check so far, to replay them; none once
            they take more than MAX_KEPT.
        evaluated_at: per formula of the last call, the points at which it was evaluated.
        n_calls: per formula of the last call, how often it was called.
        given: what the message's first part says; set by `call`, or by the check.
        about: the function whose line messages show: the exercise's, or a "Class.method", say.
        survey: if set, `close` records a wrong number here and goes on instead of failing.
    """

    def __init__(
        self,
        exercise: Exercise,
        check_name: str,
        runner: Runner,
        seed: int,
        survey: Survey | None = None,
    ) -> None:
        self.exercise = exercise
        self.survey = survey
        self.runner = runner
        name = zlib.crc32(f"{exercise.id}.{check_name}".encode())
        self.random = np.random.default_rng([abs(seed), name])
        self.fixed = np.random.default_rng(name)
        self.replies: list[dict] = []
        self._room = MAX_KEPT  # bytes left for replies
        self._evaluated_at: list[list[Any]] = []
        self._n_calls: list[int] = []
        self.given = ""
        self._in_float64 = False
        self._returned: Any = None  # of the last call
        self._arguments: list = []  # of the last call
        self.about = exercise.name

    # ---- asking ---------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the learner's function and return its result.

        Fails the check if it raises, or writes into its arguments or into arrays that the previous
        call returned.
        """
        self.given = show_call(name, list(arguments))
        floats = [*leaves(arguments, np.ndarray), *leaves(arguments, np.floating)]
        kinds = {one.dtype for one in floats if one.dtype.kind == "f"}
        self._in_float64 = kinds == {np.dtype(np.float64)} or not kinds
        reply = self._ask(name, list(arguments))
        if "raised" in reply:
            self._explain(reply["raised"])
        self._unchanged(list(arguments), reply)
        self._returned = reply["ok"]
        return reply["ok"]

    def drive(self, name: str, *arguments: Any, given: str) -> Any:
        """Call a function of the lesson's driver on the learner's module and return its result.

        The driver (`driver.py`, `engine_driver.py` for exercises that need the engine) runs in the
        learner's process as `name(mine, *arguments)`. It builds what cannot be sent, such as graphs
        and classes, and returns plain data, as untrusted as any answer.

        Args:
            name: the driver's function.
            arguments: plain data and arrays.
            given: what the message's first part says.
        """
        self.given, self._in_float64 = given, False
        reply = self._ask(name, list(arguments), drive=True)
        if "raised" in reply:
            self._explain(reply["raised"], driven=True)
        return reply["ok"]

    def _explain(self, raised: dict, *, driven: bool = False) -> NoReturn:
        if is_stub(raised) and raised["n_frames"] <= 1:
            self.fail(
                "stub",
                self.exercise.returns,
                "nothing yet: this part is still a stub",
                "Replace the line that raises NotImplementedError by your own code.",
                where=self._frame(raised),
            )
        self._fits_the_call(raised)
        key, got, attempt = explain_raised(raised, odd_input(self._arguments))
        if driven and key == "raised" and not raised["n_frames"]:
            attempt = "What came back is not of the form that the docstring states. Compare them."
        where = self._frame(raised)
        self.fail(key, self.exercise.returns, got, attempt, where=where, full=raised["full"])

    def _fits_the_call(self, raised: dict) -> None:
        """Fail if a call showed that the learner's parameters are not the stub's."""
        exercise = self.exercise
        stem = exercise.lesson.stem
        if difference := differing(raised, self.runner.source(), exercise.name, stem):
            name, wanted, got = difference
            self.fail(
                "signature",
                f"the parameters of the stub, {wanted}",
                f"{got}\n{raised['type']}: {raised['text']}",
                f"The parameters of `def` are not those of the stub, with which {name} is called. "
                "Bring them back.",
                where=self.runner.line_of(name),
                full=raised["full"],
            )

    def raises(self, name: str, *arguments: Any, expected: str = "an error") -> dict:
        """Call the learner's function; return the description of what it raises, or else fail.

        `expected` names the error in words, such as "a ValueError". The description's `kinds` are
        the names of the exception's classes, the most derived first.
        """
        self.given = show_call(name, list(arguments))
        reply = self._ask(name, list(arguments))
        if "raised" not in reply:
            attempt = (
                "These make no sense, and were taken for some that do. How are they told apart?"
            )
            if isinstance(reply["ok"], Other) and reply["ok"].type_name.endswith("Error"):
                attempt = "The error was returned, like any value. How is it raised?"
            self.fail("did_not_raise", expected, show(reply["ok"]), attempt)
        self._fits_the_call(reply["raised"])
        return reply["raised"]

    def get(self, name: str) -> Any:
        """Return the value of a name in the learner's file, None if it has no such name.

        Arrays and huge integers arrive as `Other`, so that a check may compare the value with `==`
        and `in`.
        """
        self.given = f"the value of {name}"
        return comparable(self.runner.get(name))

    def formula(self, text: str, **numbers: float) -> Formula:
        """Return a formula with `{names}` replaced by numbers, rounded as messages show them."""
        shown = {name: f"{value:.3g}" for name, value in numbers.items()}
        return Formula(text.format(**shown).replace("+ -", "- "))

    def _ask(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        self._arguments = arguments
        reply = self.runner.call(name, arguments, drive=drive)
        self._keep(reply)
        if used := reply.get("answers_used"):
            self.fail(
                "answer_used",
                f"your own {self.exercise.name}",
                f"a call of {used[0]}",
                "That name is closed here: the exercise asks for a solution without it.",
            )
        self._evaluated_at = reply.get("evaluated_at", [])
        self._n_calls = reply.get("n_calls", [])
        return reply

    @property
    def evaluated_at(self) -> list:
        """Return each formula's points of evaluation, trusting the learner's process."""
        self.runner.driven = True
        return self._evaluated_at

    @property
    def n_calls(self) -> list[int]:
        """Return each formula's number of calls, trusting the learner's process."""
        self.runner.driven = True
        return self._n_calls

    def _keep(self, reply: dict) -> None:
        kept = {key: value for key, value in reply.items() if key not in COMPARED}
        self._room -= memory_of(kept)
        self.replies.append(kept)
        if self._room < 0:
            self.replies.clear()

    def _unchanged(self, arguments: list, reply: dict) -> None:
        if changed(arguments, reply["arguments_after"]):
            self.fail(
                "changed_input",
                "arguments that are left as they were",
                "an array, a list or a dict among them was written to",
                "Make a new one instead of working in place: the caller still needs its own.",
            )
        if reply.get("earlier") is not None and changed(self._returned, reply["earlier"]):
            self.fail(
                "changed_result",
                "results that stay as they were returned",
                "this call wrote into what the call before it had returned",
                "Who owns the memory that you return? Make a new array in each call.",
            )

    def mistakes(self, *arguments: Any) -> Iterator[Mistake]:
        """Yield the answer of each wrong version of the solution to these arguments.

        Computes each only when it is asked for: a right answer needs none of them.
        """
        for one in self.exercise.wrong_versions:
            if not one.attempt or (self.survey and one.key not in self.survey.suspects):
                continue
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    value = one.function(*copy.deepcopy(arguments))
            except Exception:  # then the learner's answer is not this mistake
                continue
            yield Mistake(one.key, value, one.attempt)

    def compare(
        self, right: Any, *arguments: Any, attempt: str, given: str = "", **closeness: Any
    ) -> Any:
        """Call the exercise's function; unless it returns `right`, fail and name the mistake.

        `given` describes the input where that is clearer than the call. The other keywords are
        those of `close`. Returns the function's result.
        """
        got = self.call(self.exercise.name, *arguments)
        self.given = given or self.given
        mistakes = self.mistakes(*arguments)
        self.close(got, right, attempt=attempt, mistakes=mistakes, **closeness)
        return got

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
        where = where or self.runner.line_of(self.about)
        raise Failed(Message(key, self.given, expected, got, where, attempt, full))

    def close(
        self,
        got: Any,
        expected: Any,
        *,
        attempt: str,
        rtol: float = 1e-6,
        atol: float = 1e-9,
        mistakes: Iterable[Mistake] = (),
        what: str = "",
        key: str = "value",
    ) -> None:
        """Fail unless `got` equals `expected` (numbers or arrays) within the tolerances.

        If `got` equals the value of one of `mistakes`, that one gives the message its key and its
        Try line, provided that the answers to the check's other inputs are also that mistake's
        (`run.confirmed`). Otherwise the key is `none`, `type`, `shape` or `nan`, and for a wrong
        number `key`. A right number of a narrower dtype than all arrays that went in also fails
        (`dtype`).
        """
        prefix = f"{what} = " if what else ""
        expected_text = prefix + show(expected)
        if got is None:
            self.none(expected_text)
        if isinstance(got, Other | str | list | tuple | dict | bool):
            self.fail(
                "type",
                expected_text,
                f"{prefix}{show_typed(got)}",
                f"Return {'an array' if np.ndim(expected) else 'a number'}.",
            )
        if type(got) is int and abs(got) >= HUGE:
            self.fail("value", expected_text, f"{prefix}a huge integer", attempt)
        close, tiny = max(rtol, 1e-10), min(atol, 1e-10)  # else 0 equals a mistake's small value
        is_right = agree(got, expected, rtol=rtol, atol=atol)
        if is_right and self.survey is None:
            self.wide_enough(got, what)
            return
        mistakes = list(mistakes)
        made = [one for one in mistakes if agree(got, one.value, rtol=close, atol=tiny)]
        if self.survey is not None:
            keys = {one.key for one in made}
            self.survey.refuted |= {one.key for one in mistakes} - keys
            if not is_right:
                self.survey.wrong.append((self.given, what, keys))
        else:
            differs = self._difference(got, expected, attempt, rtol, atol, prefix, key)
            digits = digits_to_tell(got, expected)
            wanted, text = (prefix + show(value, digits) for value in (expected, got))
            if wanted == text:  # they differ behind what is shown
                text = differs.got
            said = replace(differs, expected=wanted, got=text)
            raise Failed(differs, [replace(said, key=m.key, attempt=m.attempt) for m in made])

    def wide_enough(self, got: Any, what: str = "") -> None:
        """Fail if the last call's arguments are all float64 and a result has fewer digits."""
        dtype = got.dtype if isinstance(got, np.ndarray | np.generic) else np.dtype(object)
        if self._in_float64 and dtype.kind == "f" and dtype.itemsize < 8:
            name = f"{what}, " if what else ""
            lost = "float64 went in. Which step rounds it to fewer digits?"
            self.fail("dtype", f"{name}a float64", f"{name}a {dtype}", lost)

    def _difference(
        self, got: Any, expected: Any, attempt: str, rtol: float, atol: float, prefix: str, key: str
    ) -> Message:
        """Return the message for a wrong number or array whose mistake is unknown."""
        wanted, said = prefix + show(expected), prefix + show(got)
        kind, kind_wanted = np.asarray(got).dtype.kind, np.asarray(expected).dtype.kind
        if np.shape(got) != np.shape(expected):
            key, wanted = "shape", f"{prefix}an array of shape {np.shape(expected)}"
            attempt = (
                "Compare the shapes axis by axis: which one is wrong, and which step makes it?"
            )
        elif kind != kind_wanted and (kind in "bc" or kind_wanted == "b"):
            key, said = "type", f"{said}, of dtype {np.asarray(got).dtype}"
            attempt = "Reals, complex numbers and bools differ. Which step turns one into another?"
        elif np.isnan(got).any() and not np.isnan(expected).any():
            key = "nan"
            said += "" if np.ndim(got) == 0 else f", nan first at {first(np.isnan(got))}"
            attempt = (
                "Which step gives nan here? Look for 0/0, inf/inf, 0*inf, inf - inf and powers of "
                "negatives."
            )
        else:
            digits = digits_to_tell(got, expected)
            wanted, said = prefix + show(expected, digits), prefix + show(got, digits)
            said += worst(got, expected, rtol, atol)
        where = self.runner.line_of(self.about)
        return Message(key, self.given, wanted, said, where, attempt)

    def none(self, expected: str) -> NoReturn:
        """Fail because the function returned None: it printed, or forgot `return`."""
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
        dtype = getattr(got, "dtype", None)
        if dtype != np.dtype(expected):
            name = type_name(got) if dtype is None else str(dtype)
            self.fail("dtype", f"a {np.dtype(expected)}", f"{show(got)}, {a_kind(name)}", attempt)

    def _frame(self, raised: dict) -> str:
        if not raised["frames"]:
            return self.runner.line_of(self.about)
        line, function, text = raised["frames"][-1]
        place = self.runner.line_of("").partition(":")[0]
        return f"{place}:{line}{f', in {function}' if function else ''}\n  {text}"
