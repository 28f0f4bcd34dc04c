"""Lesson 14: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("14_compile", "From tape to program")
lesson.load(
    "tracing",
    "dead",
    "fusing",
    "aliasing",
    "donating",
    "bug_hunt",
)
