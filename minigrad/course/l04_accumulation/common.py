"""What the exercises of lesson 04 share: small programs that a message can show."""

from __future__ import annotations

import numpy as np

from minigrad.grader.tester import Tester


def program(*lines: str) -> tuple[list[str], str]:
    """Return a program's lines, and the text of them for messages."""
    return list(lines), "; ".join(lines)


def arrays(t: Tester, n: int) -> list[np.ndarray]:
    """Return n short arrays without 0."""
    return [np.round(t.random.uniform(0.5, 2, 2), 1) for _ in range(n)]


def text(array: np.ndarray) -> str:
    """Return an array as a program's source writes it."""
    return f"np.array({array.tolist()})"
