"""The long runs of lesson 17: what each trains, what its score is, and the bar."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from minigrad.course.text_rows import CUTS, LENGTH, PLACES, look_back, others, same_with_cache
from minigrad.course.trigram import trigram_bits
from minigrad.grader.folder import CourseError
from minigrad.grader.message import a_kind

N_SEEDS = 5  # runs have the seeds 0 to 4
Record = Callable[..., None]  # record(number), or record(number, x) for the x of its curve


@dataclass(frozen=True)
class Capstone:
    """A training of the learner's that is run once for each seed.

    Attributes:
        exercise_id: the exercise that it runs.
        title: what is trained, in words.
        xlabel, ylabel: the axes of its curve.
        score: what a run's score is, in words.
        bar: what the scores must reach, in words.
        run: run(function, seed, record) trains, and returns the score.
        shown: a score as text.
        is_passed: whether the scores of all seeds reach the bar.
        worst: the score of a training that diverged.
        prepare: raises CourseError if something that it needs is not installed.
    """

    exercise_id: str
    title: str
    xlabel: str
    ylabel: str
    score: str
    bar: str
    run: Callable[[Callable, int, Record], float]
    is_passed: Callable[[Sequence[float]], bool]
    shown: Callable[[float], str]
    worst: float = 0.0
    prepare: Callable[[], object] = lambda: None

    @property
    def name(self) -> str:
        """Return the name of the learner's function."""
        return self.exercise_id.partition(".")[2]


def digits(seed: int) -> tuple[tuple, tuple]:
    """Return the images and labels to train with, and those held out, a fifth of each class."""
    import minigrad as mg

    return mg.data.stratified_split(*mg.data.load_digits(), seed=seed)


def unfit(name: str, wanted: str, got: str) -> CourseError:
    """Return the error of a function that returned something else than its docstring says."""
    return CourseError(f"{name}: wanted {wanted}, got {got}: `minigrad check 17.{name}` says more")


def run_digits(function: Callable, seed: int, record: Record) -> float:
    """Return the share of the images held out that are read correctly."""
    (images, labels), (new, right) = digits(seed)
    read: Any = function(images, labels, seed, record)
    if not callable(read):
        raise unfit("read_digits", "read, a function of images", a_kind(type(read).__name__))
    predicted: Any = read(new)
    if np.shape(predicted) != right.shape:
        raise unfit("read_digits", f"{len(right)} labels from read", f"shape {np.shape(predicted)}")
    return float(np.mean(np.asarray(predicted) == right))


READS = 0.97
TEXT_STEPS = 1000
PIECES, OF_TEN = 20, 9  # the text in pieces, of each so many tenths to train with


