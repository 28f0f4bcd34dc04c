"""Lesson 00: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson(
    "00_start", "The run loop, and a derivative from nothing but function calls", on_fast_track=True
)
