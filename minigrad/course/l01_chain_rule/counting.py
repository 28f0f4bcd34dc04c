"""What a Jacobian costs, in forward and in reverse mode."""

from __future__ import annotations

import numpy as np

from minigrad.course.l01_chain_rule import lesson
from minigrad.grader.tester import Tester

count_mults = lesson.exercise(
    "count_mults",
    difficulty=3,
    minutes=15,
    returns="a whole number of multiplications",
    hints=(
        "One pass goes through W1, tanh and W2, in either direction. What does one pass cost?",
        "HIDDEN * n_in for W1, HIDDEN for tanh, n_out * HIDDEN for W2. "
        "How many passes does each mode need?",
        "Forward: a pass for each input. Reverse: a pass for each output. "
        "Multiply, and raise ValueError for any other mode.",
    ),
)
HIDDEN = 16
EDGES = (1, 5), (5, 1), (3, 3), (1, 1)
LARGE = 40_000, 30_000  # the products do not fit into 32 bits


class Counted:
    """Matrix-vector products that count their multiplications."""

    def __init__(self) -> None:
        self.n_mults = 0

    def matvec(self, matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Return matrix @ vector, one counted multiplication at a time."""
        out = np.zeros(matrix.shape[0])
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                out[i] += matrix[i, j] * vector[j]
                self.n_mults += 1
        return out

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a * b, elementwise."""
        self.n_mults += a.size
        return a * b


def instrumented_run(n_in: int, n_out: int, mode: str) -> int:
    """Compute the network's Jacobian in one mode; return the count of multiplications."""
    random = np.random.default_rng(0)
    w1, w2 = random.standard_normal((HIDDEN, n_in)), random.standard_normal((n_out, HIDDEN))
    slope = 1 - np.tanh(w1 @ random.standard_normal(n_in)) ** 2
    counted = Counted()
    if mode == "forward":
        for unit in np.eye(n_in):
            counted.matvec(w2, counted.times(slope, counted.matvec(w1, unit)))
    else:
        for unit in np.eye(n_out):
            counted.matvec(w1.T, counted.times(slope, counted.matvec(w2.T, unit)))
    return counted.n_mults


def passes(n_in, n_out, mode):
    """Return how many passes a Jacobian needs."""
    return n_in if mode == "forward" else n_out


def one_pass(n_in, n_out):
    """Return the multiplications of one pass."""
    return HIDDEN * (n_in + 1 + n_out)


@count_mults.mistake(
    "swapped", "In this mode, does a pass give a column of the Jacobian, or a row?"
)
def _(n_in, n_out, mode):
    if mode not in ("forward", "reverse"):
        raise ValueError(mode)
    return passes(n_out, n_in, mode) * one_pass(n_in, n_out)


@count_mults.mistake("one_pass", "That is one pass. How many does the Jacobian need?")
def _(n_in, n_out, mode):
    return one_pass(n_in, n_out)


@count_mults.mistake("no_tanh", "One stage of the network is not counted yet: the cheapest.")
def _(n_in, n_out, mode):
    return passes(n_in, n_out, mode) * HIDDEN * (n_in + n_out)


@count_mults.mistake(
    "product", "That is W2 @ W1, two whole matrices. Here vectors go through, one by one."
)
def _(n_in, n_out, mode):
    return HIDDEN * n_in * n_out


@count_mults.mistake(
    "no_matrices", "A matrix of m rows and n columns has how many entries to multiply?"
)
def _(n_in, n_out, mode):
    return passes(n_in, n_out, mode) * (n_in + HIDDEN + n_out)


@count_mults.mistake("did_not_raise")
def _(n_in, n_out, mode):
    return passes(n_in, n_out, mode) * one_pass(n_in, n_out)


@count_mults.mistake("float")
def _(n_in, n_out, mode):
    if mode not in ("forward", "reverse"):
        raise ValueError(mode)
    return passes(n_in, n_out, mode) * one_pass(n_in, n_out) / 1


def check_count(t: Tester, mode: str) -> None:
    """Compare with an instrumented run for random sizes."""
    pairs = [t.random.choice(np.arange(2, 13), 2, replace=False) for _ in range(3)]
    for n_in, n_out in [*([int(n) for n in pair] for pair in pairs), *EDGES, LARGE]:
        if (n_in, n_out) == LARGE:
            right = passes(n_in, n_out, mode) * one_pass(n_in, n_out)
        else:
            right = instrumented_run(n_in, n_out, mode)
        got = t.call("count_mults", n_in, n_out, mode)
        if isinstance(got, float | np.floating) and got == right:
            whole = "A count is a whole number. Where do yours become floats? Is it a / or a 2.0?"
            t.fail("float", f"{right}, an int", f"{float(got)!r}, a {type(got).__name__}", whole)
        t.close(
            got,
            right,
            rtol=0,
            atol=0,
            attempt="Count one pass on paper: W1, tanh, W2, zeros as well. Then: how many passes?",
            mistakes=t.mistakes(n_in, n_out, mode),
        )


@count_mults.check(points=1)
def forward(t: Tester) -> None:
    """It counts what forward mode costs, as an instrumented run does."""
    check_count(t, "forward")


@count_mults.check(points=1)
def reverse(t: Tester) -> None:
    """It counts what reverse mode costs, as an instrumented run does."""
    check_count(t, "reverse")


@count_mults.check(points=1, only_with=("forward", "reverse"))
def other_modes(t: Tester) -> None:
    """It raises ValueError for a mode that does not exist."""
    for mode in (
        "sideways",
        "Forward",
        "for",
        "rev",
        "forwardreverse",
        "",
        "forward ",
        "REVERSE",
        "backward",
        None,
    ):
        raised = t.raises("count_mults", 3, 2, mode, expected="a ValueError")
        if "ValueError" not in raised["kinds"]:
            if "NotImplementedError" in raised["kinds"]:
                t.call("count_mults", 3, 2, mode)
            t.fail(
                "wrong_error",
                "a ValueError",
                f"{raised['type']}: {raised['text']}",
                "Which exception says that an argument has a value that makes no sense?",
            )
