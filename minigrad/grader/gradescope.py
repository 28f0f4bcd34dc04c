"""A result as Gradescope's `results.json`: a test a check, with its points and its message."""

from __future__ import annotations

from typing import Any

from minigrad.grader.report import message_lines
from minigrad.grader.result import CheckResult, Result


def as_gradescope(results: list[Result], missing: dict[str, int] | None = None) -> dict[str, Any]:
    """Return what Gradescope reads from `/autograder/results/results.json`.

    Args:
        results: what was graded.
        missing: by file that was not handed in: the points it could have earned.
    """
    exercises = [exercise for result in results for exercise in result.exercises]
    tests = [_test(check, exercise.id) for exercise in exercises for check in exercise.checks] + [
        {
            "name": name,
            "score": 0,
            "max_score": of,
            "status": "failed",
            "output": f"{name} was not handed in.",
            "visibility": "visible",
        }
        for name, of in (missing or {}).items()
    ]
    for number, test in enumerate(tests, 1):
        test["number"] = str(number)
    seeds = sorted({result.seed for result in results})
    return {
        "score": sum(test["score"] for test in tests),
        "execution_time": round(sum(exercise.seconds for exercise in exercises), 3),
        "output": f"seed {', '.join(map(str, seeds))}: `minigrad check --seed` repeats the inputs",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"seeds": seeds},
    }


def _test(check: CheckResult, exercise_id: str) -> dict[str, Any]:
    lines = [check.summary, *message_lines(check, exercise_id)]
    if check.status == "not_run":
        lines.append("not run: see the first check of this exercise")
    return {
        "name": f"{exercise_id}: {check.name}",
        "score": check.points,
        "max_score": check.of,
        "status": "passed" if check.status == "passed" else "failed",
        "output": "\n".join(lines),
        "visibility": "visible",
    }
