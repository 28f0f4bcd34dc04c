"""Grades exercises: a worker for each, checks in this process, points per check."""

from __future__ import annotations

import contextlib
import io
import math
import os
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from minigrad.grader.fingerprint import file_hash, fingerprint, used
from minigrad.grader.folder import driver_of
from minigrad.grader.launcher import GraderError, Server
from minigrad.grader.message import Failed, Message, begins
from minigrad.grader.reading import MAX_PARSED, UnreadableError, is_definition, line_of, read_source
from minigrad.grader.result import CheckResult, ExerciseResult, Result
from minigrad.grader.sandbox import OVER, Ended, Spent, Worker
from minigrad.grader.spec import Check, Exercise, Lesson
from minigrad.grader.tester import KEPT, Runner, Survey, Tester
from minigrad.grader.translate import explain_raised

MAX_RESTARTS = 2
KNOWN = ("ok", "arguments_after", "earlier", "evaluated_at", "n_calls")  # fields of a reply
MAX_FRAMES, MAX_TEXT, MAX_SAID = 100, 300, 4_000  # bounds on an exception's description
N_SURVEYED = 2  # seeds with which a mistake is looked for in all answers
# Variables that locate the cache of the kernels that the user's own processes compiled.
HOMES = ("MINIGRAD_CACHE", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")
# The Try line for each way in which a worker ends or gives no answer.
ENDED = {
    "time": "What makes each loop end? And how does its work grow with the input?",
    "compile_time": "Is a loop unrolled, or a type different at each call?",
    "exit": "Return a value instead of leaving: the caller goes on.",
    "killed": "It exceeded a limit (CPU, memory), or crashed the interpreter.",
    "budget": "This exercise, or those before it, took it all. Which of them loops for ever?",
    "files": "What is written there, and who reads it?",
    "garbled": "Leave file descriptors alone: answers are what functions return.",
    "unreadable": "Is what you return of the kind that the docstring says? If so, the check is at "
    "fault: please report it with this text.",
}


def new_seed() -> int:
    """Return a seed that is short enough to type."""
    return secrets.randbelow(90_000) + 10_000


def secret_seed() -> int:
    """Return a seed that nobody can guess, to grade files whose authors would like to know it."""
    return secrets.randbits(63)


@dataclass
class Submission:
    """A learner's file, read once: grades, hashes and messages all use this copy.

    At `until`, a time of `time.monotonic`, all that grades it ends.
    """

    path: Path
    source: str
    # Maps an exercise's `needs` to the message that the file did not load in time, since the next
    # exercise would wait as long to get the same.
    endless: dict[str, Message] = field(default_factory=dict)
    unreadable: UnreadableError | None = None
    until: float = math.inf

    @classmethod
    def read(cls, path: Path, within: Path | None = None, *, until: float = math.inf) -> Submission:
        """Read the file; `within` as in `read_source`."""
        try:
            return cls(path, read_source(path, within), until=until)
        except UnreadableError as error:
            source = f"raise SyntaxError({str(error)!r})\n"
            return cls(path, source, unreadable=error, until=until)

    @property
    def shown(self) -> str:
        """Return the file's folder and name, as messages show them."""
        return f"{self.path.absolute().parent.resolve().name}/{self.path.name}"

    def fingerprint(self, exercise: Exercise) -> str:
        """Return the fingerprint to save with a grade of this exercise."""
        if len(self.source) <= MAX_PARSED:
            with contextlib.suppress(RecursionError, MemoryError):
                return fingerprint(self.source, exercise.name, exercise.lesson.exercises)
        return file_hash(f"{exercise.name}\n{self.source}")

    def uses(self, exercise: Exercise) -> list[str]:
        """Return the ids of the other exercises that this one's code mentions."""
        known = exercise.lesson.exercises
        if len(self.source) <= MAX_PARSED:
            with contextlib.suppress(RecursionError, MemoryError):
                return [known[name].id for name in used(self.source, exercise.name, known)]
        return []


class WorkerRunner:
    """Runs calls in a worker, which it starts at the first call and whenever the last one ended."""

    def __init__(self, server: Server, submission: Submission, exercise: Exercise) -> None:
        self.server = server
        self.submission = submission
        self.exercise = exercise
        self.worker: Worker | None = None
        self.n_calls = 0  # of the present worker
        self.n_ended = 0
        self.spent = Spent(until=submission.until)
        self.compile_seconds = 0.0
        self.limits_missing: list[str] = []
        self.driven = False

    def start(self) -> Worker:
        """Return a worker that has loaded the file; start one if there is none."""
        if self.worker is None:
            self.n_calls = 0
            self.worker = Worker(
                self.server,
                self.submission.source,
                self.submission.shown,
                limits=self.exercise.limits,
                driver=driver_of(self.exercise),
                engine=engine_of(self.exercise),
                answers=self.exercise.answers,
                closed=(str(self.submission.path.absolute().parents[1] / "solutions"),),
                spent=self.spent,
            )
            self.limits_missing = self.worker.limits_missing
        return self.worker

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        """Return the worker's reply with its fields checked, since it is untrusted."""
        self.driven = self.driven or drive
        reply = self.start().call(name, arguments, drive=drive)
        self.n_calls += 1
        self.compile_seconds += reply.compile_seconds
        content = reply.content
        used = content.get("answer_calls")
        used = [str(answer) for answer in used if used[answer]] if isinstance(used, dict) else []
        if "raised" in content:
            return {"raised": checked_raised(content["raised"]), "answers_used": used}
        well_formed = (
            "ok" in content
            and isinstance(content.get("arguments_after"), list)
            and isinstance(content.get("evaluated_at"), list)
            and isinstance(content.get("n_calls"), list)
        )
        if not well_formed:
            raise malformed()
        known = {key: content[key] for key in KNOWN if key in content}
        return {**known, "answers_used": used}

    def get(self, name: str) -> Any:
        """Return the value of a name in the file."""
        return self.start().get(name)

    def line_of(self, name: str) -> str:
        """Return the function, method or class and where it begins; for a value its line."""
        loaded = self.worker.loaded.get("ok") if self.worker else None
        lines = loaded.get("lines") if isinstance(loaded, dict) else None
        line = lines.get(name) if isinstance(lines, dict) else None
        if isinstance(line, int):
            return begins(name, f"{self.submission.shown}:{line}")
        line = line_of(self.submission.source, name)
        if not line:
            return self.submission.shown
        place = f"{self.submission.shown}:{line}"
        return begins(name, place) if is_definition(self.submission.source, name) else place

    def printed(self) -> str:
        """Return what the file printed since the last time."""
        return self.worker.printed() if self.worker else ""

    def source(self) -> str:
        """Return the text of the file."""
        return self.submission.source

    def close(self) -> None:
        """End the worker."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None


class GotPastError(Exception):
    """Raised when a check accepts the call that it refused before."""


class AloneRunner:
    """Replays a check's earlier replies and makes the last call in a new worker."""

    driven = False  # the run that got these replies has said so

    def __init__(self, runner: WorkerRunner, replies: list[dict]) -> None:
        self.runner = runner
        self.replies = replies[:-1]
        self.asked = False
        self.get, self.line_of = runner.get, runner.line_of
        self.printed, self.source = runner.printed, runner.source

    def call(self, name: str, arguments: list, *, drive: bool = False) -> dict:
        """Return the next reply; raise GotPastError at the call after the last."""
        if self.replies:
            # The fields left out were right, since the check went on to a later call.
            return {"arguments_after": arguments, "earlier": None, **self.replies.pop(0)}
        if self.asked:
            raise GotPastError
        self.asked = True
        fresh = WorkerRunner(self.runner.server, self.runner.submission, self.runner.exercise)
        fresh.spent = self.runner.spent  # one budget for the exercise
        try:
            return fresh.call(name, arguments, drive=drive)
        finally:
            fresh.close()


def engine_of(exercise: Exercise) -> dict | None:
    """Return what the gate needs to open the engine, None if it stays closed."""
    if exercise.needs != "engine":
        return None
    environment = {name: os.environ[name] for name in HOMES if name in os.environ}
    return {"environment": environment}


def malformed() -> Ended:
    """Return the error for a reply that no genuine worker sends."""
    return Ended("garbled", "its reply does not have the form of a worker's reply")


def checked_raised(raised: Any) -> dict:
    """Return an untrusted description of an exception with fields of the right types."""
    if not isinstance(raised, dict):
        raise malformed()
    kinds, given_frames = raised.get("kinds"), raised.get("frames")
    if not isinstance(kinds, list) or not isinstance(given_frames, list):
        raise malformed()
    frames = []
    for frame in given_frames[:MAX_FRAMES]:
        if isinstance(frame, list) and len(frame) == 3:
            line, function, text = frame
            frames.append((int(line) if isinstance(line, int) else 0, str(function), str(text)))
    return {
        "type": str(raised.get("type")),
        "kinds": [str(kind) for kind in kinds[:MAX_FRAMES]],
        "text": str(raised.get("text"))[:MAX_TEXT],
        "said": str(raised.get("said") or "")[:MAX_SAID],
        "notes": str(raised.get("notes") or "")[:MAX_TEXT],
        "full": str(raised.get("full") or ""),
        "frames": frames,
        "n_frames": len(frames),
    }


def grade_exercise(
    server: Server,
    exercise: Exercise,
    submission: Submission,
    seed: int,
    *,
    until_failure: bool = False,
) -> ExerciseResult:
    """Run all checks of one exercise on the learner's file, in a worker of their own.

    With `until_failure`, skip the checks after the first that fails.
    """
    runner = WorkerRunner(server, submission, exercise)
    result = ExerciseResult(
        exercise.id, exercise.difficulty, exercise.minutes, needs=exercise.needs
    )
    started = time.perf_counter()
    try:
        blocked = _load(runner, exercise)
        result.loaded = blocked is None or blocked.key in ("missing", "budget")
        for check in exercise.checks:
            if blocked is not None:
                outcome = CheckResult(check.name, check.summary, check.points, "not_run")
                if not result.checks:
                    outcome.status, outcome.message = "failed", blocked
            else:
                outcome = run_check(exercise, check, runner, seed)
                outcome.printed = outcome.printed or runner.printed()
                runner.n_ended += runner.worker is None
                if outcome.message is not None and (
                    outcome.message.key in ("stub", "other_stub") or runner.n_ended >= MAX_RESTARTS
                ):
                    blocked = outcome.message  # the other checks would say the same
            result.checks.append(outcome)
            if until_failure and outcome.status != "passed":
                break
    finally:
        runner.close()
    if not until_failure:
        hold_back(exercise, result.checks)
    result.fingerprint, result.uses = submission.fingerprint(exercise), submission.uses(exercise)
    result.seconds = time.perf_counter() - started
    result.compile_seconds = runner.compile_seconds
    result.limits_missing, result.driven = runner.limits_missing, runner.driven
    return result


def _load(runner: WorkerRunner, exercise: Exercise) -> Message | None:
    """Start the worker; return one message for all checks if the file cannot be graded."""
    shown, endless = runner.submission.shown, runner.submission.endless
    if time.monotonic() >= runner.submission.until:
        return _ended_message(Ended("budget", OVER), f"grading {exercise.id}", shown)
    if exercise.needs in endless:
        return endless[exercise.needs]
    given = f"loading {shown}"
    if fault := runner.submission.unreadable:
        where = f"{shown}:{fault.line}\n  {fault.shown[:200]}" if fault.line else shown
        return Message("encoding", given, "a file that loads", str(fault), where, fault.attempt)
    try:
        loaded = runner.start().loaded
        if "raised" in loaded:
            raised = checked_raised(loaded["raised"])
            key, got, attempt = explain_raised(raised)
            where = shown
            if raised["frames"]:
                line, _, text = raised["frames"][-1]
                where = f"{shown}:{line}\n  {text}"
            return Message(
                key, given, "a file that loads", got, where, attempt, full=raised["full"]
            )
        content = loaded.get("ok")
        names = content.get("names") if isinstance(content, dict) else None
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            raise malformed()
    except Ended as ended:
        runner.close()
        message = _ended_message(ended, given, shown)
        if ended.key in ("time", "compile_time"):
            endless[exercise.needs] = message
        return message
    if exercise.name not in names:
        return Message(
            "missing",
            given,
            f"a definition of {exercise.name}",
            "no such name",
            shown,
            f"Was it renamed or deleted? `minigrad reset {runner.submission.path.stem[:2]}` "
            "brings the file back; yours is kept.",
        )
    return None


def _ended_message(ended: Ended, given: str, where: str) -> Message:
    return Message(ended.key, given, "an answer", str(ended), where, ENDED[ended.key])


def run_check(exercise: Exercise, check: Check, runner: Runner, seed: int) -> CheckResult:
    """Run one check; turn its failure, or the worker's end, into a message."""
    tester = Tester(exercise, check.name, runner, seed)
    outcome = CheckResult(check.name, check.summary, check.points, "passed")
    started = time.perf_counter()
    try:
        check.run(tester)
    except Failed as failed:
        outcome.status = "failed"
        if is_right_alone(failed, check, tester, seed):
            outcome.message = replace(failed.message, key="kept", attempt=KEPT)
        else:
            outcome.message = confirmed(failed, exercise, check, runner, seed)
    except Ended as ended:
        where = runner.line_of(exercise.name)
        if isinstance(runner, WorkerRunner):
            outcome.printed = runner.printed()
            runner.close()
        outcome.status = "failed"
        outcome.message = _ended_message(ended, tester.given, where)
    except GraderError:
        raise
    except Exception as error:  # an answer in a form that no genuine worker sends
        if not isinstance(runner, WorkerRunner):
            message = f"the check {exercise.id}.{check.name} broke: {type(error).__name__}: {error}"
            raise GraderError(message) from error
        said = f"{type(error).__name__}: {error}"[:200]
        broke = Ended("unreadable", f"the check cannot read it: {said}")
        outcome.status = "failed"
        outcome.message = _ended_message(broke, tester.given, runner.line_of(exercise.name))
    outcome.seconds = time.perf_counter() - started
    return outcome


def is_right_alone(failed: Failed, check: Check, tester: Tester, seed: int) -> bool:
    """Return whether the call that a check refused is right as a worker's first call."""
    runner = tester.runner
    if not isinstance(runner, WorkerRunner) or runner.n_calls < 2 or not tester.replies:
        return False
    if runner.spent.seconds > tester.exercise.limits.total_seconds / 2:
        return False
    if failed.message.key in ("changed_result", "kept"):  # these say so themselves
        return False
    alone = AloneRunner(runner, tester.replies)
    try:
        check.run(Tester(tester.exercise, check.name, alone, seed))
    except GotPastError:
        return True
    except Exception:  # it fails again, or its worker ends
        return False
    return alone.asked


def confirmed(
    failed: Failed, exercise: Exercise, check: Check, runner: Runner, seed: int
) -> Message:
    """Return a failed check's message; name a mistake only if all answers show it.

    One wrong number fits many mistakes. So the check runs again to its end, with other random
    inputs as well, and the answers are compared with those that the mistake would give.
    """
    if not failed.named:
        return failed.message
    survey = Survey(frozenset(one.key for one in failed.named))
    said = io.StringIO()  # a function in this process would print everything again
    for other in range(N_SURVEYED):
        with contextlib.redirect_stdout(said):
            try:
                check.run(Tester(exercise, check.name, runner, seed + other, survey))
            except Ended:
                if isinstance(runner, WorkerRunner):
                    runner.close()
                break
            except Exception:  # a wrong answer, after which the check cannot continue
                continue
    return next((one for one in failed.named if survey.confirms(one.key)), failed.message)


def hold_back(exercise: Exercise, outcomes: list[CheckResult]) -> None:
    """Fail each check that passed while all of its `only_with` checks failed.

    Its message is that of the first of these, which must be fixed first.
    """
    by_name = {outcome.name: outcome for outcome in outcomes}
    passed = {outcome.name for outcome in outcomes if outcome.status == "passed"}
    for check in exercise.checks:
        if not check.only_with or check.name not in passed or passed & {*check.only_with}:
            continue
        others = [by_name[name] for name in check.only_with]
        said = next(one.message for one in [*others, *outcomes] if one.message is not None)
        given = f"{others[0].name}, as {check.name} earns nothing without it: {said.given}"
        outcome = by_name[check.name]
        outcome.status, outcome.message = "failed", replace(said, given=given)
        outcome.without = check.only_with


def grade(
    server: Server,
    lesson: Lesson,
    path: Path,
    *,
    names: list[str] | None = None,
    seed: int | None = None,
    within: Path | None = None,
    until: float = math.inf,
    around: Callable[[Exercise], AbstractContextManager] = contextlib.nullcontext,
) -> Result:
    """Grade all exercises of a lesson's file, or those named.

    `within` as in `read_source`, `until` as in `Submission`. Each exercise is graded inside the
    context `around(exercise)`.
    """
    submission = Submission.read(path, within, until=until)
    result = Result(new_seed() if seed is None else seed)
    result.file_hashes[path.stem] = file_hash(submission.source)
    for name, exercise in lesson.exercises.items():
        if names is None or name in names:
            with around(exercise):
                graded = grade_exercise(server, exercise, submission, result.seed)
            result.exercises.append(graded)
    return result
