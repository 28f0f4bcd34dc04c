"""Lesson 05: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("05_clone_detach", "Whose bytes, and whose history?", on_fast_track=True)
