"""Lesson 05: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("05_clone_detach", "Whose bytes, and whose history?", on_fast_track=True)
lesson.load(
    "detaching",
    "cloning",
    "aliasing",
    "cow",
    "syncing",
    "bug_hunt",
)
