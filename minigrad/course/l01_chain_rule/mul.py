"""The backward function of a product."""

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

mul_backward = lesson.exercise(
    "mul_backward",
    difficulty=1,
    minutes=5,
    returns="two arrays: da, db",
    hints=(
        "Hold b still and move a by a little: by how much does a * b move? "
        "That is the local derivative with respect to a.",
        "Each of the two gradients is dy times a local derivative, and each local derivative is "
        "one of the factors.",
        "da is dy times the other factor, b; db is dy times a. Return them in this order.",
    ),
)


def check_mul(t: Tester, dy: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Ask mul_backward for its two gradients and check them."""
    got = t.call("mul_backward", dy, a, b)
    da, db = t.pair(got, 2, "da, db")
    order = "The gradient of a comes first. Which factor belongs to it?"
    check_gradients(
        t,
        (da, db),
        np.multiply,
        (a, b),
        dy,
        names=("da", "db"),
        attempt=BY_DIFFERENCES,
        mistakes=[
            ("dropped_upstream", (b, a), DROPPED),
            ("swapped", (dy * a, dy * b), order),
            ("swapped", (a, b), order),
            ("added", (dy, dy), "These are the gradients of a + b. And of a product?"),
            ("added", (dy + b, dy + a), MULTIPLIED),
        ],
    )


@mul_backward.check(points=1)
def with_dy_of_one(t: Tester) -> None:
    """It is right where dy is 1 everywhere."""
    a, b = random_arrays(t, 2)
    check_mul(t, np.ones_like(a), a, b)


@mul_backward.check(points=2)
def with_any_dy(t: Tester) -> None:
    """It is right for a random dy."""
    for _ in range(3):
        check_mul(t, *random_arrays(t, 3))
