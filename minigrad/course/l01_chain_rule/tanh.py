"""The backward function of tanh, from its output."""

from __future__ import annotations

import numpy as np

from minigrad.course.l01_chain_rule.common import (
    BY_DIFFERENCES,
    DROPPED,
    MULTIPLIED,
    random_arrays,
)
from minigrad.course.l01_chain_rule.lesson import lesson
from minigrad.grader.gradients import check_gradients
from minigrad.grader.tester import Tester

tanh_backward = lesson.exercise(
    "tanh_backward",
    difficulty=2,
    minutes=8,
    returns="one array: dx",
    hints=(
        "The derivative of tanh(x) can be written with tanh(x) alone, without x.",
        "d tanh(x) / dx = 1 - tanh(x) ** 2. You are given y, which is tanh(x) already.",
        "dx is dy times (1 - y * y).",
    ),
)


@tanh_backward.check(points=3)
def from_the_output(t: Tester) -> None:
    """It is right for random x, given only tanh(x)."""
    for _ in range(3):
        dy, x = random_arrays(t, 2)
        y = np.tanh(x)
        got = t.call("tanh_backward", dy, y)
        steep = "Can tanh be steeper than the line y = x? Put y = 0 and y = 0.9 into yours."
        roles = "Which of the two is tanh(x), and which arrives? They have changed places."
        first = "Which of the two is computed first here, the product or the difference?"
        again = "y is tanh(x) already. What does your function do to it once more?"
        check_gradients(
            t,
            (got,),
            np.tanh,
            (x,),
            dy,
            names=("dx",),
            attempt=BY_DIFFERENCES,
            mistakes=[
                ("dropped_upstream", (1 - y * y,), DROPPED),
                ("twice", (dy * (1 - np.tanh(y) ** 2),), again),
                ("sigmoid", (dy * y * (1 - y),), "That is another function's rule: the sigmoid's."),
                ("no_square", (dy * (1 - y),), "Near x = 0 this is right. And far from 0?"),
                ("plus", (dy * (1 + y * y),), steep),
                ("plus", (1 + y * y,), steep),
                ("roles", ((1 - dy * dy) * y,), roles),
                ("added", (dy + (1 - y * y),), MULTIPLIED),
                ("brackets", (dy - y * y,), first),
                ("sign", (dy * (y * y - 1),), "tanh rises everywhere. And your slope?"),
                ("inverse", (dy / (1 - y * y),), "This is the slope of the inverse function."),
            ],
        )
