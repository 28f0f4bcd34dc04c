"""Checks a bug hunt's diagnosis, BUG: a pair such as ("stage", 2), or a dict of several parts.

In a dict, no two parts have the same answer, so the same text for several of them earns nothing for
any: whoever writes one letter everywhere found nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from minigrad.grader.message import show
from minigrad.grader.spec import Check, Exercise
from minigrad.grader.tester import Tester
from minigrad.grader.wire import Other


@dataclass(frozen=True)
class Part:
    """One key of BUG.

    Attributes:
        question: what the part names, such as "the line that overwrites it".
        right: the right text.
        nudges: for wrong texts, the Try line that speaks against each.
        known: all texts to choose from.
        form: what messages call these texts, such as "a letter, A to F".
        start: the Try line while nothing is written.
        general: the Try line for wrong texts without a nudge.
    """

    question: str
    right: str
    nudges: Mapping[str, str]
    known: Sequence[str]
    form: str
    start: str
    general: str


def diagnose(exercise: Exercise, parts: Mapping[str, Part], example: str) -> None:
    """Add a check of one point for each part of the diagnosis.

    example: a BUG of the right form, for messages.
    """
    for name, part in parts.items():
        run = partial(check_part, parts=parts, name=name, example=example)
        exercise.checks.append(Check(f"diagnosis_{name}", 1, f"BUG names {part.question}.", run))


def check_part(t: Tester, parts: Mapping[str, Part], name: str, example: str) -> None:
    """Fail unless one part of BUG is right and differs from all others; case does not matter."""
    part = parts[name]
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    said = bug.get(name) if isinstance(bug, dict) else None
    t.given = f'BUG["{name}"]: {part.question}'
    if said is None and isinstance(bug, dict) and name in bug:
        t.fail("untouched", part.form, "None", part.start, where=where)
    text = next((one for one in part.known if is_same(said, one)), None)
    if text is None:
        got = show(said if said is not None else bug)
        t.fail("form", part.form, got[:150], f"First the form: {example}.", where=where)
    same = [other for other in bug if other in parts and is_same(bug[other], text)]
    if len(same) > 1:
        t.fail(
            "same_text",
            f"{part.form}, of its own: no two parts have the same",
            f"{text} for {' and '.join(f'{one!r}' for one in same)}",
            "Only one of them can be right, so neither counts. Leave None where you do not know.",
            where=where,
        )
    if text != part.right:
        attempt = part.nudges.get(text, part.general)
        not_it(t, "another one", text, attempt)


def named_place(t: Tester, word: str, count: int, whole: str, start: str) -> int:
    """Return the place from a BUG such as ("stage", 2); fail if it has another form.

    Args:
        word: what has the places, such as "stage".
        count: how many places there are.
        whole: what the place counts in, such as "STAGES".
        start: the Try line while nothing is written.
    """
    bug = t.get("BUG")
    is_pair = isinstance(bug, tuple | list) and len(bug) == 2 and bug[0] == word
    place, last = bug[1] if is_pair else None, count - 1
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place <= last:
        key, attempt = "form", f'First the form: write the text "{word}" and a place, 0 to {last}.'
        if is_pair and place is None:
            key, attempt = "untouched", start
        elif isinstance(place, str):
            key = "named"
            attempt = f"The {word} is meant by its place in {whole}, 0 to {last}, not by its name."
        wanted = f'("{word}", 0), ("{word}", 1), … or ("{word}", {last})'
        t.fail(key, wanted, show(bug), attempt, where=t.runner.line_of("BUG"))
    return place


def named_one(t: Tester, word: str, names: Sequence[str], start: str) -> str:
    """Return the name from a BUG such as ("op", "mul"); fail if it has another form.

    Args:
        word: what the names name, such as "op".
        names: all names to choose from.
        start: the Try line while nothing is written.
    """
    bug = t.get("BUG")
    is_pair = isinstance(bug, tuple | list) and len(bug) == 2 and bug[0] == word
    said = bug[1] if is_pair else None
    name = next((one for one in names if is_same(said, one)), None)
    if name is None:
        key, attempt = "form", f'First the form: write the text "{word}" and one of the names.'
        if is_pair and said is None:
            key, attempt = "untouched", start
        elif isinstance(said, int):
            attempt = f"Write the name of the {word}, and not its place."
        elif isinstance(said, Other):
            attempt = "Write the name as a text, in quotes."
        elif isinstance(said, str) and said.strip("_()") in names:
            attempt = f"Write the name as it stands here: {said.strip('_()')}."
        wanted = f'("{word}", one of {", ".join(map(repr, names))})'
        t.fail(key, wanted, show(bug), attempt, where=t.runner.line_of("BUG"))
    return name


def not_it(t: Tester, wanted: str, got: str, attempt: str) -> NoReturn:
    """Fail because BUG names another one than the culprit. Arguments: as of `Tester.fail`."""
    t.fail("not_it", wanted, got, attempt, where=t.runner.line_of("BUG"))


def is_same(said: object, text: str) -> bool:
    """Return whether an answer is this text, ignoring case and surrounding spaces."""
    return isinstance(said, str) and said.strip().casefold() == text.casefold()
