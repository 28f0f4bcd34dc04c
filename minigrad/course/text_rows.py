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
ROUNDED = 0.01  # of the largest score: a difference as small everywhere looks like rounding
STRICT = "A place sees itself and all before it. Is the mask one too strict?"
FLAT = "All kinds have one score there, whatever the tokens are. What makes them alike?"


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
    if (got := np.shape(scores)) != shape:
        attempt = "For each token that came in this call, a guess of the one after it."
        if len(got) < len(shape) and np.prod(got) == np.prod(shape):
            attempt = "Three axes, even where one has length 1. Which step takes it away?"
        elif got[:-1] == shape[:-1]:
            attempt = "n_kinds says how many kinds there are, even of those that never came."
        elif sorted(got) == sorted(shape):
            attempt = "All are there. In which order do the axes stand, and which step turns them?"
        fail(
            "shape",
            f"{what}: a score for each kind of token at each place, {shape}",
            f"shape {got}",
            attempt,
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
                _unchanged(fail, told, told[before], scores, place)
    for name, what in (("short", f"the first {SHORTER} tokens alone"), ("single", "one token")):
        got = told[name]
        wrong = far(got, told["whole"][:, : got.shape[1]])
        if wrong.any():
            row, place = (int(i) for i in np.argwhere(wrong)[0])
            fail(
                "length",
                f"rows of {what}: the scores that they have in a row of {LENGTH}",
                f"row {row}, place {place}: other scores",
                "What in the model hangs on how many tokens there are, or on all of them at once "
                "(a mean, a maximum)?",
            )
    if far(told["alone"], told["whole"][1:]).any():
        fail(
            "other_row",
            "row 1 alone: the scores that it has beside row 0",
            "other scores",
            "Rows of a batch know nothing of each other. Which step mixes them?",
        )


def _early(whole: np.ndarray, scores: Any, place: int) -> np.ndarray:
    """Return at which places before a changed token of row 0 its scores changed."""
    if np.shape(scores) != whole.shape:
        return np.zeros(place, bool)
    return (scores[0, :place] != whole[0, :place]).any(axis=-1)


def _whose(told: dict[str, Any], n: int, place: int) -> str:
    """Return what to try where a place sees a later one: what other rows and places do not do."""
    pairs = zip(PLACES, told["changed_short"], strict=True)
    short = {at: _early(told["short"], one, at).any() for at, one in pairs if at < SHORTER}
    if place == LENGTH - 1 and short[SHORTER - 1]:
        return "A row's last token does so, others do not. What wraps round, to places before it?"
    if place == LENGTH - 1 or (n == LENGTH and place in short and not short[place]):
        return f"Rows of {SHORTER} do no such thing. Where does a length come in?"
    if n == SHORTER:
        return f"Rows of {LENGTH} do no such thing. Where does a length come in?"
    return "What does a place see of those after it? Also through a mean, or a norm."


def _unchanged(
    fail: Fail, told: dict[str, Any], whole: np.ndarray, scores: np.ndarray, place: int
) -> None:
    """Fail unless a changed token of row 0 changed the scores at its place, and none before it."""
    before = _early(whole, scores, place)
    of = f"token {place} of {whole.shape[1]} changed"
    if before.any():
        size = np.abs(scores[0, :place] - whole[0, :place]).max()
        fail(
            "future",
            f"{of}: scores at places 0 to {place - 1} as before, to the last bit",
            f"place {int(np.argmax(before))} differs, the largest difference is {size:.1e}",
            _whose(told, whole.shape[1], place),
        )
    if (scores[1] != whole[1]).any():
        fail(
            "other_row",
            "a token of row 0 changed: row 1 as before",
            "row 1 differs",
            "Rows of a batch know nothing of each other. Which step mixes them?",
        )
    if np.array_equal(scores[0, place], whole[0, place]):
        got, attempt = "the same scores", STRICT
        if np.ptp(scores[0, place]) == 0:
            got, attempt = f"the same scores, each of them {scores[0, place, 0]:g}", FLAT
        fail("blind", f"{of}: another score at place {place}", got, attempt)


def same_with_cache(fail: Fail, told: dict[str, Any], n_kinds: int) -> None:
    """Fail unless token by token, with a cache, the scores are those of the whole row."""
    right_shapes(fail, told, n_kinds)
    whole = told["whole"]

    def together(row: Sequence[Any]) -> np.ndarray:
        each = [shaped(fail, one, (1, 1, n_kinds), "model(token, cache)") for one in row]
        return np.concatenate(each, axis=1)

    got = np.concatenate([together(row) for row in told["cached"]])
    alone = np.concatenate([together(row) for row in told["fresh"]])
    wanted = "model(token, cache) = the scores of model(tokens) there, to 0.0001"
    whole = whole[:, : got.shape[1]]
    wrong, wrong_alone = far(got, whole), far(alone, whole[:, :AGAIN])
    if wrong.any():
        place = int(np.flatnonzero(wrong.any(axis=0))[0])
        row = int(np.flatnonzero(wrong[:, place])[0])
        size = np.abs(got[row, place] - whole[row, place]).max()
        said = f"row {row}, place {place}: they differ by {size:.1e}"
        seen = [j for j in range(place) if not far(got[row, place], whole[row, j])]
        if place == 0 and wrong[0, 0]:
            key = "cache_first"
            attempt = (
                "With an empty cache, a single token sees itself alone, in each block. Is all else "
                "as it is without a cache?"
            )
        elif place == 0 or (place < AGAIN and not wrong_alone[row].any()):
            key, attempt = "cache_shared", "Two rows, two caches. Where else does it keep some?"
            said += "; alone it is right, in turn with another row it is not" if place else ""
        elif not told["is_kept"]:
            key, said = "cache_empty", f"{said}; after all calls, the dict is still empty"
            attempt = "What is written into the dict that came? Is an empty one taken for none?"
        elif seen:
            key, said = "cache_repeats", f"{said}; they are those of place {seen[-1]}"
            attempt = "Of which call does it return the scores: of this one?"
        elif place >= AGAIN:
            key = "cache_long"
            attempt = (
                f"All places before are right. What is other once {place} tokens are kept: are "
                "some forgotten, or written over? Is each place counted on?"
            )
        elif np.abs(got - whole).max() <= ROUNDED * np.abs(whole).max():
            key = "cache_rounded"
            attempt = "That is little, and no other place is far worse. What is rounded on its way?"
        else:
            key = "cache_later"
            attempt = (
                "Is the place of a token how many came before it? Do old keys and values stand "
                "before new ones, in each block, as they were?"
            )
        fail(key, wanted, said, attempt)
    if wrong_alone.any():
        fail(
            "cache_kept",
            "an empty dict: a row that begins anew",
            f"place {int(np.argmax(wrong_alone.any(axis=0)))}: other scores than for the whole row",
            "All that is kept belongs into the dict itself. What outlives it in your model?",
        )
