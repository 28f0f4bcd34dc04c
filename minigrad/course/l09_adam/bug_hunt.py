"""The bug hunt: an Adam in place whose first step is right and whose second is not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from minigrad.course.diagnosis import named_place, not_it
from minigrad.course.l09_adam import lesson
from minigrad.course.l09_adam.common import BETAS, adam, random_array
from minigrad.grader.message import show
from minigrad.grader.tester import Mistake, Tester

lean_adam = lesson.exercise(
    "lean_adam",
    difficulty=4,
    minutes=15,
    returns="an array: the parameter after each step",
    hints=(
        "The first step is right and the second is not, so something is left behind between "
        "them. Which entries of s live on from step to step?",
        "Make s by hand, run the stages one after the other, and print s['m'] and s['v'] after "
        "each. Each docstring says what its stage changes. Which one changes more?",
        "After `a = b`, for arrays, both names mean one array: what is then done to a in place is "
        "done to b too. Compute the corrected averages as new arrays.",
    ),
)
STAGES = ("count", "average_gradient", "average_square", "correct", "move")
CULPRIT = 3
CHANGES = {0: "t", 1: "m", 2: "v", 4: "p"}  # what each of the other stages changes


@lean_adam.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the stage that breaks the second step."""
    start = "Run two steps stage by stage: what does each leave behind for the next step?"
    place = named_place(t, "stage", len(STAGES), "STAGES", start)
    if place != CULPRIT:
        not_it(
            t,
            "the stage that changes what it should only read",
            f"stage {place}: {STAGES[place]} changes s[{CHANGES[place]!r}] alone, as it says",
            "Print s before and after each of the others. Which of them changes more than it says?",
        )


def path_of(p, gradients, rate=0.1, betas=(0.9, 0.999), eps=1e-8, *, kept="", correct="both"):
    """Return the result of each step; the moments named in `kept` stay corrected."""
    state, path = {}, []
    for g in gradients:
        p, state = adam(p, g, state, rate, betas, eps, correct=correct)
        for name, beta in zip(("first", "second"), betas, strict=True):
            if name in kept:
                state[f"{name}_moment"] = state[f"{name}_moment"] / (1 - beta ** state["step"])
        path.append(p)
    return np.array(path)


BY_HAND = "Follow s['m'], s['v'], and what is made of them, s['first'] and s['second'], by hand."
ONE_LEFT = "One of the two averages is as it should be now. And the other?"
for key, kept, attempt in (
    ("still_both", "first second", "Is the stage that you found really repaired?"),
    ("still_first", "first", ONE_LEFT),
    ("still_second", "second", ONE_LEFT),
):
    lean_adam.mistake(key, attempt)(partial(path_of, kept=kept))
lean_adam.mistake(
    "uncorrected",
    "Nothing is corrected any more: compare the first step with the formula.",
)(partial(path_of, correct="none"))


@lean_adam.check(points=3)
def repair(t: Tester) -> None:
    """Every step is right, and each stage changes only what it says."""
    for steps, n in ((2, 2), (3, 3), (200, 2), (2, 1)):
        p, rate, betas = random_array(t, (n,)), 0.1, BETAS[t.random.integers(len(BETAS))]
        gradients = np.round(t.random.uniform(0.2, 2, (steps, n)), 2)
        got = t.call("lean_adam", p, gradients, rate, betas)
        rows = ", ".join(show(g, bare=True) for g in gradients[:3])
        t.given = f"lean_adam({show(p, bare=True)}, gradients, {rate}, {betas}) with {steps} rows "
        t.given += f"of gradients: {rows}{', …' if steps > 3 else ''}"
        right, attempt = path_of(p, gradients, rate, betas), BY_HAND
        if not isinstance(got, np.ndarray) or got.shape != right.shape:
            t.close(got, right, attempt=attempt)
        known = [*t.mistakes(p, gradients, rate, betas)]
        for i, row in enumerate(right):  # the first wrong one is shown
            wrong = (replace(m, value=m.value[i]) for m in known)
            t.close(got[i], row, mistakes=wrong, what=f"after step {i + 1}", attempt=attempt)
    check_alone(t)


def check_alone(t: Tester) -> None:
    """Run the broken stage alone: it must only read the averages."""
    s = {
        "p": random_array(t),
        "m": random_array(t),
        "v": np.abs(random_array(t)),
        "t": 2,
        "learning_rate": 0.1,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
    }
    m, v = show(s["m"], bare=True), show(s["v"], bare=True)
    told = f"correct(s, g), stage 3, alone, with s['m'] = {m}, s['v'] = {v}, t = 2"
    after = t.drive("stage", CULPRIT, s, random_array(t), given=told)
    right = {
        "m": s["m"],
        "v": s["v"],
        "first": s["m"] / (1 - 0.9**2),
        "second": s["v"] / (1 - 0.999**2),
    }
    for name, value in right.items():
        alone = "The whole is right and this stage is not: mend the stage that was broken."
        changed = value / (1 - (0.9 if name == "m" else 0.999) ** 2)
        wrong = [Mistake("compensated", changed, alone)] if name in "mv" else []
        what = f"s[{name!r}] after it"
        t.close(after[name], value, mistakes=wrong, what=what, attempt=alone)
