"""Lesson 14: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("14_compile", "From tape to program")
