"""Lesson 11: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("11_cpu_kernels", "What does a loop wait for?")
lesson.load(
    "sums",
    "softmax",
    "products",
    "fusing",
    "picking",
    "bug_hunt",
)
