"""Lesson 00: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson(
    "00_start", "The run loop, and a derivative from nothing but function calls", on_fast_track=True
)
lesson.load(
    "hello",
    "central_difference",
    "bug_hunt",
)
