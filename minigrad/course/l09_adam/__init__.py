"""Lesson 09: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("09_adam", "Steps that do not ask how large the gradient is")
lesson.load(
    "average",
    "adam",
    "model",
    "decay",
    "schedule",
    "bug_hunt",
)
