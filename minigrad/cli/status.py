"""`minigrad status`: shows a wall of tiles, one per part of the engine, and all exercises."""

from __future__ import annotations

import argparse
import shutil

from minigrad.cli import engine
from minigrad.cli.next_exercise import brief
from minigrad.cli.ranges import spelled_out
from minigrad.course.scores import Standing, duration, up_to_date
from minigrad.grader.folder import find_folder, find_stem, known_stems
from minigrad.grader.report import Style
from minigrad.grader.spec import Exercise

WIDEST = 100


def run(options: argparse.Namespace) -> int:
    """Show the wall, then every exercise with its points, then what comes next.

    If lessons are named, show only these.
    """
    folder = find_folder()
    style = Style()
    stems = [find_stem(name) for name in spelled_out(options.lessons, known_stems())]
    if options.engine:
        return engine.show(folder, stems, style)
    lessons = [one for one in up_to_date(folder) if not stems or one[0].stem in stems]
    every = [standing for _, some in lessons for standing in some]
    parts = [one for one in every if one.is_part]
    print("\n".join(wall(parts, style, terminal_width())))
    if not all(part.is_lit for part in parts):
        print("A part lights up when its exercise is solved and its lesson's notebook has run.")
    print()
    for lesson, some in lessons:
        points = sum(standing.points for standing in some)
        head = f"{lesson.number}  {lesson.title}"
        print(f"{style.paint(head, 'bold')}  {style.paint(f'({points}/{lesson.points})', 'dim')}")
        for standing in some:
            print(row(standing, style))
    total, of = sum(one.points for one in every), sum(one.exercise.points for one in every)
    left = sum(one.exercise.minutes for one in every if not one.is_solved)
    minutes = f"; what is left takes about {duration(left)}" if left else ""
    print(f"{total} of {of} points{minutes}")
    print(brief(folder))
    return 0


def terminal_width() -> int:
    """Return how many columns to use."""
    return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)


def wall(parts: list[Standing], style: Style, width: int) -> list[str]:
    """Return the wall: one tile per part, lit if the learner's own ran in the engine."""
    lit, dark = tiles(style)
    n_lit = sum(part.is_lit for part in parts)
    lines = [f"Your engine: {n_lit} of {len(parts)} parts are yours   ({lit} runs, {dark} not yet)"]
    if not parts:
        return lines
    names = [f"{part.exercise.id.replace('.', ' ')}" for part in parts]
    cell = max(map(len, names)) + 6
    columns = max(1, width // cell)
    for first in range(0, len(parts), columns):
        shown = zip(parts[first : first + columns], names[first : first + columns], strict=True)
        lines.append("".join(_tile(part, name, cell, style) for part, name in shown).rstrip())
    return lines


def _tile(part: Standing, name: str, cell: int, style: Style) -> str:
    lit, dark = tiles(style)
    text = f"{(lit if part.is_lit else dark) * 2} {name}"
    return (
        "  "
        + style.paint(text, "passed" if part.is_lit else "not_run")
        + " " * (cell - len(text) - 2)
    )


def tiles(style: Style) -> tuple[str, str]:
    """Return the signs for a lit and for a dark tile."""
    return ("■", "□") if style.signs["passed"] == "✓" else ("#", "-")


def row(standing: Standing, style: Style) -> str:
    """Return the line for one exercise."""
    exercise = standing.exercise
    lit, dark = tiles(style)
    tile = (lit if standing.is_lit else dark) if standing.is_part else " "
    failed = standing.is_checked
    sign = "passed" if standing.is_solved else "failed" if failed else "not_run"
    notes = [hints_taken(exercise, standing.entry.get("hints", 0))]
    if standing.entry.get("best", 0) > standing.points:
        notes.append(f"had {standing.entry['best']} before the file changed")
    line = (
        f"  {tile} {style.paint(style.signs[sign], sign)} {exercise.name:<24}"
        f"{standing.points:>3} of {exercise.points:<3} {exercise.minutes:>3} min  "
        f"{', '.join(note for note in notes if note)}"
    )
    return line.rstrip()


def hints_taken(exercise: Exercise, n: int) -> str:
    """Return in words how many hints were taken; after the last comes where the solution is."""
    if n > len(exercise.hints):
        return f"{len(exercise.hints)} hints, told where the solution is"
    return f"{n} hint{'s' if n > 1 else ''}" if n else ""
