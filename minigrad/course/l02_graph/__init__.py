"""Lesson 02: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("02_graph", "The graph, and the order in which to walk it", on_fast_track=True)
lesson.load(
    "topo",
    "backward",
    "visits",
    "bug_hunt",
)
