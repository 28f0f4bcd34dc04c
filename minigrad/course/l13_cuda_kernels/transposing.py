"""A transpose that reads and writes neighbours, through a tile without bank conflicts."""

from __future__ import annotations

from minigrad.course.l13_cuda_kernels import lesson
from minigrad.course.l13_cuda_kernels.launching import (
    Counted,
    empty,
    floats,
    launch,
    place,
    written,
)
from minigrad.grader.tester import Mistake, Tester

k_transpose = lesson.exercise(
    "k_transpose",
    difficulty=4,
    minutes=20,
    returns="out filled by the kernel",
    hints=(
        "In both global accesses, threadIdx.x must stand in the last index: it is what differs "
        "from lane to lane. Then the transposing has to happen elsewhere: in the tile.",
        "Read x[top + ty, left + tx] into the tile, wait for all, and write out[left + ty, top + "
        "tx] from the tile, with its indices swapped. Each access has its own guard. For the "
        "banks: 32 lanes read a column of the tile; how far apart do its elements lie?",
        "With a tile of (SQUARE, 33), the elements of a column lie 33 apart, so in 32 "
        "different banks. Nothing is ever stored in the additional column.",
    ),
)
SQUARE = 32
EXPECTED = "out[j, i] = x[i, j]"


def ask(t: Tester, n: int, m: int) -> Counted:
    """Launch; fail unless out is the transpose."""
    x = floats(t, n, m)
    blocks = (-(-m // SQUARE), -(-n // SQUARE))
    given = {"x": x, "out": empty(m, n)}
    counted = launch(t, blocks, (SQUARE, SQUARE), given, EXPECTED)
    mistakes = []
    if n == m:
        mistakes = [Mistake("copied", x, "That is x itself. Where do rows become columns?")]
        blocked = x.copy()
        for i in range(0, n, SQUARE):
            for j in range(0, n, SQUARE):
                here = slice(i, i + SQUARE), slice(j, j + SQUARE)
                blocked[here] = x[here].T
        says = "Each tile is transposed, and lies where it lay. Where does block (bx, by) write?"
        mistakes.append(Mistake("tile_in_place", blocked, says))
    attempt = "Follow one element: into which place of the tile, and from there to where?"
    written(t, counted, x.T, "out", attempt=attempt, mistakes=mistakes)
    return counted


@k_transpose.check(points=2)
def whole_tiles(t: Tester) -> None:
    """A square matrix of whole tiles; no thread runs ahead."""
    ask(t, 2 * SQUARE, 2 * SQUARE)


@k_transpose.check(points=2)
def any_size(t: Tester) -> None:
    """Matrices of any size, where tiles overhang."""
    for _ in range(2):
        n, m = (int(i) for i in t.fixed.integers(2, 2 * SQUARE + 10, 2))
        ask(t, n, m + (n == m))
    ask(t, 3 * SQUARE + 7, SQUARE + 1)
    ask(t, 3, 3 * SQUARE + 7)


@k_transpose.check(points=2)
def neighbours(t: Tester) -> None:
    """Reading and writing, a warp touches as few sectors of global memory as can be."""
    counted = ask(t, 2 * SQUARE, SQUARE)
    for kind, verb in (("load", "reads"), ("store", "writes")):
        here = [a for a in counted.accesses if (a["kind"], a["space"]) == (kind, "global")]
        sectors, least = sum(a["sectors"] for a in here), sum(a["least"] for a in here)
        if sectors > least:
            worst = max(here, key=lambda a: a["sectors"])
            per_warp = worst["sectors"] / max(worst["warps"], 1)
            expected = f"a warp {verb} 32 neighbours: {least // max(worst['warps'], 1)} sectors"
            attempt = "tx is what differs between the lanes of a warp. Which index has it here?"
            if not counted.warps("shared"):
                attempt = (
                    "Straight from x to out, reading and writing cannot both go along rows: one "
                    "strides. Through what could the elements go, so that both can?"
                )
            t.fail("coalesced", expected, f"{per_warp:.0f} sectors an access", attempt,
                   where=place(t, worst["line"], worst["text"]))  # fmt: skip


@k_transpose.check(points=2)
def banks(t: Tester) -> None:
    """The 32 lanes of a warp use 32 different banks of shared memory."""
    counted = ask(t, 2 * SQUARE, SQUARE)
    here = [a for a in counted.accesses if a["space"] == "shared"]
    if not here:
        attempt = "Where do rows become columns, if reading and writing both go along rows?"
        t.fail("no_tile", "a tile in shared memory", "no use of shared memory", attempt)
    for access in here:
        if access["turns"] > access["least_turns"]:
            turns = access["turns"] / access["warps"]
            attempt = "How far apart are the lanes' elements? Element k lies in bank k % 32."
            t.fail("conflicts", "one pass for the 32 lanes of a warp", f"{turns:.0f} passes",
                   attempt, where=place(t, access["line"], access["text"]))  # fmt: skip
