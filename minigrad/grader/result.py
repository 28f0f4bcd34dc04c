"""Defines the result object; the terminal, the card and the JSON are views of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from minigrad.grader.message import Message

SCHEMA_VERSION = 1


@dataclass
class CheckResult:
    """One check: `passed`, `failed` (with a message) or `not_run` (its exercise gave no answer)."""

    name: str
    summary: str
    of: int
    status: str
    message: Message | None = None
    printed: str = ""
    seconds: float = 0.0
    without: tuple[str, ...] = ()  # the failed checks without which it earns nothing

    @property
    def points(self) -> int:
        """Return the points it earned: all or nothing."""
        return self.of if self.status == "passed" else 0


@dataclass
class ExerciseResult:
    """All checks of one exercise, with what the run cost."""

    id: str
    difficulty: int
    minutes: int
    checks: list[CheckResult] = field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    limits_missing: list[str] = field(default_factory=list)
    needs: str = "plain"
    fingerprint: str = ""
    uses: list[str] = field(default_factory=list)  # ids of other exercises that its code mentions
    driven: bool = False  # checks rest on what was measured in the learner's process
    loaded: bool = True  # False: the file itself stopped, so that no check could run

    @property
    def points(self) -> int:
        """Return the points that its checks earned."""
        return sum(check.points for check in self.checks)

    @property
    def of(self) -> int:
        """Return the points that could have been earned."""
        return sum(check.of for check in self.checks)

    @property
    def passed(self) -> bool:
        """Return whether every check passed."""
        return all(check.status == "passed" for check in self.checks)

    def leader_of(self, check: CheckResult) -> CheckResult | None:
        """Return the check whose failure explains this one's, None if it fails by itself.

        It follows the first failure if it earns nothing without others that failed, or if that
        failure was of the same kind, in the same function or line.
        """
        first = self.first_failure
        if check.status != "failed" or first is None or check is first:
            return None
        if check.without:
            return first
        if first.without:  # it shows another check's message, perhaps this one's
            return None
        ways = [(m.key, m.where) if (m := one.message) else None for one in (first, check)]
        return first if ways[0] == ways[1] else None

    @property
    def is_untouched(self) -> bool:
        """Return whether nothing has been written yet."""
        message = self.first_message
        return not self.points and message is not None and message.key in ("stub", "untouched")

    @property
    def first_message(self) -> Message | None:
        """Return the message of the first failed check, None if none failed."""
        return self.first_failure.message if self.first_failure else None

    @property
    def first_failure(self) -> CheckResult | None:
        """Return the first failed check, None if none failed."""
        return next((check for check in self.checks if check.status == "failed"), None)

    @property
    def speaking(self) -> CheckResult | None:
        """Return the check to show in full: the first that failed, else the first that printed."""
        return self.first_failure or next(
            (check for check in self.checks if check.printed.strip()), None
        )


@dataclass
class Result:
    """The result of grading some exercises with one seed."""

    seed: int
    exercises: list[ExerciseResult] = field(default_factory=list)
    file_hashes: dict[str, str] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """Return the points that all exercises earned."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def of(self) -> int:
        """Return the points that could have been earned."""
        return sum(exercise.of for exercise in self.exercises)

    @property
    def passed(self) -> bool:
        """Return whether everything passed."""
        return all(exercise.passed for exercise in self.exercises)

    def as_dict(self) -> dict:
        """Return the result as plain values, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "seed": self.seed,
            "points": self.points,
            "of": self.of,
            "exercises": [
                {
                    "id": exercise.id,
                    "points": exercise.points,
                    "of": exercise.of,
                    "difficulty": exercise.difficulty,
                    "minutes": exercise.minutes,
                    "seconds": exercise.seconds,
                    "compile_seconds": exercise.compile_seconds,
                    "limits_missing": exercise.limits_missing,
                    "needs": exercise.needs,
                    "driven": exercise.driven,
                    "checks": [
                        {
                            "name": check.name,
                            "summary": check.summary,
                            "status": check.status,
                            "points": check.points,
                            "of": check.of,
                            "message": check.message.as_dict() if check.message else None,
                            "printed": check.printed,
                            "seconds": check.seconds,
                        }
                        for check in exercise.checks
                    ],
                }
                for exercise in self.exercises
            ],
            "file_hashes": self.file_hashes,
        }
