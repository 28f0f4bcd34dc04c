"""Lesson 06: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("06_memory_growth", "Who is holding on to this graph?")
