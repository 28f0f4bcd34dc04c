"""Lesson 15: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("15_mixed_precision", "What is lost in half the bits?")
lesson.load(
    "sums",
    "underflow",
    "scaler",
    "master",
    "bug_hunt",
)
