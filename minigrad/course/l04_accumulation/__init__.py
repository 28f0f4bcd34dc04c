"""Lesson 04: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson(
    "04_accumulation", "A gradient is a sum, and somebody adds it up", on_fast_track=True
)
lesson.load(
    "unbroadcasting",
    "accumulating",
    "microbatches",
    "manager",
    "manager_rules",
    "bug_hunt",
)
