"""What the exercises of lesson 01 share."""

from __future__ import annotations

DTYPES = ("float64",)  # what the lesson differentiates by differences, which need its digits
DROPPED = "It is right only where dy is 1. What happens to dy on its way through your function?"
MULTIPLIED = "What arrives and the local derivative are multiplied."
BY_DIFFERENCES = "Change one entry of the input a little: by how much does sum(dy * y) change?"
