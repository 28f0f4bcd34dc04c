"""Implements `watch("04")` in a lesson: a card that grades each save at once."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from html import escape
from typing import Any

from minigrad.course.hints import next_hint
from minigrad.course.notebook import links_after
from minigrad.course.regrading import POLL_SECONDS, Watch, gone, signature_of
from minigrad.course.scores import Standing, standings
from minigrad.grader import progress
from minigrad.grader.card import BORDER, QUIET, Card, link_row
from minigrad.grader.folder import CourseFolder, find_folder, find_stem, load_lesson
from minigrad.grader.launcher import shared_server
from minigrad.grader.report import SIGNS
from minigrad.grader.result import Result


class LiveCard:
    """The card of `watch`: the last save's result, the lesson's points, a hint on request."""

    def __init__(self, folder: CourseFolder, stem: str) -> None:
        self.folder = folder
        self.stem = stem
        self.said = f"Save exercises/{stem}.py, and what you changed is graded here."
        if not (folder.root / "exercises" / f"{stem}.py").exists():
            self.said = gone(stem)
        self.results: list[Result] = []
        self.hint = ""
        self.ended = threading.Event()
        self.progress = signature_of(folder.state / "progress.json")
        self.handle: Any = None
        self.watch = Watch(folder, [stem], shared_server())
        self.points = self._points()
        self.links = links_after(load_lesson(stem))

    def follow(self) -> None:
        """Grade and show every save until `ended` is set."""
        try:
            while not self.ended.wait(POLL_SECONDS):
                for news in self.watch.step():
                    self.take(news)
                self.count()
        except Exception as error:  # in a thread it would go unnoticed
            self.take(f"this card has stopped: {error}; run its cell again")

    def take(self, news: str | Result) -> None:
        """Store news from the watch, and show it."""
        if isinstance(news, Result):
            self.results.append(news)
            with contextlib.suppress(OSError):
                progress.record(self.folder.state, news, is_watched=True)
        else:
            self.said, self.results, self.hint = news.lstrip("- "), [], ""
        self.show()

    def count(self) -> None:
        """Update the points if a cell or a command has graded something."""
        progress_now = signature_of(self.folder.state / "progress.json")
        if progress_now != self.progress:
            self.progress = progress_now
            if self._points() != self.points:
                self.show()

    def show(self) -> None:
        """Replace the card on display by its present state."""
        self.points = self._points()
        if self.handle is not None:
            self.handle.update(self)

    def give_hint(self, *_: Any) -> None:
        """Show the next hint for the exercise on the card."""
        exercise_id = self._exercise_id()
        self.hint = next_hint(exercise_id, self.folder) if exercise_id else "Everything is solved."
        self.show()

    def _exercise_id(self) -> str:
        """Return the exercise whose result is shown, else the first unsolved one, else ""."""
        failed = [one.exercises[0].id for one in self.results if not one.passed]
        unsolved = [one.exercise.id for one in self._standings() if not one.is_solved]
        return next(iter(failed + unsolved), "")

    def _standings(self) -> list[Standing]:
        lessons = standings(self.folder)
        return next(some for lesson, some in lessons if lesson.stem == self.stem)

    def _card(self) -> Card | None:
        """Return the first result without full marks, else the last one."""
        failed = [one for one in self.results if not one.passed]
        shown = (failed or self.results[::-1])[:1]
        return Card(shown[0]) if shown else None

    def _points(self) -> str:
        every = self._standings()
        names = []
        for one in every:
            sign = "passed" if one.is_solved else "failed" if one.is_checked else "not_run"
            names.append(f"{SIGNS[sign]} {one.exercise.name}")
        points, of = sum(one.points for one in every), sum(one.exercise.points for one in every)
        return f"{points} of {of} points in lesson {self.stem[:2]}: {'  '.join(names)}"

    def __repr__(self) -> str:
        card = self._card()
        parts = (self.hint, self.said, repr(card) if card else "", self.points)
        return "\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        card = self._card()
        hint = " ".join(self.hint.split())
        hint = f'<div style="margin-bottom:6px">{escape(hint)}</div>' if hint else ""
        return (
            f'<div style="border:1px solid {BORDER};padding:8px 14px;max-width:62em">{hint}'
            f'<div style="color:{QUIET}">{escape(self.said)}</div>'
            f"{card._repr_html_() if card else ''}<div><b>{escape(self.points)}</b></div>"
            f"{link_row(self.links)}</div>"
        )


_shown: dict[str, LiveCard] = {}


def watch(lesson: str) -> None:
    """Show a card that grades a lesson's exercises at each save of their file, and gives hints.

    Args:
        lesson: such as `"04"`. The card of an earlier call for the same lesson stops.
    """
    from IPython.display import display

    stem = find_stem(lesson)
    if stem in _shown:
        _shown[stem].ended.set()
    card = _shown[stem] = LiveCard(find_folder(), stem)
    with contextlib.suppress(ImportError):
        import ipywidgets

        button = ipywidgets.Button(description="hint")
        button.on_click(card.give_hint)
        # A notebook that is read without a kernel shows this instead of the button.
        advice = {"text/plain": "Run this cell: it makes a button that gives hints."}
        display((button._repr_mimebundle_() or {}) | advice, raw=True)
    card.handle = display(card, display_id=True)
    context = contextvars.copy_context()  # tells the kernel in which cell to show
    threading.Thread(target=context.run, args=(card.follow,), daemon=True).start()
