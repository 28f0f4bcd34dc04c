"""Lesson 02: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("02_graph", "The graph, and the order in which to walk it", on_fast_track=True)
