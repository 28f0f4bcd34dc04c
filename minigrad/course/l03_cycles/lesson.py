"""Lesson 03: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("03_cycles", "Cycles: what is one, and how to say where it is")
