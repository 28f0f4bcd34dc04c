"""Lesson 04: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson(
    "04_accumulation", "A gradient is a sum, and somebody adds it up", on_fast_track=True
)
