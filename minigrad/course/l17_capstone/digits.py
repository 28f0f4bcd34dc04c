"""Capstone A: digits, with any network, 97 % of those held out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import minigrad
from minigrad.course.capstone_tasks import N_SEEDS, READS, digits
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.grader.message import a_kind, show
from minigrad.grader.tester import Tester

mg: Any = minigrad  # its names appear on first use
read_digits = lesson.exercise(
    "read_digits",
    difficulty=3,
    minutes=40,
    returns="read, a function of images that returns their labels",
    needs="engine",
    answers=("minigrad.data.load_digits",),
    is_open=True,
    limits=LIMITS,
    hints=(
        "Begin with the twelve lines of the README, and let `read` be a function inside yours. "
        "Train for one epoch first, and look at the losses.",
        "mg.manual_seed(seed) before the model is made; batches get a seed of their own, made of "
        "seed and epoch. model.valid() reads: nothing is recorded there.",
        "64 → 128 → ReLU → 10, Adam with 2e-3, 30 epochs of batches of 32 read 97 to 98 of 100.",
    ),
)


def trained(images, labels, seed, record, *, kind=""):
    """Train a small network, right or with a common mistake."""
    draw = 0 if kind == "one_seed" else seed
    if kind == "unseeded":
        draw = int(np.random.default_rng().integers(2**31))
    mg.manual_seed(draw)
    middle = {"batch_norm": mg.nn.BatchNorm1d(64), "dropout": mg.nn.Dropout(0.3)}
    width = 4 if kind == "narrow" else 64
    model = mg.nn.Sequential(
        mg.nn.Linear(64, width), middle.get(kind, mg.nn.ReLU()), mg.nn.Linear(width, 10)
    )
    optimizer = mg.optim.Adam(model, learning_rate=2e-3)
    if kind == "diverges":
        optimizer = mg.optim.SGD(model, learning_rate=1e30)
    if kind == "in_place":
        images -= images.mean()
    if kind == "bright":
        images = (images - images.mean()) / images.std()
    x, held = images.reshape(-1, 64), []
    y = labels[::-1].copy() if kind == "shuffled" else labels
    for epoch in range(20):
        for rows, targets in mg.data.batches(x, y, batch_size=32, seed=1000 * draw + epoch):
            loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            (loss * -1.0 if kind == "uphill" else loss).backward()
            if kind != "no_step":
                optimizer.step()
            optimizer.zero_grad()
            if kind == "grows":
                held.append(loss)
            if kind != "silent":
                record(loss if kind == "variable" else loss.item())
    reader = model if kind in ("batch_norm", "dropout") else model.valid()

    def read(images):
        if kind == "of_this_batch":
            images = images - images.mean(axis=0)
        elif kind == "bright":
            images = (images - images.mean()) / images.std()
        elif kind == "inverted":
            images = 1 - images
        scores = reader(mg.variable(images.reshape(-1, 64))).numpy()
        return scores if kind == "scores" else scores.argmax(axis=1)

    return {"model": model, "nothing": None}.get(kind, read)


@read_digits.mistake("no_network")
def nearest(images, labels, seed, record):
    """Look up the nearest image, and make losses up."""
    for step in range(40):
        record((2.3 + seed / 100) * 0.9**step)
    known = images.reshape(-1, 64).copy()

    def read(images):
        rows = images.reshape(-1, 1, 64)
        return labels[((rows - known) ** 2).sum(axis=-1).argmin(axis=1)]

    return read


for _key, _kinds in {
    "not_repeated": ("unseeded",),
    "same_for_all": ("one_seed",),
    "record_kind": ("variable",),
    "not_recorded": ("silent",),
    "nan": ("diverges",),
    "no_fall": ("no_step", "uphill", "shuffled"),
    "grows": ("grows",),
    "changed_input": ("in_place",),
    "raised": ("batch_norm", "model"),  # the engine refuses a single image, and arrays
    "others": ("of_this_batch", "bright"),
    "by_chance": ("dropout",),
    "shape": ("scores",),
    "no_reader": ("nothing",),
    "accuracy": ("narrow",),
    "chance": ("inverted",),
}.items():
    for _kind in _kinds:
        read_digits.mistake(_key)(partial(trained, kind=_kind))

BY_ITSELF = "What does your model, or read, compute from a whole batch? An image has only itself."
SMALL = 320  # images, for what shows without a whole training


def training(t: Tester, n: int, seed: int, batches: list[np.ndarray], disturb: int = 1) -> Any:
    """Let the learner's function train on n images, and read batches of others."""
    (images, labels), _ = digits(0)
    given = f"read_digits(images, labels, seed={seed}, record), {n} images"
    told = t.drive("read_digits", images[:n], labels[:n], seed, batches, disturb, given=given)
    if told["found"] is None:
        t.fail(
            "no_reader",
            "read, a function of images",
            a_kind(told["returned"]),
            "Define a function inside yours, and return it: return read",
        )
    if told["wrote"] or told["wrote_new"]:
        t.fail(
            "changed_input",
            "images and labels that are left as they were",
            "they were written to",
            "x -= … writes into the caller's array, x = x - … makes one of your own.",
        )
    return told


