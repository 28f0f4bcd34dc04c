"""Lesson 01: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l01_chain_rule import mul as mul
from minigrad.course.l01_chain_rule import tanh as tanh
from minigrad.course.l01_chain_rule import power as power
from minigrad.course.l01_chain_rule import chain as chain
from minigrad.course.l01_chain_rule import counting as counting
from minigrad.course.l01_chain_rule import bug_hunt as bug_hunt
from minigrad.course.l01_chain_rule.lesson import lesson as lesson
