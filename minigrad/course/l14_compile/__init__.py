"""Lesson 14: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l14_compile import tracing as tracing
from minigrad.course.l14_compile import dead as dead
from minigrad.course.l14_compile import fusing as fusing
from minigrad.course.l14_compile import aliasing as aliasing
from minigrad.course.l14_compile import donating as donating
from minigrad.course.l14_compile import bug_hunt as bug_hunt
from minigrad.course.l14_compile.lesson import lesson as lesson
