"""Trains digits so that every part of the engine that a learner may have written has work.

Eagerly for all parts but one; `plan_reuse` has work in a compiled step alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import minigrad

mg: Any = minigrad  # its functions are found as it runs

STEPS = 20
BATCH = 64
HIDDEN = 16
MAX_NORM = 2.0
RANKS = 2


@dataclass
class Training:
    """What one training gave.

    Attributes:
        losses: one number a step.
        best: the loss of the best weights; none where none were kept.
        seconds: how long it took.
        optimizing: calls that its optimizers and its GradScaler make, by label.
    """

    losses: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    seconds: float = 0.0
    optimizing: Counter[str] = field(default_factory=Counter)

    @property
    def all_losses(self) -> list[float]:
        """Return all that two trainings must have in common."""
        return [*self.losses, *self.best]


def _batches(steps: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    images, labels = mg.data.load_digits()
    order = np.random.default_rng(1).permutation(len(images))
    for step in range(steps):
        rows = order[step * BATCH : (step + 1) * BATCH]
        yield images[rows].reshape(-1, 64).astype(np.float32), labels[rows].astype(np.int64)


def _weights() -> dict[str, Any]:
    random = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return mg.nn.Parameter((random.normal(size=shape) / 4).astype(np.float32))

    return {
        "w1": weight(64, HIDDEN), "b1": weight(HIDDEN), "scale": weight(HIDDEN),
        "mix": weight(HIDDEN, HIDDEN), "w2": weight(HIDDEN, 10), "b2": weight(10),
    }  # fmt: skip


def _loss(p: dict[str, Any], x: Any, rows: Any, *, on_gpu: bool) -> Any:
    """Return the loss. rows: for each image its label, one-hot."""
    h = mg.tanh(x @ p["w1"] + p["b1"])
    gate = mg.sigmoid(h * p["scale"])  # how much of each feature passes,
    share = mg.softmax(h @ p["mix"])  # and which of them matter here
    logits = (h * gate + h * share * HIDDEN) @ p["w2"] + p["b2"]
    if on_gpu:
        answers = mg.softmax(logits.to("simt")).to("cpu")
    else:
        answers = mg.softmax(logits)
    return -(mg.log(answers + 1e-6) * rows).sum() / BATCH


def train(steps: int, *, on_gpu: bool = False) -> Training:
    """Train on digits eagerly; every layer has an optimizer of its own, so that each kind runs.

    Args:
        steps: how many, at most 28.
        on_gpu: whether the last softmax runs on a simulated GPU.
    """
    p, training = _weights(), Training()
    optimizers = [
        mg.optim.AdamW([p["w1"], p["b1"]], learning_rate=0.02),
        mg.optim.Adam([p["scale"], p["mix"]], learning_rate=0.02),
        mg.optim.SGD([p["w2"], p["b2"]], learning_rate=0.5),
    ]
    scaler = mg.optim.GradScaler(256.0, growth_interval=8)
    best, snapshot = float("inf"), [*p.values()]
    began = time.perf_counter()
    for x, labels in _batches(steps):
        rows = mg.variable(np.eye(10, dtype=np.float32)[labels])
        loss = _loss(p, mg.variable(x), rows, on_gpu=on_gpu)
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
        mg.optim.clip_grad_norm_([*p.values()], MAX_NORM)
        training.losses.append(loss.item())
        if training.losses[-1] < best:
            best, snapshot = training.losses[-1], [one.detach().clone() for one in p.values()]
        for optimizer in optimizers:
            scaler.step(optimizer)
            optimizer.zero_grad()
            training.optimizing[f"update[{optimizer.algorithm!r}]"] += 2  # each has two parameters
        scaler.update()
        training.optimizing["clip_grad_norm_"] += 1
        training.optimizing["grad_scaler"] += 2 + 2 * len(optimizers)
    training.seconds = time.perf_counter() - began
    with mg.no_grad():  # copy-on-write has kept them from the steps that came after
        kept = dict(zip(p, snapshot, strict=True))
        training.best = [_loss(kept, mg.variable(x), rows, on_gpu=on_gpu).item()]
    return training


def train_compiled(steps: int) -> Training:
    """Train the first and the last layer by a compiled step.

    Args:
        steps: how many, at most 28. The first runs eagerly, the second is compiled.
    """
    p, training = _weights(), Training()
    optimizer = mg.optim.SGD([p[name] for name in ("w1", "b1", "w2", "b2")], learning_rate=0.2)

    @mg.compile
    def step(x: Any, labels: Any) -> Any:
        logits = mg.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        loss = mg.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    began = time.perf_counter()
    for x, labels in _batches(steps):
        training.losses.append(step(mg.variable(x), mg.variable(labels)).item())
    training.seconds = time.perf_counter() - began
    return training


def train_in_ranks(
    steps: int, each: Callable[[int], AbstractContextManager] = nullcontext
) -> Training:
    """Train by several workers, threads of this process, that sum their gradients.

    Args:
        steps: how many, at most 28.
        each: each(rank) is a context around the training of a worker.
    """

    def work() -> list[float]:
        rank, random, losses = mg.distributed.rank(), np.random.default_rng(0), []
        with each(rank):
            model = mg.nn.Sequential(
                mg.nn.Linear(64, HIDDEN), mg.nn.Tanh(), mg.nn.Linear(HIDDEN, 10)
            )
            for p in model.parameters():
                p.assign(mg.variable((random.normal(size=p.shape) / 4).astype(np.float32)))
            replica = mg.distributed.DataParallel(model)
            optimizer = mg.optim.SGD(model, learning_rate=0.2)
            for x, labels in _batches(steps):
                ((mine, right),) = mg.distributed.batches(x, labels, batch_size=BATCH)
                loss = mg.cross_entropy(model(mg.variable(mine)), mg.variable(right))
                replica.backward(loss, weight=len(mine))
                optimizer.step()
                optimizer.zero_grad()
                total = mg.distributed.all_reduce(loss.detach(), "weighted", weight=len(mine))
                losses.append(total.item())
        return losses

    began = time.perf_counter()
    losses = mg.distributed.run(work, RANKS)[0]
    return Training(losses=losses, seconds=time.perf_counter() - began)
