"""What the exercises of lesson 01 share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from minigrad.grader.tester import Tester

DTYPES = ("float64",)  # the lesson uses finite differences, which need its digits
DROPPED = "It is right only where dy is 1. What happens to dy on its way through your function?"
MULTIPLIED = "What arrives and the local derivative are multiplied."
BY_DIFFERENCES = (
    "Change one entry of one input alone, a little: by how much does sum(dy * y) change?"
)


def check_linear(
    t: Tester, names: Sequence[str], slopes: Sequence[np.ndarray], dy: np.ndarray, *kept: object
) -> None:
    """Check with the same inputs and small, large and zero dy: the result must follow dy.

    Args:
        t: the check's tester.
        names: what messages call the gradients.
        slopes: the local derivative for each of them.
        dy: the upstream gradient, passed in multiples.
        kept: the backward function's other arguments.
    """
    follows = "Twice the dy, twice the gradient, however large or small. Which step breaks that?"
    for factor in (1.0, -2.0, 1e9, 1e-9, 0.0):
        got = t.call(t.exercise.name, factor * dy, *kept)
        parts = t.pair(got, len(names), ", ".join(names)) if len(names) > 1 else (got,)
        made = [
            (one, one.value if len(names) > 1 else (one.value,))
            for one in t.mistakes(factor * dy, *kept)
        ]
        for i, (part, slope) in enumerate(zip(parts, slopes, strict=True)):
            t.close(
                part,
                factor * dy * slope,
                rtol=1e-9,
                atol=0,
                attempt=follows,
                mistakes=[replace(one, value=values[i]) for one, values in made],
                what=names[i],
            )
