"""Capstone B: a pole on a cart, balanced by deep Q-learning."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import minigrad
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.grader.compare import agree
from minigrad.grader.message import a_kind, counted
from minigrad.grader.tester import Tester

mg: Any = minigrad  # its names appear on first use
balance_pole = lesson.exercise(
    "balance_pole",
    difficulty=5,
    minutes=120,
    returns="act, a function of an observation that returns an action",
    needs="engine",
    is_open=True,
    limits=LIMITS,
    hints=(
        "Write the loop without learning first: reset, random actions, record the mean of the last "
        "20 returns. Then keep (seen, action, reward, new, ended) in arrays.",
        "A step of learning: 128 rows drawn from the arrays; wanted = reward + 0.99 * best of the "
        "target network at new, and reward alone where the game ended (not where it was cut off). "
        "gather takes the scores of the actions that were done; mg.huber compares.",
        "target = online.clone() every 500 steps; two hidden layers of 128; Adam with 5e-4, "
        "which falls to 0, in every second step; all at random at first, hardly anything from a "
        "fifth of the steps on; and stop once the last 20 games are good: deep Q-learning "
        "forgets.",
    ),
)
STEPS, SHORT, PLAYS = 4000, 400, 10
STANDS = 50.0  # of 60 steps; random pushes last about 13


def learned(env, steps, seed, record, *, kind=""):
    """Play without having learned much, in order or with a common mistake."""
    draw = 0 if kind == "one_seed" else seed
    if kind == "unseeded":
        draw = int(np.random.default_rng().integers(2**31))
    random, online = np.random.default_rng(draw), mg.nn.Linear(2, 2)
    total, returns, held = mg.variable(0.0), [], []
    env.reset(seed=int(random.integers(2**31)))
    since = 0.0
    for _ in range(steps + (20 if kind == "too_many_steps" else 0)):
        seen, reward, ended, cut, _ = env.step(int(random.integers(2)))
        value = online(mg.variable(seen[None])).max()
        total = total + value if kind == "sum" else value
        since += reward
        if kind == "list":
            held.append(value)
        if ended or (cut and kind != "no_reset"):
            returns.append(since)
            mean = float(np.mean(returns[-20:]))
            mean = {"last_game": since, "all_games": float(np.mean(returns))}.get(kind, mean)
            if kind != "silent":
                record(mg.variable(mean) if kind == "variable" else mean)
            if kind == "one_game":
                break
            if kind != "after_end":
                env.reset()
            since = 0.0
    scores = {"scores": np.zeros(2), "float": 1.0, "text": "left", "none": None, "always": 1}
    if kind == "no_player":
        return None
    return lambda observation: scores.get(kind, int(observation[0] > 0))


@balance_pole.mistake("no_network")
def rule(env, steps, seed, record):
    """Push to the side to which it falls."""
    returns, since = [], 0.0
    seen, _ = env.reset(seed=seed)
    for _ in range(steps):
        seen, reward, ended, cut, _ = env.step(int(sum(seen) > 0))
        since += reward
        if ended or cut:
            returns.append(since)
            record(float(np.mean(returns[-20:])))
            since = 0.0
            seen, _ = env.reset()
    return lambda observation: int(sum(observation) > 0)


for _key, _kinds in {
    "after_end": ("after_end",),
    "too_many_steps": ("too_many_steps",),
    "no_player": ("no_player",),
    "answer": ("scores", "float", "text", "none"),
    "no_games": ("one_game",),
    "record_kind": ("variable",),
    "not_recorded": ("silent",),
    "wrong_mean": ("last_game", "all_games"),
    "grows": ("list", "sum"),
    "not_repeated": ("unseeded",),
    "same_for_all": ("one_seed",),
    "no_better": ("always", ""),
}.items():
    for _kind in _kinds:
        balance_pole.mistake(_key)(partial(learned, kind=_kind))


def training(t: Tester, steps: int, seed: int, games: int, plays: int = 2, disturb: int = 1) -> Any:
    """Let the learner's function learn the small game; fail if it does not keep to its rules."""
    given = f"balance_pole(env, steps={steps}, seed={seed}, record), env a smaller game"
    told = t.drive("balance_pole", steps, seed, games, plays, disturb, given=given)
    if told["wrong"]:
        t.fail(
            "after_end",
            "a reset after each game that has ended or was cut off",
            told["wrong"],
            "Both end a game: ended or cut_off. What begins the next one?",
        )
    if told["used"] > steps:
        t.fail(
            "too_many_steps",
            f"env.step called {steps} times at most",
            counted(told["used"], "time"),
            "Count the steps, and not the games.",
        )
    if told["act"]:
        t.fail(
            "no_player",
            "act, a function of an observation",
            a_kind(told["act"]),
            "Define a function inside yours, and return it: return act",
        )
    if told["answer"]:
        t.fail(
            "answer",
            "act(observation): an int, 0 or 1",
            told["answer"],
            "Which action has the largest score? Its place is an int.",
        )
    return told


