"""Lesson 08: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("08_optimizer_state", "Who remembers the last step", on_fast_track=True)
