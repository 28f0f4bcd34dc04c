"""Checks a bug hunt's diagnosis in several parts: BUG, a dict with a short text for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minigrad.grader.message import show
from minigrad.grader.tester import Tester


@dataclass(frozen=True)
class Part:
    """One key of BUG.

    Attributes:
        question: what it names, such as "the line that overwrites it".
        right: the right text.
        nudges: for each wrong text, the Try line that speaks against it.
        known: all texts to choose from.
        form: what messages call them, such as "a letter, A to F".
        start: the Try line while nothing is written yet.
        general: the Try line for wrong texts without a nudge.
    """

    question: str
    right: str
    nudges: Mapping[str, str]
    known: Sequence[str]
    form: str
    start: str
    general: str


def check_part(t: Tester, parts: Mapping[str, Part], name: str, example: str) -> None:
    """Fail unless one part of BUG is right; case does not matter.

    example: a BUG of the right form, for messages.
    """
    part = parts[name]
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    said = bug.get(name) if isinstance(bug, dict) else None
    t.given = f'BUG["{name}"]: {part.question}'
    if said is None and isinstance(bug, dict) and name in bug:
        t.fail("untouched", part.form, "None", part.start, where=where)
    given = said.strip().casefold() if isinstance(said, str) else None
    text = next((one for one in part.known if one.casefold() == given), None)
    if text is None:
        got = show(said if said is not None else bug)
        t.fail("form", part.form, got[:150], f"First the form: {example}.", where=where)
    if text != part.right:
        attempt = part.nudges.get(text, part.general)
        t.fail("not_it", "another one", text, attempt, where=where)