def labels_of(t: Tester, found: Any, n: int) -> np.ndarray:
    """Return what read gave; fail unless it is one whole number for each of n images."""
    if found is None:
        t.none(f"{n} labels")
    try:
        shape, kind = np.shape(found), np.asarray(found).dtype.kind
    except ValueError:  # lists of different lengths
        shape, kind = (), "O"
    if shape != (n,):
        t.fail(
            "shape",
            f"labels of shape ({n},)",
            f"shape {shape}",
            "One label for each image. Which of ten scores is the largest?",
        )
    if kind not in "iu":
        t.fail(
            "type",
            "labels that are whole numbers",
            show(np.asarray(found)[:4].tolist()),
            "Which class is it? The place of the largest score: argmax.",
        )
    return np.asarray(found)


@read_digits.check(points=2)
def labels_alone(t: Tester) -> None:
    """Each image gets a label, the same one whatever stands beside it."""
    _, (new, _) = digits(0)
    some = new[:60]
    ink = np.concatenate([some, np.ones_like(some)])  # whatever is computed of a batch is another
    batches = [some, some, some[::-1].copy(), ink, *(some[i : i + 1] for i in range(12))]
    told = training(t, SMALL, 3, batches)
    found = told["found"]
    found = [labels_of(t, one, len(of)) for one, of in zip(found, batches, strict=True)]
    read = np.array2string
    if not np.array_equal(found[0], found[1]):
        t.fail(
            "by_chance",
            f"the same labels when the same images are read again, {read(found[0][:8])} …",
            f"{read(found[1][:8])} …",
            "What in your model draws at random, and should not when it reads?",
        )
    if not np.array_equal(found[0], found[3][: len(some)]):
        first = int(np.flatnonzero(found[0] != found[3][: len(some)])[0])
        t.fail(
            "others",
            f"image {first} read as {found[0][first]}, whatever stands beside it",
            f"{found[3][first]}, beside {len(some)} images that are all ink",
            BY_ITSELF,
        )
    alone = np.concatenate(found[4:])
    if not np.array_equal(found[0], found[2][::-1]) or not np.array_equal(found[0][:12], alone):
        t.fail(
            "others",
            f"an image read alone as among others: {read(found[0][:12])}",
            f"alone: {read(alone)}",
            BY_ITSELF,
        )


@read_digits.check(points=2)
def falling_loss(t: Tester) -> None:
    """The loss of each step is recorded, it falls, and no step's graph is kept."""
    told = training(t, SMALL, 4, [])
    losses = recorded(t, told, 25)
    keeps_nothing(t, told)
    k = max(1, len(losses) // 5)
    first, last = (float(np.mean(part)) for part in (losses[:k], losses[-k:]))
    if not last < 0.8 * first:
        t.fail(
            "no_fall",
            "a mean loss that falls from the first fifth to the last by a fifth or more",
            f"{first:.3g}, then {last:.3g}",
            "Does every step change the weights, downhill? backward, step, zero_grad.",
        )


@read_digits.check(points=2)
def seeds(t: Tester) -> None:
    """A seed gives the same training to the last bit; another seed gives another one."""
    seed = int(t.random.integers(10, 90))
    runs = [training(t, SMALL, one, [], k) for k, one in enumerate((seed, seed, seed + 1))]
    for told in runs:
        recorded(t, told, 25)
    first, again, other = runs
    same_numbers(t, first, again, other, (seed, seed + 1))


@read_digits.check(points=6)
def held_out(t: Tester) -> None:
    """Seeds 0 to 4: the median of what is read correctly is 97 % or more.

    The images are turned or mirrored, in a way that is drawn: a table of known images would have
    none of these.
    """
    shares = []
    for seed in range(N_SEEDS):
        (images, labels), (new, right) = digits(seed)
        turns, is_mirrored = int(t.random.integers(1, 4)), bool(t.random.integers(2))

        def turned(
            x: np.ndarray, turns: int = turns, is_mirrored: bool = is_mirrored
        ) -> np.ndarray:
            y = np.rot90(x, turns, axes=(1, 2))
            return np.ascontiguousarray(y[:, :, ::-1] if is_mirrored else y)

        given = f"read_digits(images, labels, seed={seed}, record), {len(images)} images, turned"
        told = t.drive(
            "read_digits", turned(images), labels, seed, [turned(new)], seed, given=given
        )
        recorded(t, told, 25)
        found = told["found"][0] if told["found"] else None
        shares.append(float(np.mean(labels_of(t, found, len(new)) == right)))
    t.given = f"read_digits, trained on 80 % of the digits with seeds 0 to {N_SEEDS - 1}"
    median = float(np.median(shares))
    if not median >= READS:
        key, attempt = "accuracy", "Longer, wider, another step? Draw the losses of one seed first."
        if median < 0.3:
            key = "chance"
            attempt = (
                "That is hardly better than guessing. Does an image keep its label? Does read see "
                "pixels as the training saw them?"
            )
        each = ", ".join(f"{share:.1%}" for share in shares)
        t.fail(
            key,
            f"a median of {READS:.0%} or more, of the digits held out",
            f"{median:.1%} (of {each})",
            attempt,
        )
