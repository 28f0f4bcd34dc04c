"""Lesson 07: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("07_functions", "Operations of your own, and gradients of gradients")
