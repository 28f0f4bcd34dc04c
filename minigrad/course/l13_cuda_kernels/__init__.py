"""Lesson 13: what is checked, for how many points, and the hints; one module per exercise."""

from minigrad.grader.spec import Lesson

lesson = Lesson("13_cuda_kernels", "A function that thousands of threads run")
lesson.load(
    "guarding",
    "block_sums",
    "warp_sums",
    "softmax",
    "tiling",
    "transposing",
    "bug_hunt",
)
