"""Lesson 06: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l06_memory_growth import bump as bump
from minigrad.course.l06_memory_growth import saved as saved
from minigrad.course.l06_memory_growth import modes as modes
from minigrad.course.l06_memory_growth import batches as batches
from minigrad.course.l06_memory_growth import valid as valid
from minigrad.course.l06_memory_growth import bug_hunt as bug_hunt
from minigrad.course.l06_memory_growth.lesson import lesson as lesson
