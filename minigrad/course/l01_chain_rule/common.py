"""What the exercises of lesson 01 share."""

from __future__ import annotations

import numpy as np

from minigrad.grader.tester import Tester

DROPPED = "It is right only where dy is 1. What happens to dy on its way through your function?"
MULTIPLIED = "What arrives and the local derivative are multiplied."
BY_DIFFERENCES = "Change one entry of the input a little: by how much does sum(dy * y) change?"


def random_arrays(t: Tester, n: int, size: int = 4) -> list[np.ndarray]:
    """Return n arrays of a random shape, rounded as they are shown."""
    shape = (size,) if t.random.random() < 0.7 else (2, size // 2)
    return [np.round(t.random.uniform(-2, 2, shape), 2) for _ in range(n)]
