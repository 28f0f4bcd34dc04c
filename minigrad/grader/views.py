"""Writes a `Result` for other programs: JSON, JUnit XML, Gradescope's results.json."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from minigrad.grader.report import message_lines
from minigrad.grader.result import SCHEMA_VERSION, CheckResult, ExerciseResult, Result


def as_json(result: Result) -> str:
    """Return the result as JSON; `schema_version` tells which fields it has."""
    return json.dumps(result.as_dict(), indent=1)


def _text(check: CheckResult, exercise: ExerciseResult) -> str:
    if check.status == "not_run":
        return "not run: see the first check of this exercise"
    return "\n".join(message_lines(check, exercise.id))


def junit(result: Result) -> str:
    """Return the result as JUnit XML.

    A suite per exercise, a case per check, points as properties.
    """
    root = ElementTree.Element("testsuites", name="minigrad")
    for exercise in result.exercises:
        failures = sum(check.status != "passed" for check in exercise.checks)
        suite = ElementTree.SubElement(
            root, "testsuite", name=exercise.id, tests=str(len(exercise.checks)),
            failures=str(failures), errors="0", time=f"{exercise.seconds:.3f}",
        )  # fmt: skip
        for check in exercise.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=exercise.id, name=check.name,
                time=f"{check.seconds:.3f}",
            )  # fmt: skip
            properties = ElementTree.SubElement(case, "properties")
            for name, value in (("points", check.points), ("max_points", check.of)):
                ElementTree.SubElement(properties, "property", name=name, value=str(value))
            if check.status != "passed":
                failure = ElementTree.SubElement(case, "failure", message=check.summary)
                failure.text = _text(check, exercise)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def gradescope(result: Result) -> dict:
    """Return the text that Gradescope reads from `/autograder/results/results.json`.

    Source: Gradescope's documentation of the autograder's output format.
    """
    tests = [
        {
            "name": f"{exercise.id}: {check.summary}",
            "number": f"{int(exercise.id[:2])}.{which}.{number}",
            "score": check.points,
            "max_score": check.of,
            "status": "passed" if check.status == "passed" else "failed",
            "output": "" if check.status == "passed" else _text(check, exercise),
            "visibility": "visible",
        }
        for which, exercise in enumerate(result.exercises, 1)
        for number, check in enumerate(exercise.checks, 1)
    ]
    return {
        "score": result.points,
        "execution_time": round(sum(exercise.seconds for exercise in result.exercises), 1),
        "output": f"{result.points} of {result.of} points",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"schema_version": SCHEMA_VERSION},
        "tests": tests,
    }
