"""Lesson 06: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("06_memory_growth", "Who is holding on to this graph?")
lesson.load(
    "bump",
    "saved",
    "modes",
    "batches",
    "valid",
    "bug_hunt",
)
