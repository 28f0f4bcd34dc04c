"""Lesson 13: what is checked, for how many points, and the hints; a module an exercise."""

# The order of these lines is that of the exercises.
# ruff: noqa: I001
from minigrad.course.l13_cuda_kernels import guarding as guarding
from minigrad.course.l13_cuda_kernels import block_sums as block_sums
from minigrad.course.l13_cuda_kernels import warp_sums as warp_sums
from minigrad.course.l13_cuda_kernels import softmax as softmax
from minigrad.course.l13_cuda_kernels import tiling as tiling
from minigrad.course.l13_cuda_kernels import transposing as transposing
from minigrad.course.l13_cuda_kernels import bug_hunt as bug_hunt
from minigrad.course.l13_cuda_kernels.lesson import lesson as lesson
