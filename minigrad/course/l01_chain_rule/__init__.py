"""Lesson 01: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("01_chain_rule", "Local derivative times what arrives", on_fast_track=True)
lesson.load(
    "mul",
    "tanh",
    "power",
    "chain",
    "counting",
    "bug_hunt",
)
