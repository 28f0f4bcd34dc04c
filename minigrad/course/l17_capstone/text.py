"""Capstone C: a small transformer that writes text, and knows more than two characters back."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.course.capstone_tasks import N_SEEDS, bits_per_token
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.course.text_rows import (
    CUTS,
    LENGTH,
    PLACES,
    look_back,
    others,
    same_with_cache,
    shaped,
)
from minigrad.course.trigram import trigram_bits
from minigrad.grader.message import a_kind, counted
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
N_KINDS = KINDS + 2  # the first and the last never come: what is counted or taken away shows
STEPS, MARGIN = 150, 0.3  # of a training on it, and the bits by which it is better
SURELY = 0.9  # bits: each token is one of two others of its topic, so it needs 1
# The kinds as they are numbered where much is learned: a byte would hold half of them for others.
NUMBERS, MANY = np.r_[0, 1:7, 257:263], 264
SHORT = 25  # steps, for what shows without a whole training
WINDOWS = 32  # held out
LEAST = 400  # tokens of a text, as the docstring says


def topics(t: Tester, n: int) -> np.ndarray:
    """Return n tokens of a small language: each topic has a few kinds, in any order.

    No kind stands beside itself, so the next token is another question than the one after it. Two
    tokens say what two of a topic's kinds are; those further back say the rest.
    """
    rows = -(-n // TOPIC)
    kinds = np.argsort(t.random.random((rows, KINDS)), axis=1)[:, :FEW]
    which = t.random.integers(1, FEW, (rows, TOPIC)).cumsum(axis=1) % FEW
    return 1 + np.take_along_axis(kinds, which, axis=1).ravel()[:n]


def training(
    t: Tester,
    tokens: np.ndarray,
    seed: int,
    steps: int = SHORT,
    rows: Any = None,
    changed: Any = (),
    cuts: Any = CUTS[0],
    disturb: int = 1,
) -> Any:
    """Let the learner's function train for a few steps, and ask its model about other tokens.

    Two kinds of tokens never come: n_kinds says how many there are, the tokens do not.
    """
    given = f"write_text(tokens, n_kinds={N_KINDS}, steps={steps}, seed={seed}, record)"
    arguments = tokens, N_KINDS, steps, seed, rows, list(changed), list(cuts), disturb
    told = t.drive("write_text", *arguments, given=f"{given}, {len(tokens):,} tokens")
    if told["model"]:
        t.fail(
            "no_model",
            "the model, a mg.nn.Module",
            a_kind(told["model"]),
            "Return the model itself; model.valid() is one, too.",
        )
    if len(wrote := told["wrote"]):
        t.fail(
            "changed_input",
            "tokens that are left as they were",
            f"{counted(len(wrote), 'token')} changed, the first at place {wrote[0]:,}",
            "Who writes into the array that came, by any name? np.asarray of an array is no copy.",
        )
    return told


def asked(t: Tester, places: tuple[int, ...] = (), cuts: Any = CUTS[0]) -> Any:
    """Return what a model told about two rows of tokens, and with a change at each of the places.

    Without places, also what it told token by token, with a cache. cuts: as `ask` takes them.
    """
    rows = topics(t, 2 * LENGTH).reshape(2, LENGTH)
    kinds = range(1, KINDS + 1)
    changed = [others(rows, place, kinds, int(t.random.integers(1, KINDS))) for place in places]
    seed = int(t.random.integers(10, 90))
    told = training(t, topics(t, 2000), seed, rows=rows, changed=changed, cuts=cuts)
    t.given += f"; the model is asked about tokens {rows.shape}"
    return told


@write_text.check(points=2)
def recorded_training(t: Tester) -> None:
    """Each step's loss is recorded, no graph is kept, and a seed repeats a training."""
    seed, tokens = int(t.random.integers(10, 90)), topics(t, LEAST)  # each place comes up in some
    runs = [training(t, tokens, one, disturb=k) for k, one in enumerate((seed, seed, seed + 1))]
    for told in runs:
        recorded(t, told, min(SHORT, max(1, told["steps"])))
    as_many_steps(t, runs[0], SHORT)
    keeps_nothing(t, runs[0])
    moved = runs[0]["moved"]
    if moved and (not moved[-1] or sum(moved) < len(moved) / 2):
        late = [SHORT - len(moved) + 1 + i for i, one in enumerate(moved) if not one]
        which = f"calls {late[0]}, {late[1]} …" if late[1:] else f"call {late[0]}, the last"
        t.fail(
            "record_late",
            "record called after each step: between two calls the weights change",
            f"{which}: no change since the call before",
            "What comes between two calls of record: a step that changes weights, or nothing?",
        )
    first, again, other = runs
    if np.array_equal(first["losses"], other["losses"]):
        of_others = training(t, topics(t, LEAST), seed)
        if np.array_equal(first["losses"], of_others["losses"]):
            t.fail(
                "other_tokens",
                "other losses with other tokens",
                "the same numbers to the last bit",
                "Is what is recorded the loss of the step that was just made, in this call?",
            )
    t.given = f"write_text(tokens, n_kinds={N_KINDS}, steps={SHORT}, seed, record), "
    t.given += f"{len(tokens)} tokens"
    same_numbers(t, first, again, other, (seed, seed + 1))
    few(t)


