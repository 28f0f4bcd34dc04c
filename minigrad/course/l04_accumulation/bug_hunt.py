"""The bug hunt: the gradients of two losses, mixed."""

from __future__ import annotations

import numpy as np

from minigrad.course.l04_accumulation import lesson
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

train_both = lesson.exercise(
    "train_both",
    difficulty=3,
    minutes=15,
    returns="an array of shape (n, 2): per round the gradients by which the two moved",
    hints=(
        "Compute by hand, with the two formulas, by what each should move in rounds 0 and 1. "
        "Compare with the log.",
        "Write down critic.grad and actor.grad after every line of a round. Which of the two is "
        "not 0 when the next round begins?",
        "actor_backward adds to critic.grad as well, after the critic was cleared. Clear both "
        "before each backward pass, or both at the end of a round.",
    ),
)
RIGHT = ("critic", 1)
NOT_THEN = {0: "before which both gradients are 0", 2: "in which it is wrong, and not first"}
LATE = "The log holds what was in critic.grad later. By what had the critic moved?"
REARRANGED = {
    "both_first": "The actor's backward pass came past before the critic had moved. Who is first?",
    "actor_first": "The actor met the critic as it was before its step. Who moves first?",
    "logged": LATE,
    "logged_sum": LATE,
}


@train_both.check(points=1)
def diagnosis(t: Tester) -> None:
    """BUG names whose gradient is wrong, and in which round first."""
    bug = t.get("BUG")
    where = t.runner.line_of("BUG")
    expected = '("critic" or "actor", a round), rounds counted from 0'
    is_pair = isinstance(bug, tuple | list) and len(bug) == 2
    who, when = bug if is_pair else (None, None)
    if is_pair and who is None and when is None:
        t.fail(
            "untouched",
            expected,
            show(bug),
            "Compare the log with the gradients of the two losses, worked out by hand.",
            where=where,
        )
    is_named = who in ("critic", "actor")
    if not is_named or not isinstance(when, int) or isinstance(when, bool) or when < 0:
        t.fail("form", expected, show(bug), "First the form.", where=where)
    if who != RIGHT[0]:
        t.fail(
            "not_it",
            "the one that moves by a gradient that is not its loss's",
            f"{show(who)}, which moves by the gradient of its own loss",
            "Work out both gradients of round 1 by hand. Which column of the log differs?",
            where=where,
        )
    if when != RIGHT[1]:
        t.fail(
            "not_then",
            "the first round in which it happens",
            f"round {when}, {NOT_THEN[min(when, 2)]}",
            "Which gradient is there before the very first backward pass? And after that round?",
            where=where,
        )


def simulated(
    critic: float, actor: float, xs: np.ndarray, ys: np.ndarray, rate: float, cleared: str
) -> np.ndarray:
    """Return the log of a training that clears gradients this way."""
    of_critic = of_actor = 0.0
    log = []
    for x, y in zip(xs, ys, strict=True):
        if cleared == "right":
            of_critic = 0.0
        of_critic += 2 * (critic * x - y) * x
        row = [of_critic]
        critic -= rate * of_critic
        if cleared == "own":
            of_critic = 0.0
        of_actor += actor - critic
        of_critic -= actor
        if cleared == "too_early":
            of_critic = of_actor = 0.0
        row.append(of_actor)
        actor -= rate * of_actor
        if cleared not in ("never", "critic"):
            of_actor = 0.0
        if cleared == "critic":
            of_critic = 0.0
        log.append(row)
    return np.array(log).reshape(len(log), 2)


def rearranged(
    critic: float, actor: float, xs: np.ndarray, ys: np.ndarray, rate: float, how: str
) -> np.ndarray:
    """Return the log of a training that runs a round's lines in another order."""
    log = []
    for x, y in zip(xs, ys, strict=True):
        of_critic = 2 * (critic * x - y) * x
        of_actor = actor - critic
        if how == "both_first":
            of_critic -= actor  # the actor's backward pass adds to it before the critic moves
        critic -= rate * of_critic
        if how.startswith("logged"):
            of_actor = actor - critic
        shown = {"logged": -actor, "logged_sum": of_critic - actor}.get(how, of_critic)
        actor -= rate * of_actor
        log.append((shown, of_actor))
    return np.array(log).reshape(len(log), 2)


def compare_logs(t: Tester, got: object, right: np.ndarray, mistakes: list[Mistake]) -> None:
    """Compare round by round, so that a message says which round and whose gradient."""
    if not isinstance(got, np.ndarray) or got.shape != right.shape or got.dtype.kind not in "fi":
        t.close(got, right, attempt="Append a pair per round, and make an array at the end.")
        return
    known = [m for m in mistakes if agree(got, m.value, rtol=1e-5, atol=1e-8)]
    for number, row in enumerate(right):
        t.close(
            got[number],
            row,
            attempt="Work out this round by hand: which gradient differs, and what was in it?",
            mistakes=[Mistake(m.key, m.value[number], m.attempt) for m in known],
            what=f"log[{number}] (critic's, actor's)",
        )


@train_both.check(points=3)
def repair(t: Tester) -> None:
    """Each moves by the gradient of its own loss, in every round."""
    for n, rate in ((2, 0.1), (3, 0.2), (1, 0.1), (6, 0.05), (0, 0.1)):
        critic, actor = (round(float(v), 1) for v in t.random.uniform(0.5, 2, 2))
        xs, ys = (np.round(t.random.uniform(0.5, 2, n), 1) for _ in range(2))
        start = (critic, actor, xs, ys, rate)
        got = t.call("train_both", *start)
        say = {
            "own": "From round 1 on the critic moves by more than its own loss asks for. "
            "What was in critic.grad when the round began?",
            "never": "The gradients of all rounds add up. When is the old one thrown away?",
            "critic": "Now the actor's gradients of all rounds add up.",
            "too_early": "The actor's gradient was thrown away before the actor moved by it.",
        }
        keys = {"own": "mixed", "never": "never", "critic": "actor_adds_up", "too_early": "no_step"}
        wrong = [Mistake(keys[how], simulated(*start, cleared=how), say[how]) for how in say]
        wrong += [
            Mistake(how.removesuffix("_sum"), rearranged(*start, how), REARRANGED[how])
            for how in REARRANGED
        ]
        compare_logs(t, got, simulated(*start, cleared="right"), wrong)
