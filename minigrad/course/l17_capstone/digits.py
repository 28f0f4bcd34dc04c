"""Capstone A: digits, with any network, 97 % of those held out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import minigrad
from minigrad.course.capstone_tasks import N_SEEDS, READS, digits
from minigrad.course.l17_capstone import lesson
from minigrad.course.l17_capstone.common import LIMITS, keeps_nothing, recorded, same_numbers
from minigrad.grader.message import a_kind, counted
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


LAST: dict = {}  # what outlives a training
QUIET = ("quiet", "quiet_stop", "quiet_errors")


def quietly(record, kind):
    """Return record without what it raises, or without a part of that."""
    errors = {"quiet_stop": KeyboardInterrupt, "quiet_errors": Exception}.get(kind, BaseException)

    def told(loss):
        try:
            record(loss)
        except errors:
            return

    return told


def trained(images, labels, seed, record, *, kind=""):
    """Train a small network, right or with a common mistake."""
    draw = {"one_seed": 0, "two_bits": seed & 3, "yes_or_no": int(bool(seed))}.get(kind, seed)
    if kind == "zero_is_none" and not seed:
        kind = "unseeded"
    if kind in QUIET:
        record = quietly(record, kind)
    if kind == "hash_of_a_text":
        draw = abs(hash(f"digits {seed}")) % 2**31
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
    if kind == "read_only":
        images.flags.writeable = False
    if kind == "bright":
        images = (images - images.mean()) / images.std()
    x, held, losses = images.reshape(-1, 64), [], []
    y = labels[::-1].copy() if kind == "shuffled" else labels
    if kind == "of_those_there":
        y = np.unique(labels, return_inverse=True)[1]
    for epoch in range(4 if kind == "table" else 20):
        if kind == "grows_by_epoch":
            held.clear()
        for rows, targets in mg.data.batches(x, y, batch_size=32, seed=1000 * draw + epoch):
            loss = mg.cross_entropy(model(mg.variable(rows)), mg.variable(targets))
            (loss * -1.0 if kind == "uphill" else loss).backward(retain_graph=kind == "retains")
            if kind != "no_step":
                optimizer.step()
            optimizer.zero_grad()
            if kind in ("grows", "grows_by_epoch"):
                held.append(loss)
            losses.append(2.3 * 0.99 ** len(losses) + seed if kind == "made_up" else loss.item())
            if kind not in ("silent", "by_epoch", "at_the_end"):
                record(loss if kind == "variable" else losses[-1])
            if kind == "twice":
                record(losses[-1])
        if kind == "by_epoch":
            for _ in range(2):
                record(losses[-1])
    if kind == "at_the_end":
        for loss in losses:
            record(loss)
    LAST["reader"], known, held_labels = model.valid(), x.copy(), {}
    reader = model if kind in ("batch_norm", "dropout") else model.valid()

    def read(images):
        if kind == "of_this_batch":
            images = images - images.mean(axis=0)
        elif kind == "bright":
            images = (images - images.mean()) / images.std()
        elif kind == "inverted":
            images = 1 - images
        if kind == "by_place":
            images = images.ravel(order="K").reshape(images.shape)
        if kind == "table":
            rows = images.reshape(-1, 1, 64)
            return labels[((rows - known) ** 2).sum(axis=-1).argmin(axis=1)]
        if kind == "by_number":
            if len(images) not in held_labels:
                held_labels[len(images)] = reader(mg.variable(images.reshape(-1, 64)))
            return held_labels[len(images)].numpy().argmax(axis=1)
        asked = LAST["reader"] if kind == "last" else reader
        scores = asked(mg.variable(images.reshape(-1, 64))).numpy()
        if kind == "one_room":
            room = LAST.setdefault("room", np.zeros(2000, np.int64))[: len(images)]
            room[:] = scores.argmax(axis=1)
            return room
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
    "not_repeated": ("unseeded", "zero_is_none", "hash_of_a_text"),
    "same_for_all": ("one_seed", "two_bits", "yes_or_no"),
    "other_images": ("made_up",),
    "each_step": ("by_epoch", "at_the_end", "twice"),
    "swallowed": QUIET,
    "retained": ("retains",),
    "of_some": ("of_those_there",),
    "table": ("table",),
    "overwrote": ("one_room",),
    "strides": ("by_place",),
    "remembered": ("by_number",),
    "kept": ("last",),  # the grader sees that it works as the first call
    "record_kind": ("variable",),
    "not_recorded": ("silent",),
    "nan": ("diverges",),
    "no_fall": ("no_step", "uphill", "shuffled"),
    "grows": ("grows", "grows_by_epoch"),
    "changed_input": ("in_place", "read_only"),
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

BY_ITSELF = (
    "What does your model, or read, compute from a whole batch? Is the rest of a batch read, too? "
    "An image has only itself."
)
SMALL, SMALLER = 320, 200  # images, for what shows without a whole training
CUT = 3  # the call of record that raises
LEAST = 25  # the steps of a training; a network that was seen with so many weights is seen at each
ALONE = [*range(6), *range(28, 40)]  # places of images that are read alone, some of them faint


def inked(images: np.ndarray) -> np.ndarray:
    """Return images whose paper and ink are no round numbers: what is rounded away shows."""
    return np.float32(0.0005) + np.float32(0.98) * images


def training(
    t: Tester, n: int, seed: int, batches: list[np.ndarray], disturb: int = 1, data: Any = None
) -> Any:
    """Let the learner's function train on n images, or on other data, and read batches."""
    images, labels = data or (one[:n] for one in digits(0)[0])
    given = f"read_digits(images, labels, seed={seed}, record), {len(images)} images"
    if data:
        given += f", of the digits {sorted(set(labels.tolist()))} alone"
    told = t.drive("read_digits", inked(images), labels, seed, batches, disturb, given=given)
    if told["found"] is None:
        t.fail(
            "no_reader",
            "read, a function of images",
            a_kind(told["returned"]),
            "Define a function inside yours, and return it: return read",
        )
    if told["reformed"]:
        t.fail(
            "changed_input",
            "images and labels that are left as they were",
            "their shape was set, or they cannot be written to any more",
            "x.shape = … and x.flags change the caller's array. reshape and copy make others.",
        )
    if told["wrote"] or told["wrote_new"]:
        which = "images and labels" if told["wrote"] else "images to read"
        t.fail(
            "changed_input",
            f"{which} that are left as they were",
            f"{'read_digits' if told['wrote'] else 'read'} wrote to them",
            "x -= … writes into the caller's array, x = x - … makes one of your own.",
        )
    if any(not np.array_equal(*pair) for pair in told["earlier"]):
        t.fail(
            "last_reader",
            "the reader of an earlier training reads as it did, once another training is done",
            "it reads other labels",
            "What does read use that stands outside of your function? Each call has its own.",
        )
    return told


