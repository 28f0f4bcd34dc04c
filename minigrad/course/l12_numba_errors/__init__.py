"""Lesson 12: what is checked, for how many points, and the hints; a module an exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("12_numba_errors", "What the compiler says, and what it does not say")
lesson.load(
    "unifying",
    "indexing",
    "keywords",
    "calling",
    "returning",
    "catching",
    "remembering",
    "bug_hunt",
)
