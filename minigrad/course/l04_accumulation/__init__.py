"""Lesson 04: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l04_accumulation import unbroadcasting as unbroadcasting
from minigrad.course.l04_accumulation import accumulating as accumulating
from minigrad.course.l04_accumulation import microbatches as microbatches
from minigrad.course.l04_accumulation import manager as manager
from minigrad.course.l04_accumulation import manager_rules as manager_rules
from minigrad.course.l04_accumulation import bug_hunt as bug_hunt
from minigrad.course.l04_accumulation.lesson import lesson as lesson
