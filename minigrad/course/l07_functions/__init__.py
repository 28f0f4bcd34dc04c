"""Lesson 07: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l07_functions import softplus as softplus
from minigrad.course.l07_functions import log_sum_exp as log_sum_exp
from minigrad.course.l07_functions import straight_through as straight_through
from minigrad.course.l07_functions import hessian_vector as hessian_vector
from minigrad.course.l07_functions import penalty as penalty
from minigrad.course.l07_functions import bug_hunt as bug_hunt
from minigrad.course.l07_functions.lesson import lesson as lesson
