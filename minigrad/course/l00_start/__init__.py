"""Lesson 00: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l00_start import hello as hello
from minigrad.course.l00_start import central_difference as central_difference
from minigrad.course.l00_start import bug_hunt as bug_hunt
from minigrad.course.l00_start.lesson import lesson as lesson
