"""Train for a long time and watch memory: `python examples/steady.py --steps 10000`.

Prints live graph nodes and bytes as training goes on. Every row should be the same: outputs own the
graph, so nothing is left of a step but the parameters and the state of the optimizer.
"""

import argparse
import time
from typing import NamedTuple

import minigrad as mg
from minigrad import nn


class Mark(NamedTuple):
    """The engine's memory after so many steps."""

    step: int
    live_nodes: int
    current_bytes: int
    reserved_bytes: int
    system_allocations: int


def measure(kind="Adam", steps=10_000, every=1000, report=lambda mark: None):
    """Trains a small network with an optimizer of mg.optim; a Mark every so many steps.

    No garbage collection is asked for: nothing here needs one.
    """
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    optimizer = getattr(mg.optim, kind)(model, learning_rate=1e-3)
    x, labels = mg.randn((32, 8)), mg.randint(0, 4, (32,))
    marks, losses = [], []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), labels)
        loss.backward()
        mg.optim.clip_grad_norm_(model, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % every == 0:
            del loss
            stats = mg.memory.stats()
            marks.append(Mark(step, *(stats[name] for name in Mark._fields[1:])))
            report(marks[-1])
    return marks


def main(argv=None):
    """Prints a row for each mark."""
    parser = argparse.ArgumentParser(description="Train for a long time and watch memory.")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--optimizer", default="Adam", choices=["SGD", "Adam", "AdamW", "RMSprop"])
    options = parser.parse_args(argv)
    print(f"{'step':>8} {'live nodes':>11} {'bytes':>9} {'reserved':>10} {'from system':>12}")

    def report(mark):
        print(
            f"{mark.step:8,} {mark.live_nodes:11,} {mark.current_bytes:9,} "
            f"{mark.reserved_bytes:10,} {mark.system_allocations:12,}"
        )

    start = time.perf_counter()
    marks = measure(options.optimizer, options.steps, max(1, options.steps // 10), report)
    flat = len({mark[1:] for mark in marks}) == 1
    print(f"{'flat' if flat else 'NOT FLAT'}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
