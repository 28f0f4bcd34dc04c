"""Capstone C: a small transformer that writes text, and knows more than two characters back."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.capstone_tasks import LENGTH, bits_per_token
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.course.trigram import trigram_bits
from minigrad.grader.compare import disagreements
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

write_text = lesson.exercise(
    "write_text",
    difficulty=5,
    minutes=120,
    returns="the trained model, a mg.nn.Module",
    needs="engine",
    is_open=True,
    limits=LIMITS,
    hints=(
        "Begin without a cache: embeddings of tokens and of places, blocks, a layer norm, scores. "
        "mg.nn.TransformerBlock(size, heads, causal=True) is a block. See the loss fall.",
        "For the cache you need your own attention: project x to q, k and v, append k and v to "
        "those of the cache, and let mg.scaled_dot_product_attention do the rest. A single new "
        "token may see all that came before, so it needs no mask.",
        "cache['seen'] says how many tokens there were: the place of the next one. Keys and values "
        "go into the dict under the number of the block: cache[i] = (k, v).",
    ),
)
KINDS, TOPIC, FEW = 12, 40, 3  # of the small language
STEPS, MARGIN = 150, 0.2  # of a training on it, and the bits by which it is better
SHORT = 25  # steps, for what shows without a whole training
ASKED, PLACES = LENGTH // 2, (1, 5, 13)  # tokens in a row; those that change


def topics(t: Tester, n: int) -> np.ndarray:
    """Return n tokens of a small language: each topic has a few kinds, in any order.

    Two tokens say what one or two of a topic's kinds are; those further back say the rest.
    """
    rows = -(-n // TOPIC)
    kinds = np.argsort(t.random.random((rows, KINDS)), axis=1)[:, :FEW]
    which = t.random.integers(0, FEW, (rows, TOPIC))
    return np.take_along_axis(kinds, which, axis=1).ravel()[:n]


def training(
    t: Tester, tokens: np.ndarray, seed: int, probe: Any = None, changed: Any = (), disturb: int = 1
) -> Any:
    """Let the learner's function train for a few steps, and ask its model about other tokens."""
    probe = np.zeros((0, 1), np.int64) if probe is None else probe
    given = f"write_text(tokens, n_kinds={KINDS}, steps={SHORT}, seed={seed}, record)"
    told = t.drive(
        "write_text", tokens, KINDS, SHORT, seed, probe, list(changed), disturb, given=given
    )
    if told["model"]:
        t.fail(
            "no_model",
            "the model, a mg.nn.Module",
            a_kind(told["model"]),
            "Return the model itself; model.valid() is one, too.",
        )
    if told["wrote"]:
        t.fail(
            "changed_input",
            "tokens that are left as they were",
            "they were written to",
            "Cut your windows out of it by indexing, which copies.",
        )
    return told


def asked(t: Tester, places: tuple[int, ...] = ()) -> Any:
    """Return what a model told about two rows of tokens, and with a change at each of the places.

    Without places, also what it told token by token, with a cache.
    """
    probe = topics(t, 2 * ASKED).reshape(2, ASKED)
    changed = []
    for place in places:
        other = probe.copy()
        other[0, place] = (other[0, place] + int(t.random.integers(1, KINDS))) % KINDS
        changed.append(other)
    told = training(t, topics(t, 4000), int(t.random.integers(10, 90)), probe, changed)
    t.given += f"; the model is asked about tokens (2, {ASKED})"
    shaped(t, told["whole"], (2, ASKED, KINDS), "model(tokens)")
    shaped(t, told["short"], (2, 1, KINDS), "model(tokens[:, :1])")
    return told


