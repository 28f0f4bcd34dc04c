"""Lesson 01: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("01_chain_rule", "Local derivative times what arrives", on_fast_track=True)
