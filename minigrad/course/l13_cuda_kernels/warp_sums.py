"""The lanes of a warp add up without shared memory: each asks another for its value."""

from __future__ import annotations

import numpy as np

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    in_turn,
    launch,
    place,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_warp_sum = lesson.exercise(
    "k_warp_sum",
    difficulty=3,
    minutes=15,
    returns="out filled by the kernel",
    hints=(
        "First which row and which lane: both come from cuda.grid(1). Then a loop over the lane's "
        "columns. Then five shuffles; which lane holds the sum of all after them?",
        "range(lane, columns, 32) gives a lane its columns. In a round, every lane adds what the "
        "lane `step` further up has, with step 16, 8, 4, 2, 1. No `if` around the shuffle: all "
        "lanes call it, also those whose result nobody wants.",
        "row = cuda.grid(1) // WARP; lane = cuda.grid(1) % WARP; if row < x.shape[0]: add up the "
        "columns, then `total += cuda.shfl_down_sync(EVERYONE, total, step)` in each round; lane 0 "
        "writes out[row].",
    ),
)
THREADS, WARP = 128, 32
EXPECTED = "out[r] = the sum of row r"


def ask(t: Tester, rows: int, columns: int, sign: int = 1) -> Counted:
    """Launch a warp per row, in whole blocks; fail unless the rows, of this sign, are summed."""
    x = sign * floats(t, rows, columns, low=0.5, high=2)
    blocks = -(-rows * WARP // THREADS)
    counted = launch(t, blocks, THREADS, {"x": x, "out": empty(rows)}, EXPECTED)
    exact = x.astype(float)
    mistakes = [
        Mistake("lane", exact[:, ::WARP].sum(axis=1),
                "That is what one lane has added up. How do the lanes get together?"),
        Mistake("rounds", sum(exact[:, k::WARP].sum(axis=1) for k in range(16)),
                "Half of the lanes are missing. With which distance do the rounds begin?"),
    ]  # fmt: skip
    says = "After the rounds one lane has the sum of all; this is another's. Which lane is it?"
    mistakes += [Mistake("another_lane", each, says) for each in after_rounds(exact).T[1:]]
    attempt = (
        "Which columns are in it? Follow a lane's columns first, then the rounds of the lanes."
    )
    written(t, counted, exact.sum(axis=1), "out", attempt=attempt, mistakes=mistakes,
            rtol=1e-4)  # fmt: skip
    return counted


def after_rounds(x: np.ndarray) -> np.ndarray:
    """Return each lane's value after the rounds: float64 (rows, 32), for x (rows, columns)."""
    sums = np.stack([x[:, k::WARP].sum(axis=1) for k in range(WARP)], axis=1)
    for step in (16, 8, 4, 2, 1):
        # A lane with no partner that far up gets its own value.
        sums = sums + np.concatenate([sums[:, step:], sums[:, -step:]], axis=1)
    return sums


@k_warp_sum.check(points=1)
def a_column_a_lane(t: Tester) -> None:
    """Rows of 32 elements: one an element a lane."""
    ask(t, 4 * int(t.fixed.integers(1, 4)), WARP)


@k_warp_sum.check(points=2)
def any_size(t: Tester) -> None:
    """Rows of any length, and more warps than rows."""
    ask(t, 4 * int(t.fixed.integers(1, 4)) - int(t.fixed.integers(1, 4)), 75)
    ask(t, 3, int(t.fixed.integers(1, WARP)), sign=-1)
    ask(t, 2, 0)
    ask(t, 5, WARP * 3 + int(t.fixed.integers(1, WARP)))
    ask(t, 2, 1500)


@k_warp_sum.check(points=2)
def side_by_side(t: Tester) -> None:
    """Lanes read neighbours, and need no shared memory for it."""
    counted = ask(t, 8, 4 * WARP)
    if counted.warps("shared"):
        attempt = "The value can go from lane to lane, through no memory at all."
        t.fail("shared", "no shared memory", "shared memory in use", attempt)
    loads = [a for a in counted.accesses if (a["kind"], a["space"]) == ("load", "global")]
    sectors, least = sum(a["sectors"] for a in loads), sum(a["least"] for a in loads)
    if sectors > least:
        worst = max(loads, key=lambda a: a["sectors"])
        attempt = "What lies beside the element that lane 0 reads? Which lane reads that one?"
        expected = f"{least} sectors of 32 bytes read, as few as can be"
        t.fail("coalesced", expected, f"{sectors}", attempt,
               where=place(t, worst["line"], worst["text"]))  # fmt: skip
    counted = ask(t, 6, 75)
    if (often := counted.reads["x"] != 1).any():
        attempt = "Which lanes read this element? The shuffles bring it to the others."
        got = f"{counted.reads['x'][often][0]} times"
        t.fail("reads", "each element of x read once", got, attempt)
    attempt = "Which columns does the docstring give to a lane? Follow lane 1."
    expected = "lane k reads columns k, k + 32, k + 64 and so on"
    in_turn(t, counted.readers["x"], 6, WARP, expected, "lane", attempt)
