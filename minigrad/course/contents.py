"""Makes the page that `minigrad lab` opens: a tile per lesson, the parts, what is next."""

from __future__ import annotations

import json
from html import escape

from minigrad.course.notebook import INDEX
from minigrad.course.percent import notebook_text
from minigrad.course.scores import (
    Standing,
    duration,
    first_unsolved,
    standings,
    up_to_date,
)
from minigrad.grader.card import BORDER, PASSED, QUIET
from minigrad.grader.folder import CourseFolder, find_folder
from minigrad.grader.spec import Exercise, Lesson

SOURCE = """\
# %% [markdown]
# # minigrad
#
# A lesson is a notebook; what you write stands in its exercise file, and the minutes are those of
# its exercises. The cell below brings the numbers up to date: click it, then Shift+Enter. Short of
# time? The lessons marked *fast track* fit in a weekend.

# %%
from minigrad.course import overview

overview()
"""
FAST_TRACK = "fast track"
NEXT = "var(--jp-brand-color1, #1976d2)"


class Overview:
    """The result of `overview`: tiles in a notebook, a table elsewhere."""

    def __init__(
        self, lessons: list[tuple[Lesson, list[Standing]]], following: Exercise | None
    ) -> None:
        self.lessons = lessons
        self.following = following

    def __repr__(self) -> str:
        rows = [
            f"{lesson.number}  {lesson.title:<44} {_numbers(lesson, progress)}"
            + f", {FAST_TRACK}" * lesson.on_fast_track
            for lesson, progress in self.lessons
        ]
        names = ", ".join(part.exercise.id for part in self._parts() if part.is_lit) or "none yet"
        return "\n".join([*rows, f"Your parts of the engine: {names}", self._next()])

    def _repr_html_(self) -> str:
        tiles = "".join(self._tile(lesson, progress) for lesson, progress in self.lessons)
        parts = self._parts()
        n_lit = sum(part.is_lit for part in parts)
        names = " &nbsp; ".join(
            f'<span style="color:{PASSED if part.is_lit else QUIET}">'
            f"{'■' if part.is_lit else '□'} {escape(part.exercise.id)}</span>"
            for part in parts
        )
        return (
            f'<div style="max-width:80em"><div><b>{escape(self._next())}</b></div>'
            '<div style="display:grid;grid-template-columns:repeat(auto-fill,minmax(20em,1fr));'
            f'gap:8px;margin:8px 0">{tiles}</div>'
            f"<div><b>Your engine: {n_lit} of {len(parts)} parts are yours</b> "
            "(■ yours runs, □ not yet)</div>"
            f'<div style="line-height:1.8">{names}</div></div>'
        )

    def _tile(self, lesson: Lesson, progress: list[Standing]) -> str:
        is_next = self.following is not None and self.following.lesson is lesson
        edge = NEXT if is_next else PASSED if all(one.is_solved for one in progress) else BORDER
        note = f'<span style="color:{NEXT}">you are here</span>' if is_next else "&nbsp;"
        fast = f'<span style="color:{QUIET}">· {FAST_TRACK}</span> ' * lesson.on_fast_track
        return (
            f'<div style="padding:8px 12px;border:1px solid {BORDER};border-left:5px solid {edge}">'
            f'<a href="{lesson.stem}.ipynb"><b>{lesson.number}</b> {escape(lesson.title)}</a>'
            f'<br><span style="color:{QUIET}">{_numbers(lesson, progress)}</span>'
            f'<br><a href="../exercises/{lesson.stem}.py">exercises</a> {fast}{note}</div>'
        )

    def _parts(self) -> list[Standing]:
        return [one for _, progress in self.lessons for one in progress if one.is_part]

    def _next(self) -> str:
        if self.following is None:
            return "Everything is solved."
        one = self.following
        return f"Next: {one.id}, about {one.minutes} min, in lesson {one.lesson.number}"


def _numbers(lesson: Lesson, progress: list[Standing]) -> str:
    points = sum(one.points for one in progress)
    minutes = sum(one.exercise.minutes for one in progress if not one.is_solved)
    left = f"about {duration(minutes)} left" if minutes else "solved"
    return f"{points} of {lesson.points} points, {left}"


def overview() -> Overview:
    """Return all lessons with points and minutes, what is next, and the learner's parts."""
    folder = find_folder()
    return _overview(folder, list(up_to_date(folder)))


def _overview(folder: CourseFolder, lessons: list[tuple[Lesson, list[Standing]]]) -> Overview:
    following = first_unsolved(folder)
    return Overview(lessons, following[1].exercise if following else None)


def page(folder: CourseFolder) -> str:
    """Return the overview as an executed notebook, with the present points."""
    notebook = json.loads(notebook_text(SOURCE, INDEX))
    now = _overview(folder, list(standings(folder)))
    cell = notebook["cells"][-1]
    cell["metadata"]["jupyter"] = {"source_hidden": True}
    cell["outputs"] = [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"text/html": now._repr_html_(), "text/plain": repr(now)},
        }
    ]
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
