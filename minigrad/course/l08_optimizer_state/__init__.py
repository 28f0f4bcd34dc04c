"""Lesson 08: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l08_optimizer_state import update as update
from minigrad.course.l08_optimizer_state import sgd as sgd
from minigrad.course.l08_optimizer_state import clip_grad as clip_grad
from minigrad.course.l08_optimizer_state import clip_weights as clip_weights
from minigrad.course.l08_optimizer_state import saving as saving
from minigrad.course.l08_optimizer_state import loading as loading
from minigrad.course.l08_optimizer_state import replacing as replacing
from minigrad.course.l08_optimizer_state import bug_hunt as bug_hunt
from minigrad.course.l08_optimizer_state.lesson import lesson as lesson
