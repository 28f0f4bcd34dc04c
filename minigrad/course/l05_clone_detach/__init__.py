"""Lesson 05: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l05_clone_detach import detaching as detaching
from minigrad.course.l05_clone_detach import cloning as cloning
from minigrad.course.l05_clone_detach import aliasing as aliasing
from minigrad.course.l05_clone_detach import cow as cow
from minigrad.course.l05_clone_detach import syncing as syncing
from minigrad.course.l05_clone_detach import bug_hunt as bug_hunt
from minigrad.course.l05_clone_detach.lesson import lesson as lesson