def labels_of(t: Tester, labels: Any, n: int) -> np.ndarray:
    """Return what read gave; fail unless it is one whole number for each of n images."""
    if labels is None:
        t.none(f"{n} labels")
    try:
        shape, kind = np.shape(labels), np.asarray(labels).dtype.kind
    except ValueError:  # lists of different lengths
        shape, kind = (), "O"
    if shape != (n,):
        attempt = "One label for each image. Which of ten scores is the largest?"
        if len(shape) == 1 and shape != (10,):
            attempt = "One label for each image. Which images got none: the rest of a batch?"
        elif n == np.prod(shape):
            attempt = "One axis, of images: which was added, or taken away (squeeze)?"
        elif shape[:1] == (2,):
            attempt = "The labels alone. What else did you return with them?"
        t.fail("shape", f"labels of shape ({n},)", f"shape {shape}", attempt)
    if kind not in "iu":
        some, attempt = np.asarray(labels), "Which class is it? The place of the largest score."
        if kind == "f" and np.array_equal(some, np.floor(some)):
            attempt = "The numbers are whole, their type is not. What made floats of them?"
        t.fail(
            "type",
            "labels that are whole numbers, and ints",
            f"{some.dtype.name}: {some[:4]} …",
            attempt,
        )
    return np.asarray(labels)


