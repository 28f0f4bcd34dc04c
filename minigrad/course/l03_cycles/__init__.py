"""Lesson 03: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("03_cycles", "Cycles: what is one, and how to say where it is")
lesson.load(
    "finding",
    "explaining",
    "asserting",
    "bug_hunt",
)
