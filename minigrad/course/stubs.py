"""Makes exercises from solutions by cutting out what the learner should write.

A region of a solution is

    ### BEGIN SOLUTION
    the solution
    ### STARTS AS            (optional: what the learner gets instead, commented out)
    # the planted defect
    ### END SOLUTION

Without STARTS AS, a line that raises NotImplementedError replaces it.
"""

from __future__ import annotations

import re

BEGIN, STARTS_AS, END = "### BEGIN SOLUTION", "### STARTS AS", "### END SOLUTION"
DEFINITION = re.compile(r"\s*(?:def|class)\s+(\w+)")


class RegionError(ValueError):
    """Raised if a solution's marks do not match; the text names file and line."""


def cut(text: str, name: str) -> str:
    """Return the exercise for a solution's text; `name` is the file for errors."""
    lines: list[str] = []
    region = ""  # "", "solution" or "start"
    opened, stub, function = 0, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.strip()
        if not region and (match := DEFINITION.match(line)):
            function = match.group(1)
        if mark == BEGIN:
            if region:
                raise RegionError(
                    f"{name}:{number}: a solution begins inside that of line {opened}"
                )
            region, opened, stub = "solution", number, []
        elif mark == STARTS_AS:
            if region != "solution":
                raise RegionError(f"{name}:{number}: {STARTS_AS} outside a solution")
            region = "start"
        elif mark == END:
            if not region:
                raise RegionError(f"{name}:{number}: a solution ends that did not begin")
            indent = line[: len(line) - len(line.lstrip())]
            if region == "solution":
                stub = [f'{indent}raise NotImplementedError("{function} is yours to write")']
            lines += stub
            region = ""
        elif region == "start":
            stub.append(_uncommented(line, f"{name}:{number}"))
        elif not region:
            lines.append(line)
    if region:
        raise RegionError(f"{name}:{opened}: this solution does not end")
    return "\n".join(lines) + "\n"


def _uncommented(line: str, place: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    body = line.strip()
    if not body.startswith("#"):
        raise RegionError(f"{place}: lines after {STARTS_AS} are comments")
    return (indent + body[1:].removeprefix(" ")).rstrip()
