"""Lesson 16: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("16_data_parallel", "Who waits for whom?")
lesson.load(
    "shards",
    "ring",
    "step",
    "bug_hunt",
)
