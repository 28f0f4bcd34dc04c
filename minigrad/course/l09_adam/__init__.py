"""Lesson 09: what is checked, for how many points, and the hints; a module an exercise."""

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
