"""Lesson 10: what is checked, for how many points, and the hints; a module an exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("10_allocator", "Who gets this memory next?")
lesson.load(
    "classes",
    "pool",
    "counting",
    "planning",
    "bug_hunt",
)