def shaped(t: Tester, scores: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Return scores; fail unless they are an array of numbers of this shape."""
    if isinstance(scores, str):
        t.fail(
            "type",
            f"{what}: a Variable {shape}",
            a_kind(scores),
            "The model's forward returns the scores, and nothing else.",
        )
    if np.shape(scores) != shape:
        t.fail(
            "shape",
            f"{what}: a score for each kind of token at each place, {shape}",
            f"shape {np.shape(scores)}",
            "At each place, the model guesses the token after it.",
        )
    if not np.isfinite(scores).all():
        t.fail(
            "nan",
            f"{what}: finite scores",
            f"{show(np.ravel(scores)[:3])} …",
            "A row of attention that sees nothing, or a training that diverged?",
        )
    return np.asarray(scores)


@write_text.check(points=3)
def causal(t: Tester) -> None:
    """A token that changes leaves the scores before it as they were, to the last bit."""
    told = asked(t, PLACES)
    whole = told["whole"]
    if not np.array_equal(whole, told["again"]):
        t.fail(
            "by_chance",
            "the same scores when the same tokens come again",
            "other scores",
            "Dropout draws at random. model.valid() has none.",
        )
    for place, scores in zip(PLACES, told["changed"], strict=True):
        scores = shaped(t, scores, whole.shape, "model(tokens)")
        before = (scores[0, :place] != whole[0, :place]).any(axis=-1)
        if before.any():
            size = np.abs(scores[0, :place] - whole[0, :place]).max()
            t.fail(
                "future",
                f"token {place} changed: scores at places 0 to {place - 1} as before",
                f"place {int(np.argmax(before))} differs, the largest difference is {size:.1e}",
                "What does a place see of those after it? Also through a mean, or a norm.",
            )
        if (scores[1] != whole[1]).any():
            t.fail(
                "other_row",
                "a token of row 0 changed: row 1 as before",
                "row 1 differs",
                "Rows of a batch know nothing of each other. Which step mixes them?",
            )
        if np.array_equal(scores[0, place], whole[0, place]):
            t.fail(
                "blind",
                f"token {place} changed: another score at place {place}",
                "the same scores",
                "A place sees itself and all before it. Is the mask one too strict?",
            )


@write_text.check(points=3, only_with=("causal",))
def cached(t: Tester) -> None:
    """Token by token, with a cache, the scores are those of the whole row."""
    told = asked(t)
    whole, rows = told["whole"], told["cached"]
    got = np.stack(
        [
            np.concatenate(
                [shaped(t, one, (1, 1, KINDS), "model(token, cache)")[:, 0] for one in row]
            )
            for row in rows
        ],
        axis=1,
    )
    wrong = np.asarray(disagreements(got, whole, rtol=1e-3, atol=1e-4).any(axis=-1))
    if not wrong.any():
        return
    row, place = (int(i) for i in np.argwhere(wrong)[0])
    size = np.abs(got - whole)[row, place].max()
    said = f"row {row}, place {place}: they differ by {size:.1e}"
    key = "cache_later"
    attempt = (
        "Is the place of a token how many came before it? Do old keys and values stand before "
        "new ones, in each block?"
    )
    if not wrong[0, 0] and wrong[1, 0]:
        key, attempt = "cache_shared", "Two rows, two caches. Where else does your model keep some?"
    elif place == 0:
        key, attempt = "cache_first", "With an empty cache, a single token sees itself alone."
    t.fail(key, "model(token, cache) = the scores of model(tokens) there, to 0.0001", said, attempt)


@write_text.check(points=2)
def recorded_training(t: Tester) -> None:
    """Each step's loss is recorded, no graph is kept, and a seed repeats a training."""
    seed, tokens = int(t.random.integers(10, 90)), topics(t, 4000)
    runs = [training(t, tokens, one, disturb=k) for k, one in enumerate((seed, seed, seed + 1))]
    for told in runs:
        recorded(t, told, min(SHORT, max(1, told["steps"])))
    if runs[0]["steps"] != SHORT:
        t.fail(
            "steps",
            f"record called {SHORT} times: steps={SHORT}",
            f"{runs[0]['steps']} times",
            "The caller says how many steps there are; a schedule may need to know, too.",
        )
    keeps_nothing(t, runs[0])
    first, again, other = runs
    same_numbers(t, first, again, other, (seed, seed + 1))


@write_text.check(points=6)
def beats_a_trigram(t: Tester) -> None:
    """Trained on a small language, the model knows more than two tokens back.

    Tokens come in topics of 40, each of 3 kinds out of 12.
    """
    tokens, new = topics(t, 20_000), topics(t, 16 * (LENGTH + 1))
    windows = new.reshape(16, LENGTH + 1)
    given = f"write_text(tokens, n_kinds={KINDS}, steps={STEPS}, seed=0, record), 20,000 tokens"
    told = t.drive("held_out", tokens, KINDS, STEPS, 0, windows[:, :-1], given=given)
    recorded(t, told, STEPS)
    scores = shaped(t, told["scores"], (16, LENGTH, KINDS), "model(tokens)")
    got = bits_per_token(scores, windows[:, 1:])
    baseline = trigram_bits(tokens, new, KINDS)
    if not got < baseline - MARGIN:
        t.fail(
            "no_better",
            f"fewer than {baseline - MARGIN:.2f} bits for each token held out "
            f"(a trigram: {baseline:.2f})",
            f"{got:.2f} bits",
            "Does attention reach back? Is the score at place i that of token i + 1?",
        )
