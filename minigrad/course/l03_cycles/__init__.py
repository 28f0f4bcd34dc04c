"""Lesson 03: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l03_cycles import finding as finding
from minigrad.course.l03_cycles import explaining as explaining
from minigrad.course.l03_cycles import asserting as asserting
from minigrad.course.l03_cycles import bug_hunt as bug_hunt
from minigrad.course.l03_cycles.lesson import lesson as lesson
