"""Reads lessons as a command line names them: `00`, `02-05`, `00,02-05`."""

from __future__ import annotations

import re

from minigrad.grader.folder import CourseError

SEVERAL = re.compile(r"\d{1,2}([-,]\d{1,2})*")
PART = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?")


def spelled_out(names: list[str], stems: list[str]) -> list[str]:
    """Return names of lessons and exercises, with ranges such as `02-05` replaced by stems."""
    all_names = []
    for name in names:
        is_several = SEVERAL.fullmatch(name) and not name.isdigit()
        all_names += stems_in(name, stems) if is_several else [name]
    return all_names


def stems_in(text: str | None, stems: list[str]) -> list[str]:
    """Return the stems that a text such as `02-05` names; all for None.

    Raises:
        CourseError: the text is not of this form, or names a lesson that does not exist.
    """
    if text is None:
        return sorted(stems)
    chosen = set()
    for part in text.replace(" ", "").split(","):
        match = PART.fullmatch(part)
        if match is None:
            raise CourseError(f"lessons are named as in 02, 02-05 or 00,02-05; this is {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        within = {stem for stem in stems if first <= int(stem[:2]) <= last}
        if not within:
            raise CourseError(f"there is no lesson {part}; there are {', '.join(sorted(stems))}")
        chosen |= within
    return sorted(chosen)
