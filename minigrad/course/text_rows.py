"""What a model of text promises beside its bits: it sees no later token, and its cache is exact.

`look_back` and `same_with_cache` judge what a model told of rows of tokens. Lesson 17's driver asks
it (`ask`), where the model is. The grader and `minigrad capstone` ask and judge alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Fail = Callable[[str, str, str, str], Any]  # fail(key, wanted, got, what to try) raises
LENGTH = 32  # the tokens that a model of text is asked about at a time
SHORTER = 11  # tokens of a row that is cut off: what holds for whole rows alone shows here
PLACES = (1, 5, 10, LENGTH - 1)  # of tokens that change
AGAIN = 3  # tokens that go into a fresh cache once more
# Two rows in turn, first with few tokens: a cache that both share is then not yet full.
CUTS = (SHORTER, 13, AGAIN), (SHORTER, LENGTH, AGAIN)
# Scores with a cache and without are sums in another order. The first is the docstring's; the other
# is some 100 roundings of float32, for a model whose scores are large.
ATOL, RTOL = 1e-4, 1e-5


def others(rows: np.ndarray, place: int, kinds: Sequence[int], by: int) -> np.ndarray:
    """Return rows of tokens of these kinds, with another one at a place of the first row."""
    rows = rows.copy()
    at = [*kinds].index(rows[0, place])
    rows[0, place] = kinds[(at + by) % len(kinds)]
    return rows


def shaped(fail: Fail, scores: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return scores; fail unless they are an array of numbers of this shape."""
    from minigrad.grader.message import a_kind, show

    if isinstance(scores, str):
        fail(
            "type",
            f"{what}: a Variable {shape}",
            a_kind(scores),
            "The model's forward returns the scores, and nothing else.",
        )
    if np.shape(scores) != shape:
        fail(
            "shape",
            f"{what}: a score for each kind of token at each place, {shape}",
            f"shape {np.shape(scores)}",
            "For each token that came in this call, a guess of the one after it.",
        )
    if not np.isfinite(scores).all():
        fail(
            "nan",
            f"{what}: finite scores",
            f"{show(np.ravel(scores)[:3])} …",
            "A row of attention that sees nothing, or a training that diverged?",
        )
    return np.asarray(scores)


def far(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return at which places scores (..., n, kinds) differ by more than another order of sums."""
    size = np.abs(wanted).max(axis=-1)
    return np.abs(np.asarray(got, np.float64) - wanted).max(axis=-1) > ATOL + RTOL * size


def right_shapes(fail: Fail, told: dict[str, Any], n_kinds: int) -> None:
    """Fail unless whole rows, shorter ones and a row alone have scores of their shapes."""
    for name, shape, what in (
        ("whole", (2, LENGTH), "model(tokens)"),
        ("short", (2, SHORTER), f"model(tokens[:, :{SHORTER}])"),
        ("single", (2, 1), "model(tokens[:, :1])"),
        ("alone", (1, LENGTH), "model(tokens[1:])"),
    ):
        shaped(fail, told[name], (*shape, n_kinds), what)


def look_back(fail: Fail, told: dict[str, Any], n_kinds: int) -> None:
    """Fail if a score hangs on anything but the tokens up to its place, in any bit."""
    right_shapes(fail, told, n_kinds)
    if not np.array_equal(told["whole"], told["again"]):
        fail(
            "by_chance",
            "the same scores when the same tokens come again",
            "other scores",
            "What does a call draw, or leave behind? Dropout draws; model.valid() has none.",
        )
    for before, name, n in (("whole", "changed", LENGTH), ("short", "changed_short", SHORTER)):
        for place, scores in zip(PLACES, told[name], strict=True):
            if place < n:
                scores = shaped(fail, scores, (2, n, n_kinds), "model(tokens)")
                _unchanged(fail, told[before], scores, place)
    for name, what in (("short", f"the first {SHORTER} tokens alone"), ("single", "one token")):
        got = told[name]
        wrong = far(got, told["whole"][:, : got.shape[1]])
        if wrong.any():
            row, place = (int(i) for i in np.argwhere(wrong)[0])
            fail(
                "length",
                f"rows of {what}: the scores that they have in a row of {LENGTH}",
                f"row {row}, place {place}: other scores",
                "What in the model hangs on how many tokens there are?",
            )
    if far(told["alone"], told["whole"][1:]).any():
        fail(
            "other_row",
            "row 1 alone: the scores that it has beside row 0",
            "other scores",
            "Rows of a batch know nothing of each other. Which step mixes them?",
        )


def _unchanged(fail: Fail, whole: np.ndarray, scores: np.ndarray, place: int) -> None:
    """Fail unless a changed token of row 0 changed the scores at its place, and none before it."""
    before = (scores[0, :place] != whole[0, :place]).any(axis=-1)
    of = f"token {place} of {whole.shape[1]} changed"
    if before.any():
        size = np.abs(scores[0, :place] - whole[0, :place]).max()
        fail(
            "future",
            f"{of}: scores at places 0 to {place - 1} as before, to the last bit",
            f"place {int(np.argmax(before))} differs, the largest difference is {size:.1e}",
            "What does a place see of those after it? Also through a mean, or a norm.",
        )
    if (scores[1] != whole[1]).any():
        fail(
            "other_row",
            "a token of row 0 changed: row 1 as before",
            "row 1 differs",
            "Rows of a batch know nothing of each other. Which step mixes them?",
        )
    if np.array_equal(scores[0, place], whole[0, place]):
        fail(
            "blind",
            f"{of}: another score at place {place}",
            "the same scores",
            "A place sees itself and all before it. Is the mask one too strict?",
        )


def same_with_cache(fail: Fail, told: dict[str, Any], n_kinds: int) -> None:
    """Fail unless token by token, with a cache, the scores are those of the whole row."""
    right_shapes(fail, told, n_kinds)
    whole = told["whole"]

    def together(row: Sequence[Any]) -> np.ndarray:
        each = [shaped(fail, one, (1, 1, n_kinds), "model(token, cache)") for one in row]
        return np.concatenate(each, axis=1)

    got = np.concatenate([together(row) for row in told["cached"]])
    wanted = "model(token, cache) = the scores of model(tokens) there, to 0.0001"
    wrong = far(got, whole[:, : got.shape[1]])
    if wrong.any():
        place = int(np.flatnonzero(wrong.any(axis=0))[0])
        row = int(np.flatnonzero(wrong[:, place])[0])
        size = np.abs(got[row, place] - whole[row, place]).max()
        said = f"row {row}, place {place}: they differ by {size:.1e}"
        if place == 0 and not wrong[0, 0]:
            key, attempt = "cache_shared", "Two rows, two caches. Where else does it keep some?"
        elif place == 0:
            key = "cache_first"
            attempt = (
                "With an empty cache, a single token sees itself alone, in each block. Is all else "
                "as it is without a cache?"
            )
        else:
            key = "cache_later"
            attempt = (
                "Is the place of a token how many came before it? Do old keys and values stand "
                "before new ones, in each block, as they were? Is all of it kept in the dict that "
                "came, even when that is empty, and in nothing that two rows share?"
            )
        fail(key, wanted, said, attempt)
    wrong = far(together(told["fresh"]), whole[1:, :AGAIN])[0]
    if wrong.any():
        fail(
            "cache_kept",
            "an empty dict: a row that begins anew",
            f"place {int(np.argmax(wrong))}: other scores than for the whole row",
            "All that is kept belongs into the dict itself. What outlives it in your model?",
        )
