"""Lesson 17: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("17_capstone", "Something of your own")
lesson.load(
    "digits",
    "text",
    "pole",
)
