"""The bug hunt: the workers begin with different weights."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from minigrad.course.diagnosis import named_place, not_it
from minigrad.course.l16_data_parallel import lesson
from minigrad.grader import samples
from minigrad.grader.compare import agree
from minigrad.grader.message import show
from minigrad.grader.tester import Tester

train_replicas = lesson.exercise(
    "train_replicas",
    difficulty=3,
    minutes=15,
    returns="an array: the weights of each worker, at first and after each step",
    hints=(
        "Print the weights of two workers after each step, and their difference. How does the "
        "difference change from step to step?",
        "All workers make the same step, so a difference stays as it is. When did it come into "
        "the world? Which stage ran before?",
        "A seed with the rank in it gives each worker other numbers. For which stages is that "
        "right, and for which is it not?",
    ),
)
STAGES = ("number", "initialise", "take", "differentiate", "reduce", "move")
CULPRIT = 1
NUDGES = {
    0: "number gives each worker a seed of its own for its noise. Who else uses which seed?",
    2: "take gives each worker other rows and other noise, and that is what it is for.",
    3: "differentiate works with what a worker has: its rows, its weights. Which of them is wrong?",
    4: "After reduce all workers have the same gradient, to the last bit: print it.",
    5: "move makes the same step on all workers. Print s['w'] before the first one.",
}


@train_replicas.check(points=2)
def diagnosis(t: Tester) -> None:
    """BUG names the stage after which the workers differ, and should not."""
    start = "Train with two workers. After which stage do they differ where they should not?"
    place = named_place(t, "stage", len(STAGES), "STAGES", start)
    if place != CULPRIT:
        not_it(
            t,
            "the stage after which the workers differ, and should not",
            f"stage {place}, {STAGES[place]}",
            NUDGES[place],
        )


APART = ("other_seeds", "averaged_late", "copied_late", "copied_at_the_end", "shown_alike")


def path_of(rows, targets, k, seed, batches, learning_rate, *, kind=""):
    """Return the weights of each worker, right or with a common mistake."""
    m = rows.shape[1]
    drawn = [np.random.default_rng(seed + r).normal(size=m) for r in range(k)]
    w = [drawn[0].copy() for _ in range(k)]
    if kind in APART:
        w = [one.copy() for one in drawn]
    elif kind == "one_generator":
        random = np.random.default_rng(seed)
        w = [random.normal(size=m) for _ in range(k)]
    elif kind == "other_worker":
        w = [drawn[-1].copy() for _ in range(k)]
    elif kind == "mean_at_first":
        w = [np.mean(drawn, axis=0) for _ in range(k)]
    elif kind == "zeros":
        w = [np.zeros(m) for _ in range(k)]
    elif kind == "fixed_seed":
        w = [np.random.default_rng(0).normal(size=m) for _ in range(k)]
    path = [np.array(drawn if kind == "noted_early" else w)]
    for step, batch in enumerate(batches):
        gradients, counts = [], []
        for r in range(k):
            place = 0 if kind == "all_rank_0" else r
            mine = batch if kind == "all_rows" else batch[place::k]
            own = {"same_noise": [0], "seed_of_all": []}.get(kind, [place])
            random = np.random.default_rng([seed, *own, 0 if kind == "noise_again" else step])
            noise = random.normal(scale=0.1, size=(len(mine), m))
            x = rows[mine] + (0 if kind == "no_noise" else noise)
            gradients.append(2 * x.T @ (x @ w[r] - targets[mine]))
            counts.append(len(mine))
        means = [g / max(n, 1) for g, n in zip(gradients, counts, strict=True)]
        mean = sum(gradients) / sum(counts)
        if kind == "mean_of_means":
            mean = sum(means) / k
        elif kind == "not_divided":
            mean = sum(gradients)
        elif kind == "rows_of_first":
            mean = sum(gradients) / (k * counts[0])
        if kind == "shared":
            mean = mean * k
        for r in range(k):
            w[r] = w[r] - learning_rate * (means[r] if kind == "not_reduced" else mean)
        if kind == "averaged_late":
            w = [np.mean(w, axis=0) for _ in range(k)]
        if kind == "copied_late":
            w = [w[0].copy() for _ in range(k)]
        path.append(np.array(w))
    if kind == "shown_alike":
        path = [np.repeat(one[:1], k, axis=0) for one in path]
    if kind == "copied_at_the_end":
        path[-1][:] = path[-1][0]
    return np.array(path)


WRONG = {
    "other_seeds": "The workers begin with different weights, and the difference never goes away. "
    "From which numbers are they drawn?",
    "one_generator": "One generator for all, and each worker draws the next numbers from it. How "
    "do all get the same?",
    "other_worker": "All begin alike, but not with the weights that worker 0 began with.",
    "mean_at_first": "All begin alike, with the mean of their weights. Whose weights does the task "
    "ask for?",
    "zeros": "All begin alike, with zeros. Whose weights does the task ask for?",
    "fixed_seed": "All begin alike, and alike for every seed. What is `seed` for?",
    "same_noise": "Now the noise is the same on all workers. What was to be repaired?",
    "no_noise": "Now nobody adds noise. What was to be repaired?",
    "all_rank_0": "All workers believe to be worker 0: they train on the same rows.",
    "averaged_late": "The weights are averaged after each step. Then the copies are the same, but "
    "the first gradients were those of different models.",
    "copied_late": "The copies are made alike after each step, but the first gradients were those "
    "of different models.",
    "shown_alike": "Only what is returned is alike: the workers themselves still train different "
    "models.",
    "noted_early": "The first weights are noted, and only then made alike. Which weights does the "
    "first row show?",
    "shared": "A step is k times as long. Do all workers share one array, and does each of them "
    "move it?",
    "all_rows": "Each worker takes all rows of the batch, and not only its own.",
    "copied_at_the_end": "The copies are made alike at the end. What about the steps before?",
    "mean_of_means": "The mean of the workers' means: with unequal parts that is another gradient.",
    "rows_of_first": "The gradients are divided by k times the rows of worker 0. Do all have as "
    "many?",
    "noise_again": "The noise is the same in each step now. What was to be repaired?",
    "not_divided": "The gradients are summed, and no longer divided by the rows of all.",
    "not_reduced": "Each worker steps by its own gradient now.",
}
for key, attempt in WRONG.items():
    train_replicas.mistake(key, attempt)(partial(path_of, kind=key))
train_replicas.mistake("same_noise", WRONG["same_noise"])(partial(path_of, kind="seed_of_all"))
STEP = (
    "The weights at first are right, and this step is not that of one worker. Compare the noise, "
    "the rows and the mean gradient with those before the repair."
)


@train_replicas.mistake("shape")
def _(rows, targets, k, seed, batches, learning_rate):
    return path_of(rows, targets, k, seed, batches, learning_rate)[:, 0]


@train_replicas.mistake("shape")
def _(rows, targets, k, seed, batches, learning_rate):
    return path_of(rows, targets, k, seed, batches, learning_rate)[-1]


def check_path(t: Tester, n: int, m: int, k: int, sizes: tuple[int, ...], seed: int) -> None:
    """Check the weights of each worker, at first and after each step."""
    rows, targets = samples.numbers(t.random, (n, m)), samples.numbers(t.random, (n,))
    batches = [np.sort(t.random.choice(n, size, replace=False)) for size in sizes]
    arguments = rows, targets, k, seed, batches, 0.05
    got = t.call("train_replicas", *arguments)
    n_rows = ", ".join(map(str, sizes))
    t.given = f"train_replicas(…, k={k}, seed={seed}), rows of shape {rows.shape}, batches of "
    t.given += n_rows
    right = path_of(*arguments)
    if not isinstance(got, np.ndarray) or got.shape != right.shape:
        why = "Train by hand with one worker: the same weights at first, the noisy rows of all."
        t.close(got, right, attempt=why)
    why = STEP
    known = [*t.mistakes(*arguments)]
    given, firsts = t.given, [one.value[0] for one in known if np.ndim(one.value) == 3]
    if t.survey is None and not any(agree(got[0], one) for one in (right[0], *firsts)):
        again = t.call("train_replicas", rows, targets, k, seed + 1, batches, 0.05)
        t.given = given
        if np.shape(again) == got.shape and agree(again[0], got[0]):
            t.fail("fixed_seed", f"w of worker 0 at first = {show(right[0, 0])}",
                   f"{show(got[0, 0])}, and the same with seed={seed + 1}", WRONG["fixed_seed"]
                   )  # fmt: skip
    if not agree(got[0], right[0], rtol=1e-9, atol=1e-12):
        alike = all(np.array_equal(one, got[0, 0]) for one in got[0])
        why = WRONG["other_worker" if alike else "other_seeds"]
        if agree(got[0], right[0], rtol=1e-6):
            why = "Nearly the same, and not to the last bit. Which step rounds the copies?"
        elif seed == 0 or seed >= 2**32:
            why = f"seed is {seed} here, an int like others. Which step makes of it what it is not?"
    for place in np.ndindex(right.shape[:2]):
        step, rank = place
        when = f"after step {step}" if step else "at first"
        wrong = (replace(one, value=one.value[place]) for one in known
                 if np.ndim(one.value) == 3)  # fmt: skip
        t.close(got[place], right[place], rtol=1e-9, atol=1e-12, mistakes=wrong, attempt=why,
                what=f"w of worker {rank} {when}")  # fmt: skip


@train_replicas.check(points=3)
def repair(t: Tester) -> None:
    """All workers begin alike, and make the steps of one worker that has their noisy rows."""
    seed = int(t.random.integers(1, 1000))
    for n, m, k, sizes, one in (
        (6, 2, 2, (4, 4), seed),
        (7, 2, 3, (7, 5, 2), 0),
        (5, 3, 1, (5, 3), seed),
        (9, 1, 4, (9, 3, 9), 2**32 + seed),
    ):
        check_path(t, n, m, k, sizes, one)
