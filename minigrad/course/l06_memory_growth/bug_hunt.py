"""The bug hunt: three leaks in a loop of deep Q-learning, named and mended."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from minigrad.course.diagnosis import Part, diagnose
from minigrad.course.l06_memory_growth import lesson
from minigrad.grader.limits import Limits
from minigrad.grader.message import counted, show
from minigrad.grader.tester import Mistake, Tester

WIDTH = 8096  # the story's; it affects bytes but not counts
MOST_LIVE = 100  # nodes at a time in a loop without leaks
fix_dqn_loop = lesson.exercise(
    "fix_dqn_loop",
    difficulty=4,
    minutes=30,
    returns="(losses, mean_value): a list of floats and a float",
    needs="engine",
    answers=("gc.collect",),
    limits=Limits(call_seconds=15.0),  # a second of work, with room for a busy machine
    hints=(
        "Two lines may hold the same nodes: with one of them out, the other holds on. Take out all "
        "six, put one back at a time, and watch the live nodes. Does what it keeps have a graph, "
        "and does anybody let go of it?",
        "A: NumPy arrays have no graph. B: one loss replaces the other. F: nothing is recorded. "
        "And the rest: which of them is computed from itself? Which gets longer? And what does a "
        "method hold, besides its code?",
        "Keep numbers: float(loss), float(chosen.mean()). And let show be a method of the class, "
        "not an attribute that each report makes of its own method.",
    ),
)
INNOCENT = {
    "A": "Line A keeps NumPy arrays. Does an array know a node?",
    "B": "Line B keeps a loss, and lets go of the one before. How many graphs is that at a time?",
    "F": "Line F runs inside no_grad. Which node could it keep?",
}


def leak(kind: str, right: str, sign: str) -> Part:
    """Return the question about one kind of leak; sign: how to recognize it."""
    return Part(
        f"the line that makes the {kind}",
        right,
        INNOCENT,
        known="ABCDEF",
        form="a letter, A to F",
        start=f"Look for {sign}. Take all six out, and put one back at a time.",
        general=f"That line keeps a graph, but in another way. Look for {sign}.",
    )


LEAKS = {
    "chain": leak("chain", "E", "what is carried into the next step, and computed from itself"),
    "list": leak("list", "D", "a container that gets one entry more in each step"),
    "cycle": leak("cycle", "C", "an object that holds, over a detour, itself"),
}
EXAMPLE = '{"chain": …, "list": …, "cycle": …}, each a letter, "A"'
diagnose(fix_dqn_loop, LEAKS, EXAMPLE)


def run(t: Tester, width: int, steps: int, batch: int, every: int) -> tuple[dict, Any, Any]:
    """Run the loop on recorded states; fail if nodes pile up or losses are missing.

    Returns the driver's report, the states and the rewards.
    """
    random = np.random.default_rng(1)  # fixed: float32 may choose another action
    states = random.standard_normal((steps + 1, batch, 4)).astype(np.float32)
    rewards = random.uniform(-1, 1, (steps, batch, 4)).astype(np.float32)
    given = f"{steps} steps with networks 4 → {width} → 4, batch {batch}, garbage collector off"
    seen = t.drive("run_loop", width, states, rewards, every, given=given)
    if seen["n_reports"] != steps:
        t.fail(
            "reports",
            f"{steps} calls of loop.report, one a step",
            counted(seen["n_reports"], "call"),
            "The loop must go on telling what it does. What is reported, and what does it keep?",
        )
    live = seen["live"][every == 1 :]  # no step comes before the first
    slope = (live[-1] - live[0]) / ((len(live) - 1) * every)
    holds = not plain(seen["returned"])  # a result with a graph is alive, of course
    if len({*live}) > 1 or (seen["left"] > live[0] and not holds):
        counts = ", ".join(str(n) for n in live[:3])
        when = f"every {every} steps" if every > 1 else "step by step"
        got = f"live nodes {when}: {counts}, …"
        got += f": {slope:g} more a step" * (slope > 0)
        key, attempt = "grows", "Which line keeps something of each step that has a node?"
        if seen["left"] > live[0] and not holds:
            key = "cycle_left"
            got += f"; {seen['left']} still alive after the return"
            attempt = "The loop is over, and its lists with it. What keeps nodes alive now?"
        t.fail(key, "as many live nodes in each step as in the one before", got, attempt)
    if not all(type(n) is int and 0 <= n <= MOST_LIVE for n in live):
        t.fail(
            "miscounted",
            f"at most {MOST_LIVE} live nodes in a step, which records about 10",
            f"{show(live[0])} of them",
            "A step has a graph, and no more than its own. Where do these nodes come from?",
        )
    losses, _ = t.pair(seen["returned"], 2, "losses, mean_value")
    if not isinstance(losses, list) or not all(isinstance(loss, float) for loss in losses):
        t.fail(
            "losses",
            f"a list of {steps} floats",
            f"{show(losses)[:80]} …",
            "float(loss) is a number without a graph. What is in your list?",
        )
    if len(losses) != steps:
        t.fail(
            "losses",
            f"{steps} losses, one a step",
            f"{len(losses)} losses",
            "Which are missing, or are there some of another call?",
        )
    return seen, states, rewards


def plain(returned: Any) -> bool:
    """Return whether a value consists of floats, lists and tuples alone."""
    if isinstance(returned, list | tuple):
        return all(plain(item) for item in returned)
    return isinstance(returned, float)


@fix_dqn_loop.check(points=3)
def no_growth(t: Tester) -> None:
    """Over 200 steps with networks 4 → 8096 → 4 the number of live nodes stays the same."""
    run(t, WIDTH, steps=200, batch=16, every=20)


@fix_dqn_loop.check(points=2)
def still_learns(t: Tester) -> None:
    """It computes, returns and reports what it did before."""
    for steps in (3, 5, 60):  # the start; the target network follows at step 50
        learns(t, steps)


def learns(t: Tester, steps: int) -> None:
    """Compare this many steps with those of the unfixed loop."""
    seen, states, rewards = run(t, 16, steps=steps, batch=4, every=1)
    losses, means, trained = reference(states, rewards, seen["weights"])
    returned_losses, mean = seen["returned"]
    got = np.array(returned_losses)
    t.close(got, losses, rtol=1e-3, atol=1e-4, what="losses", attempt="Compare with the old loop.")
    moving = "The average must go on: 0.9 of what it was, 0.1 of the new mean. Only the graph goes."
    starts = "The average starts at 0. What is it after the first step?"
    t.close(
        mean,
        average(0.0, means),
        rtol=1e-3,
        atol=1e-4,
        what="mean_value",
        attempt=moving,
        mistakes=[Mistake("started", average(means[0], means), starts)],
    )
    every_step = "Does the online network still learn from every step?"
    for now, wanted in zip(seen["trained"], trained, strict=True):
        t.close(now, wanted, rtol=1e-3, atol=1e-4, what="a weight afterwards", attempt=every_step)
    for step, text in enumerate(seen["texts"]):
        wanted = f"step {step}: loss {losses[step]:.4f}"
        said, _, loss = text.rpartition(" ") if isinstance(text, str) else ("", "", "")
        is_number = re.fullmatch(r"\d+\.\d{4}", loss) is not None
        if said != f"step {step}: loss" or not (
            is_number and abs(float(loss) - losses[step]) < 2e-3
        ):
            t.fail(
                "show",
                f"report.show() gives {wanted!r}",
                show(text),
                "Somebody reads the reports: each must still say its step and its loss.",
            )


def average(start: float, values: list[float]) -> float:
    """Return the moving average after these values."""
    for value in values:
        start = 0.9 * start + 0.1 * value
    return start


def reference(
    states: np.ndarray, rewards: np.ndarray, weights: dict
) -> tuple[np.ndarray, list[float], list[np.ndarray]]:
    """Run the loop in NumPy, in float64; return losses, mean values and trained weights."""
    w1, b1, w2, b2 = online = [w.astype(np.float64) for w in weights["online"]]
    target = [w.astype(np.float64) for w in weights["target"]]
    rows, losses, means = np.arange(states.shape[1]), [], []
    for step, reward in enumerate(rewards):
        x = states[step].astype(np.float64)
        hidden = x @ w1.T + b1
        active = np.maximum(hidden, 0)
        values = active @ w2.T + b2
        actions = values.argmax(axis=1)
        v1, c1, v2, c2 = target
        after = np.maximum(states[step + 1] @ v1.T + c1, 0) @ v2.T + c2
        goal = after.max(axis=1) * 0.9 + reward[rows, actions]
        chosen = values[rows, actions]
        losses.append(np.mean((chosen - goal) ** 2))
        dvalues = np.zeros_like(values)
        dvalues[rows, actions] = 2 * (chosen - goal) / len(rows)
        dhidden = (dvalues @ w2) * (hidden > 0)
        gradients = [dhidden.T @ x, dhidden.sum(axis=0), dvalues.T @ active, dvalues.sum(axis=0)]
        for weight, gradient in zip(online, gradients, strict=True):
            weight -= 0.01 * gradient
        means.append(float(chosen.mean()))
        if step % 50 == 0:
            target = [w.copy() for w in online]
    return np.array(losses), means, online