@balance_pole.check(points=2)
def rules(t: Tester) -> None:
    """It keeps to the rules of the game, and what it returns plays it."""
    training(t, SHORT, 3, int(t.random.integers(1000)))


@balance_pole.check(points=2)
def means(t: Tester) -> None:
    """Each game's end is recorded, with the mean return of the last 20, and no graph is kept."""
    told = training(t, SHORT, 4, int(t.random.integers(1000)))
    if told["games"] < 5:
        t.fail(
            "no_games",
            f"games one after the other, up to {SHORT} steps in all",
            f"{counted(told['games'], 'finished game')} in {counted(told['used'], 'step')}",
            "What ends your loop: the end of a game, or that of all steps?",
        )
    recorded(t, told, 5, "mean return")
    right, got = float(np.mean(told["returns"])), float(told["losses"][-1])
    if told["steps"] < told["games"] or not agree(got, right, rtol=1e-5):
        t.fail(
            "wrong_mean",
            f"after game {told['games']} the mean of the last 20: {right:.4g}",
            f"{got:.4g}, in {counted(told['steps'], 'call')} of record",
            "Which games are in the mean: the last 20, or all, or one?",
        )
    keeps_nothing(t, told, told["looks"])


@balance_pole.check(points=2)
def seeds(t: Tester) -> None:
    """A seed gives the same training to the last bit; another seed gives another one."""
    seed, games = int(t.random.integers(10, 90)), int(t.random.integers(1000))
    runs = [
        training(t, SHORT, one, games, disturb=k) for k, one in enumerate((seed, seed, seed + 1))
    ]
    for told in runs:
        recorded(t, told, 5, "mean return")
    first, again, other = runs
    same_numbers(t, first, again, other, (seed, seed + 1))


def stands_still(t: Tester, asked: dict[str, int]) -> None:
    """Fail if the values to be reached come from the memory that learns, or pass gradients on.

    A target that is no mg.nn.Module is not seen.
    """
    twice = not asked["others"] and asked["steps"] and asked["batches"] > 1.5 * asked["steps"]
    if twice or asked["partly"]:
        got = "one network, asked about both" if twice else "a target with some of its memory"
        t.fail(
            "target_shares",
            "a target network with memory of its own, which stands still while the other learns",
            got,
            "An optimizer's step writes into the online network's memory. Which call gives the "
            "target another: target = online, or online.clone()?",
        )
    if asked["flows"]:
        t.fail(
            "target_gradients",
            "a target network without gradients",
            "gradients that backward() brought to its parameters",
            "What the target says is a number to be reached, not one to be moved. online.clone() "
            "takes no gradients; copy.deepcopy does, unless it is asked under mg.no_grad().",
        )


@balance_pole.check(points=6)
def learns(t: Tester) -> None:
    """With a target network that stands still it learns a small game: mean return 50 of 60."""
    told = training(t, STEPS, 5, int(t.random.integers(1000)), PLAYS)
    stands_still(t, told["asked"])
    mean = float(np.mean(told["played"]))
    if not mean >= STANDS:
        t.fail(
            "no_better",
            f"{PLAYS} games by act: a mean return of {STANDS:g} or more, of 60",
            f"{mean:.3g}",
            "Do the recorded means rise? Does the value of a state count on where it leads, and "
            "not beyond an end?",
        )
