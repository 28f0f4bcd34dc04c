"""Holds the rows of a graded class, and writes them as table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from minigrad.grader.folder import load_lesson
from minigrad.grader.message import inert, one_line, without_command
from minigrad.grader.report import Style
from minigrad.grader.result import Result

SCHEMA_VERSION = 1
MAX_NOTES = 2000  # characters in a cell: a folder of thousands of files has a note for each


@dataclass
class Row:
    """One submission. If the grader failed, `fault` says why, and the points are None, not 0."""

    name: str
    results: dict[str, Result] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    fault: str = ""
    seconds: float = 0.0

    @property
    def points(self) -> int | None:
        """Return the points earned, None if the grader failed."""
        return None if self.fault else sum(result.points for result in self.results.values())

    @property
    def status(self) -> str:
        """'graded', 'incomplete' (a file is missing) or 'error'."""
        return "error" if self.fault else "incomplete" if self.missing else "graded"

    @property
    def remarks(self) -> list[str]:
        """Return what a teacher should know about this row."""
        fault = [f"NOT GRADED: {self.fault}"] if self.fault else []
        missing = [f"{stem}.py is missing" for stem in self.missing]
        return [one_line(remark) for remark in (*fault, *self.notes, *missing)]


@dataclass
class Gradebook:
    """All rows for some lessons, graded with one seed."""

    stems: list[str]
    seed: int
    rows: list[Row] = field(default_factory=list)

    @property
    def of(self) -> int:
        """Return the points that one submission can earn."""
        return sum(load_lesson(stem).points for stem in self.stems)

    def exercises(self) -> list[str]:
        """Return the ids of all exercises, in order."""
        return [e.id for stem in self.stems for e in load_lesson(stem).exercises.values()]

    def points_of(self, row: Row) -> dict[str, int]:
        """Return a submission's points by exercise."""
        return {e.id: e.points for result in row.results.values() for e in result.exercises}

    def as_csv(self) -> str:
        """Return the rows as CSV, in which no name can become a spreadsheet's formula."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        ids = self.exercises()
        writer.writerow(
            ["submission", "status", "points", "of", "percent", "seconds", *ids, "notes"]
        )
        for row in self.rows:
            points = self.points_of(row)
            percent = "" if row.points is None else f"{100 * row.points / max(self.of, 1):.1f}"
            notes = _inert("; ".join(row.remarks))
            notes = notes if len(notes) <= MAX_NOTES else f"{notes[: MAX_NOTES - 2]} …"
            total = "" if row.points is None else row.points
            each = ["" if row.fault else points.get(name, 0) for name in ids]
            head = [_inert(row.name), row.status, total, self.of, percent, f"{row.seconds:.1f}"]
            writer.writerow([*head, *each, notes])
        return text.getvalue()

    def as_dict(self) -> dict:
        """Return everything as plain values, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "seed": self.seed,
            "lessons": self.stems,
            "of": self.of,
            "submissions": [
                {
                    "name": row.name,
                    "status": row.status,
                    "points": row.points,
                    "of": self.of,
                    "seconds": round(row.seconds, 3),
                    "fault": row.fault,
                    "notes": row.notes,
                    "missing": row.missing,
                    "results": {stem: result.as_dict() for stem, result in row.results.items()},
                }
                for row in self.rows
            ],
        }

    def head(self, width: int) -> str:
        """Return the table's heading; `width` is that of the names."""
        lessons = "".join(f"{stem[:2]:>5}" for stem in self.stems)
        return f"{'submission':<{width}}{lessons}{'points':>8}{'of':>5}"

    def line(self, row: Row, width: int, style: Style) -> str:
        """Return the line of one submission."""
        cells = ""
        for stem in self.stems:
            result = row.results.get(stem)
            cells += f"{'–' if result is None else result.points:>5}"
        total = "?" if row.points is None else row.points
        colour = "passed" if row.points == self.of else "not_run" if row.fault else "failed"
        name = _short(row.name, width)
        line = f"{name:<{width}}{cells}{style.paint(f'{total:>8}', colour)}{self.of:>5}"
        return f"{line}  {'; '.join(row.remarks)}".rstrip()

    def summary(self) -> list[str]:
        """Return what a teacher asks first: the median, and the hardest exercises."""
        graded = [row for row in self.rows if row.points is not None]
        lines = [f"{len(graded)} of {len(self.rows)} graded, seed {self.seed}"]
        if len(graded) > 1:
            lines[0] += (
                f"; the median is {median(row.points or 0 for row in graded):g} of {self.of}"
            )
            shares = {}
            for stem in self.stems:
                for exercise in load_lesson(stem).exercises.values():
                    earned = sum(self.points_of(row).get(exercise.id, 0) for row in graded)
                    shares[exercise.id] = earned / (len(graded) * exercise.points)
            hardest = sorted(shares, key=lambda name: shares[name])[:3]
            lines.append("hardest: " + ", ".join(f"{n} ({shares[n]:.0%})" for n in hardest))
        results = [result for row in self.rows for result in row.results.values()]
        without = {name for r in results for one in r.exercises for name in one.limits_missing}
        if without:
            lines.append(f"this system sets no limit on: {', '.join(sorted(without))}")
        return lines


def width_of(names: Sequence[str]) -> int:
    """Return a width for names: 32, or more where that is needed to tell them apart."""
    widest = max(len(without_command(name)) for name in names) + 1
    for width in range(min(widest, 32), widest):
        if len({_short(name, width) for name in names}) == len(names):
            return width
    return widest


def _short(name: str, width: int) -> str:
    """Return a name as the table shows it."""
    name = without_command(name)
    return name if len(name) <= width else f"{name[: width - 1]}…"


# A formula's beginning, in a cell or in what a spreadsheet may take for the next cell.
FORMULA = re.compile(r"(^|[;,|\t\n])(\s*)(?=[=+\-@＝＋－＠])")


def _inert(text: str) -> str:
    """Return a text that a spreadsheet does not take for a formula."""
    return FORMULA.sub(r"\1\2'", inert(text))
