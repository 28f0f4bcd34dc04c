"""Lesson 07: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("07_functions", "Operations of your own, and gradients of gradients")
lesson.load(
    "softplus",
    "log_sum_exp",
    "straight_through",
    "hessian_vector",
    "penalty",
    "bug_hunt",
)