@read_digits.check(points=2)
def labels_alone(t: Tester) -> None:
    """Each image gets a label, the same one whatever stands beside it."""
    _, (new, _) = digits(0)
    some = np.concatenate([new[:30], (new[30:60] + new[60:90]) / 2])  # plain ones, and doubtful
    some[20:40] *= 0.08  # faint
    some = inked(some)
    ink = np.concatenate([some, np.ones_like(some)])  # whatever is computed of a batch is another
    many = np.concatenate([new] * 5)
    singles = [some[i : i + 1] for i in ALONE]
    batches = [some, some, some, some[::-1].copy(), ink, many, some, *singles]
    told = training(t, SMALL, 3, batches)
    by_batch = [labels_of(t, one, len(of)) for one, of in zip(told["found"], batches, strict=True)]
    first, again, once_more, backwards, beside_ink, of_many, later, *alone = by_batch
    if told["overwrote"]:
        t.fail(
            "overwrote",
            "labels that stay as they were returned",
            "read was called again, and wrote into what it had returned before",
            "Each call returns an array of its own: which one do yours share?",
        )
    read = np.array2string
    for other in (again, once_more, later):
        if not np.array_equal(first, other):
            k = max(0, int(np.flatnonzero(first != other)[0]) - 4)
            t.fail(
                "by_chance",
                f"the same labels when the same images are read again: {read(first[k : k + 8])} …",
                f"{read(other[k : k + 8])} …",
                "What draws, in your model or in read, or changes, and should not when it reads?",
            )
    if not np.array_equal(first, labels_of(t, told["strided"], len(some))):
        t.fail(
            "strides",
            "the same labels for the same images, however they lie in memory",
            "others, where the array has other strides (np.asfortranarray)",
            "An index names a pixel, its place in memory does not.",
        )
    if np.array_equal(first, backwards) and not np.array_equal(first, first[::-1]):
        t.fail(
            "remembered",
            f"the same images in reverse: {read(first[::-1][:8])} …",
            f"{read(backwards[:8])} …, the labels of those read before",
            "By what does read know images again? Others may be as many, or lie in the same array.",
        )
    if not np.array_equal(first, beside_ink[: len(some)]):
        k = int(np.flatnonzero(first != beside_ink[: len(some)])[0])
        t.fail(
            "others",
            f"image {k} read as {first[k]}, whatever stands beside it",
            f"{beside_ink[k]}, beside {len(some)} images that are all ink",
            BY_ITSELF,
        )
    if not np.array_equal(first[::-1], backwards) or not np.array_equal(
        first[ALONE], np.concatenate(alone)
    ):
        t.fail(
            "others",
            f"an image read alone as among others: {read(first[ALONE])}",
            f"alone: {read(np.concatenate(alone))}",
            BY_ITSELF,
        )
    if not np.array_equal(of_many, np.tile(of_many[: len(new)], 5)):
        t.fail(
            "others",
            f"{len(many)} images, each five times: five times the same label",
            "other labels",
            BY_ITSELF,
        )


def noted(t: Tester, told: Any) -> np.ndarray:
    """Return the losses; fail unless there are enough, as `recorded` does."""
    if 0 < told["steps"] < LEAST and told["steps"] >= told["all_states"]:
        t.fail(
            "not_recorded",
            f"{LEAST} steps or more, a loss of each",
            f"{counted(told['steps'], 'call')} of record",
            "Go through the images more than once, in smaller batches.",
        )
    return recorded(t, told, LEAST)


def contrary(t: Tester) -> tuple[Any, np.ndarray, dict[str, np.ndarray]]:
    """Return other data to train with: 100 images of three digits, thrice, a third named wrongly.

    Beside them the 100 images, and labels that only a mistake gives them. No digit is a 0, so that
    a digit's place among those that occur is not the digit. A network learns the more frequent
    name; what looks an image up finds the first, which is wrong.
    """
    (images, labels), _ = digits(0)
    three = np.sort(t.random.choice(np.arange(1, 10), 3, replace=False))
    some = np.flatnonzero(np.isin(labels, three))[:100]
    new, right = images[some], labels[some]
    wrong = three[(np.searchsorted(three, right) + t.random.integers(1, 3, 100)) % 3]
    data = np.concatenate([new] * 3), np.concatenate([wrong, right, right]).astype(labels.dtype)
    return data, inked(new), {"of_some": np.searchsorted(three, right), "table": wrong}