@cache
def text() -> tuple[str, np.ndarray, list[np.ndarray]]:
    """Return the alphabet, the tokens to train with, and pieces of tokens that are held out.

    A token is a character's place in the alphabet.
    """
    import minigrad as mg

    written = mg.data.load_text()
    alphabet = "".join(sorted(set(written)))
    tokens = np.searchsorted(np.array(list(alphabet)), np.array(list(written)))
    pieces = np.array_split(tokens, PIECES)
    cuts = [len(piece) * OF_TEN // 10 for piece in pieces]
    pairs = list(zip(pieces, cuts, strict=True))
    return alphabet, np.concatenate([p[:cut] for p, cut in pairs]), [p[cut:] for p, cut in pairs]


def bits_per_token(scores: np.ndarray, right: np.ndarray) -> float:
    """Return the mean of -log2 p(the right token); p is the softmax of scores (..., kinds)."""
    scores = np.asarray(scores, np.float64)
    scores = scores - scores.max(axis=-1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return float(-np.take_along_axis(logs, right[..., None], axis=-1).mean() / np.log(2))


@cache
def text_baseline() -> float:
    """Return the bits a character that a trigram needs for the text held out."""
    alphabet, tokens, held_out = text()
    bits = [trigram_bits(tokens, piece, len(alphabet)) for piece in held_out]
    return float(np.mean(bits))


def held_out_bits(model: Callable) -> float:
    """Return the bits a character that a model needs for the text held out, in windows."""
    import minigrad

    mg: Any = minigrad  # its names appear on first use
    _, _, held_out = text()
    bits = []
    for piece in held_out:
        n = (len(piece) - 1) // LENGTH
        here, right = (piece[i : i + n * LENGTH].reshape(n, LENGTH) for i in (0, 1))
        with mg.no_grad():
            scores = model(mg.variable(here)).numpy()
        bits.append(bits_per_token(scores, right))
    return float(np.mean(bits))


def run_text(function: Callable, seed: int, record: Record) -> float:
    """Return the bits a character that a trained model needs for the text held out."""
    import minigrad as mg

    alphabet, tokens, held_out = text()
    model = function(tokens.copy(), len(alphabet), TEXT_STEPS, seed, record)
    if not isinstance(model, mg.nn.Module):
        raise unfit("write_text", "the model, a mg.nn.Module", a_kind(type(model).__name__))
    bits = held_out_bits(model)
    if np.isfinite(bits):
        keeps_promises(model, len(alphabet), np.stack([one[:LENGTH] for one in held_out[:2]]))
    return bits


def keeps_promises(model: Any, n_kinds: int, rows: np.ndarray) -> None:
    """Raise CourseError if a model sees a later token, or tells something else with a cache.

    Its bits would be those of no model of text. `minigrad check` judges by the same two functions.
    """
    from minigrad.course.l17_capstone.engine_driver import ask

    def fail(key: str, wanted: str, got: str, attempt: str) -> None:
        del key, attempt  # the check says what to try
        raise unfit("write_text", wanted, got)

    changed = [others(rows, at, range(n_kinds), 1) for at in PLACES]
    look_back(fail, ask(model, rows, changed, CUTS[0]), n_kinds)
    for cuts in CUTS:
        same_with_cache(fail, ask(model, rows, [], cuts), n_kinds)


POLE_STEPS, LAST, GOOD, MOST_SEEDS = 40_000, 20, 195.0, 3


def load_gymnasium() -> Any:
    """Return gymnasium, which has the game; raise CourseError if it is missing or does not load."""
    try:
        return importlib.import_module("gymnasium")
    except Exception as error:  # a broken one may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name == "gymnasium":
            status, then = "not installed here", "pip install gymnasium"
        else:
            told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            status = f"installed here, but does not load ({told})"
            then = "pip install --force-reinstall gymnasium"
        raise CourseError(
            f"the game, CartPole-v1, is gymnasium's, which is {status}. Your file is not at fault. "
            f"Try: {then}"
        ) from error


class Counted:
    """A game of gymnasium's that counts its steps and keeps the return of each finished game."""

    def __init__(self, game: Any, most: int) -> None:
        self.game, self.most = game, most
        self.observation_space, self.action_space = game.observation_space, game.action_space
        self.steps, self.since, self.returns = 0, 0.0, []

    def reset(self, **options: Any) -> Any:
        """Begin a game."""
        self.since = 0.0
        return self.game.reset(**options)

    def step(self, action: Any) -> Any:
        """Make a step; raise CourseError beyond the most that there are."""
        self.steps += 1
        if self.steps > self.most:
            raise CourseError(f"balance_pole: env.step was called more than {self.most:,} times")
        told = self.game.step(action)
        self.since += float(told[1])
        if told[2] or told[3]:
            self.returns.append(self.since)
        return told


def cart_pole(most: int) -> Counted:
    """Return the game for so many steps; raise CourseError if gymnasium does not load."""
    return Counted(load_gymnasium().make("CartPole-v1"), most)


def run_pole(function: Callable, seed: int, record: Record) -> float:
    """Return the mean return of the last 20 games of a training; its curve goes over its steps."""
    game = cart_pole(POLE_STEPS)
    function(game, POLE_STEPS, seed, lambda mean: record(mean, game.steps))
    if len(game.returns) < LAST:
        return 0.0
    return float(np.mean(game.returns[-LAST:]))


CAPSTONES = {
    one.name: one
    for one in (
        Capstone(
            "17.read_digits",
            title="handwritten digits",
            xlabel="training step",
            ylabel="loss",
            score="read correctly, of the digits held out",
            bar="a median of 97 % or more",
            run=run_digits,
            is_passed=lambda scores: bool(np.median(scores) >= READS),
            shown=lambda score: f"{score:.1%}",
        ),
        Capstone(
            "17.write_text",
            title="text, character by character",
            xlabel="training step",
            ylabel="loss",
            score="bits a character held out",
            bar="each seed needs fewer bits than a trigram, which needs 2.65",
            run=run_text,
            is_passed=lambda scores: all(score < text_baseline() for score in scores),
            shown=lambda score: f"{score:.2f}",
            worst=np.inf,
        ),
        Capstone(
            "17.balance_pole",
            title="a pole on a cart",
            xlabel="step of the game",
            ylabel="mean return of 20 games",
            score="mean return of the last 20 games",
            bar="195 or more in 3 seeds or more, within 40,000 steps",
            run=run_pole,
            is_passed=lambda scores: sum(score >= GOOD for score in scores) >= MOST_SEEDS,
            shown=lambda score: f"{score:.0f}",
            prepare=load_gymnasium,
        ),
    )
}
