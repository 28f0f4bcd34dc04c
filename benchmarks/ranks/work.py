"""What ranks train, whatever library they train it with: data, initial values, order of batches.

Only NumPy is used. The batches are those of all ranks together, and of a size that divides evenly:
PyTorch's DistributedDataParallel weighs every rank alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import initial
from benchmarks.rows import ROWS
from minigrad.data import load_digits

SETTINGS = {row.name: row.settings for row in ROWS}
WARM_UP = 10  # steps that are not timed: they compile, and record routes


@dataclass(frozen=True)
class Work:
    """A training run.

    title: for the table. make: returns (x, y), the parameters by name. loss: the name of a function
    of benchmarks/peers/*_models.py that returns the loss, and its arguments. batch: rows of all
    ranks together.
    """

    title: str
    make: Callable[[], tuple[tuple[np.ndarray, np.ndarray], dict[str, np.ndarray]]]
    loss: tuple[str, tuple[int, ...]]
    batch: int
    epochs: int


def digits():
    """The digits that ship with minigrad, and the values of the row `mlp-64-32-10`."""
    images, labels = load_digits()
    _, parameters = initial.mlp(**SETTINGS["mlp-64-32-10"])
    return (images.reshape(-1, 64), labels), parameters


def tokens(batches=15):
    """Several batches for the row `transformer-step`, and its values."""
    settings = SETTINGS["transformer-step"]
    data, parameters = initial.transformer(**settings | {"batch": batches * settings["batch"]})
    return (data["x"], data["y"]), parameters


BLOCKS = SETTINGS["transformer-step"]
WORKS = {
    "digits": Work("digits, MLP 64-32-10, batch 32", digits, ("mlp_loss", (2,)), 32, 3),
    "transformer": Work(
        "transformer of 2 blocks, width 128, 64 tokens, batch 8",
        tokens,
        ("transformer_loss", (BLOCKS["heads"], BLOCKS["layers"])),
        BLOCKS["batch"],
        3,
    ),
}


def loss_of(work: Work, models: Any) -> Callable[..., Any]:
    """Return the loss as a function of (parameters, x, y), as one library has it."""
    name, arguments = work.loss
    return getattr(models, name)(*arguments)


def part(rows: int, rank: int, size: int) -> slice:
    """Return which of so many rows are a rank's."""
    return slice(rows * rank // size, rows * (rank + 1) // size)


def trained(
    batches: Iterable[tuple[np.ndarray, np.ndarray]], step: Callable[..., float]
) -> tuple[list[float], list[float]]:
    """Train; return the losses of this rank's rows, and the seconds of the steps after WARM_UP."""
    losses, seconds = [], []
    for x, y in batches:
        started = time.perf_counter()
        losses.append(step(x, y))
        seconds.append(time.perf_counter() - started)
    return losses, seconds[WARM_UP:]
