"""Lesson 09: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("09_adam", "Steps that do not ask how large the gradient is")