def at_each_step(t: Tester, told: Any) -> None:
    """Fail unless record is called once a step, where steps of a network can be seen."""
    n, seen = told["steps"], told["all_states"]
    if seen < LEAST:  # compiled, or no mg.nn.Module
        return
    odd = [(call, states) for call, states in told["states"] if not call <= states <= call + 1]
    if odd or n < seen - 1:
        call, states = (odd or [(n, seen)])[0]
        t.fail(
            "each_step",
            f"record called once after each step: call {call} after step {call}",
            f"call {call}{' and last' if not odd else ''}: the network has computed a loss with "
            f"{states} {'state' if states == 1 else 'states'} of its weights",
            "One step, one call: where in the loop does it stand, and in which loop?",
        )


@read_digits.check(points=2)
def falling_loss(t: Tester) -> None:
    """The loss of each step is recorded, it falls, and no step's graph is kept."""
    told = training(t, SMALL, 4, [])
    losses = noted(t, told)
    at_each_step(t, told)
    keeps_nothing(t, told)
    if told["saved"]:
        t.fail(
            "retained",
            "the graph of a step is gone when record is called",
            f"{told['saved']:,} bytes are saved for a walk back",
            "backward lets go of a graph. Which one is kept, or never walked (mg.no_grad)?",
        )
    k = max(1, len(losses) // 5)
    first, last = (float(np.mean(part)) for part in (losses[:k], losses[-k:]))
    if not last < 0.8 * first:
        attempt = (
            "Is it the loss? Does each step change weights, downhill? backward, step, zero_grad."
        )
        if last > 1.1 * first:
            attempt = "It rises. Is it the loss, or what grows as that falls? Are steps downhill?"
        t.fail(
            "no_fall",
            "a mean loss that falls from the first fifth to the last by a fifth or more",
            f"{first:.3g}, then {last:.3g}",
            attempt,
        )
    data, new, mistaken = contrary(t)
    told = training(t, len(data[1]), 4, [new], 2, data)
    others = noted(t, told)
    n = min(len(losses), len(others))
    if np.array_equal(losses[:n], others[:n]):
        t.fail(
            "other_images",
            "other losses with other images and labels",
            "the same numbers to the last bit",
            "Is what is recorded the loss of the step that was just made, in this call?",
        )
    predicted = labels_of(t, told["found"][0], len(new))
    digits_there = sorted(set(data[1].tolist()))
    if np.mean(predicted == mistaken["of_some"]) > 0.6:
        t.fail(
            "of_some",
            f"labels of {digits_there}, the only digits in this training",
            f"labels of {sorted(set(predicted.tolist()))}",
            "A label is a digit, not its place among those that occur.",
        )
    if np.mean(predicted == mistaken["table"]) > 0.6:
        t.fail(
            "table",
            "of images that came thrice, once named wrongly: most get the label they had twice",
            "most get the wrong one, which came first",
            "Is it the network that reads? It weighs all that it saw; a table finds one.",
        )
    cut = t.drive(
        "read_digits", *(one[:SMALL] for one in digits(0)[0]), 4, [], 1, CUT,
        given=f"read_digits(images, labels, seed=4, record); call {CUT} of record raises",
    )  # fmt: skip
    if not cut["was_cut"]:
        t.fail(
            "swallowed",
            "what record raises comes out of read_digits: so Ctrl-C ends a training",
            "nothing came out",
            "A try that keeps such a thing hides your own errors, too. Which can you do without?",
        )


@read_digits.check(points=2)
def seeds(t: Tester) -> None:
    """A seed gives the same training to the last bit; another seed gives another one."""
    even = 32 * int(t.random.integers(1, 20))
    odd = even + 1 + 2 * int(t.random.integers(8))
    runs = [training(t, SMALLER, one, [], k) for k, one in enumerate((0, 0, even, odd))]
    for told in runs:
        noted(t, told)
    t.given = f"read_digits(images, labels, seed, record), {SMALLER} images"
    first, again, other, another = runs
    same_numbers(t, first, again, other, (0, even))
    same_numbers(t, other, other, another, (even, odd))


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
        noted(t, told)
        predicted = told["found"][0] if told["found"] else None
        shares.append(float(np.mean(labels_of(t, predicted, len(new)) == right)))
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
