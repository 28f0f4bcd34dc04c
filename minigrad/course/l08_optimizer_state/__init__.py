"""Lesson 08: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("08_optimizer_state", "Who remembers the last step", on_fast_track=True)
lesson.load(
    "update",
    "sgd",
    "clip_grad",
    "clip_weights",
    "saving",
    "loading",
    "replacing",
    "bug_hunt",
)
