"""Lesson 02: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l02_graph import topo as topo
from minigrad.course.l02_graph import backward as backward
from minigrad.course.l02_graph import visits as visits
from minigrad.course.l02_graph import bug_hunt as bug_hunt
from minigrad.course.l02_graph.lesson import lesson as lesson
