"""Lesson 09: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l09_adam import average as average
from minigrad.course.l09_adam import adam as adam
from minigrad.course.l09_adam import model as model
from minigrad.course.l09_adam import decay as decay
from minigrad.course.l09_adam import schedule as schedule
from minigrad.course.l09_adam import bug_hunt as bug_hunt
from minigrad.course.l09_adam.lesson import lesson as lesson