def as_many_steps(t: Tester, told: Any, steps: int) -> None:
    """Fail unless as many steps were recorded as were asked for."""
    if told["steps"] != steps:
        t.fail(
            "steps",
            f"record called {counted(steps, 'time')}: steps={steps}",
            counted(told["steps"], "time"),
            "The caller says how many steps there are, and each is recorded once.",
        )


def are_alike(t: Tester, tokens: Any, *seeds: int) -> bool:
    """Return whether two seeds have equal second losses, too: a head may begin with zeros."""
    first, second = (training(t, tokens, seed, 2)["losses"] for seed in seeds)
    return np.array_equal(first, second)


def few(t: Tester) -> None:
    """Fail unless the seeds of a whole run, with a few steps each, are trainings of their own."""
    tokens, begins = topics(t, LEAST), {}
    for seed in range(N_SEEDS):
        told = training(t, tokens, seed, seed + 1)
        as_many_steps(t, told, seed + 1)
        loss = float(recorded(t, told, seed + 1)[0])
        if loss in begins and are_alike(t, tokens, begins[loss], seed):
            t.fail(
                "same_for_all",
                f"seeds {begins[loss]} and {seed}: two trainings",
                "the same losses to the last bit",
                "Does all of the seed reach what draws, or a part of it?",
            )
        begins[loss] = seed


@write_text.check(points=3)
def causal(t: Tester) -> None:
    """A token that changes leaves the scores before it as they were, to the last bit."""
    told = asked(t, PLACES)
    look_back(t.fail, told, N_KINDS)
    if not np.array_equal(told["whole"], told["later"]):
        t.fail(
            "other_training",
            "a model that stays as it was when write_text is called again, with another seed",
            "other scores for the same tokens",
            "What do two trainings share? A model, or weights, that outlive a call?",
        )


@write_text.check(points=3, only_with=("causal",))
def cached(t: Tester) -> None:
    """Token by token, with a cache, the scores are those of the whole row."""
    for cuts in CUTS:
        same_with_cache(t.fail, asked(t, cuts=cuts), N_KINDS)


@write_text.check(points=6)
def beats_a_trigram(t: Tester) -> None:
    """Trained on a small language, the model knows more than two tokens back.

    Tokens come in topics of 40, each of 3 kinds out of 12, and none stands beside itself.
    """
    tokens, new = topics(t, 20_000), topics(t, WINDOWS * (LENGTH + 1))
    windows = NUMBERS[new].reshape(WINDOWS, LENGTH + 1)
    given = f"write_text(tokens, n_kinds={MANY}, steps={STEPS}, seed=0, record), 20,000 tokens"
    told = t.drive("held_out", NUMBERS[tokens], MANY, STEPS, 0, windows[:, :-1], given=given)
    recorded(t, told, STEPS)
    scores = shaped(t.fail, told["scores"], (WINDOWS, LENGTH, MANY), "model(tokens)")
    got = bits_per_token(scores, windows[:, 1:])
    baseline = trigram_bits(tokens - 1, new - 1, KINDS)
    limit = baseline - MARGIN
    if not got < limit:
        t.fail(
            "no_better",
            f"fewer than {limit:.2f} bits for each token held out (a trigram: {baseline:.2f})",
            f"{got:.2f} bits",
            why(told, scores, windows[:, 1:], limit),
        )


def why(told: Any, scores: np.ndarray, right: np.ndarray, limit: float) -> str:
    """Return what to try where scores need too many bits: what they and the losses show."""
    recent = float(np.mean(told["losses"][-15:])) / np.log(2)
    came = f"The losses came down to {recent:.2f} bits"
    if scores.min() >= 0 and np.abs(scores.sum(axis=-1) - 1).max() < 1e-3:
        return (
            "Scores of a place add up to 1. Which does cross_entropy take, and which does the "
            "model return?"
        )
    if recent < limit:
        last, before, high, low = (
            bits_per_token(scores[part], right[part])
            for part in (np.s_[:, -1], np.s_[:, -8:-1], right >= 256, right < 256)
        )
        if high > low + 1:
            return (
                f"Tokens from 256 on need {high:.2f} bits, those below {low:.2f}. In what are "
                "tokens kept on their way to the model, and what does that hold?"
            )
        if before > last + 0.6:  # places so late need nearly the same
            return (
                f"The last place of a row needs {last:.2f} bits, the 7 before it {before:.2f}. "
                "Which places does the loss ask?"
            )
        if recent < SURELY:
            return (
                f"{came}: nobody knows the next token here to less than 1. Are all rows of the "
                "training the same few, or does a row show what it is asked for?"
            )
        if bits_per_token(scores, right) < np.log2(KINDS):
            return (
                f"{came}, of something else. Are its rows tokens as they follow on each other, "
                "and does it ask each place for the one that comes next?"
            )
        return (
            f"{came}. Is what you return what has learned, and all that it learned? Are its "
            "scores those that the loss took?"
        )
    if 2 * told["still"] > told["weights"]:
        return (
            f"{told['still']} of {told['weights']} weights were never changed. What keeps their "
            "gradients, or the optimizer, from them?"
        )
    if recent > np.log2(KINDS):
        return (
            f"{came}, the kinds alone need {np.log2(KINDS):.2f}. Does each step change the "
            "weights, downhill?"
        )
    return f"{came}. Does attention reach back? Is the score at place i that of token i + 1?"
