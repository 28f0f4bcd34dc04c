"""Lesson 13: its name, to which the exercises are added."""

from __future__ import annotations

from minigrad.grader.spec import Lesson

lesson = Lesson("13_cuda_kernels", "A function that thousands of threads run")
