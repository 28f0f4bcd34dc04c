"""Steps on a machine that does something else, too: `python -m benchmarks.busy`.

Writes results/busy.md. Each step runs with two threads on two processors: alone, beside a process
that keeps one of them busy, and beside a copy of itself, as two learners on one machine are; and
with one thread alone. A figure is the median time of a step; beside a copy, the slower copy's.
Peers have their default settings but for the number of threads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, in_words
from benchmarks.process import PeerError, Process, environment
from benchmarks.rows import ROWS
from benchmarks.tables import publish, quantity, table

RESULTS = Path(__file__).with_name("results") / "busy.md"
STEPS = ("mlp-784-512-512-10", "transformer-step", "cnn-step", "recurrent-step")
PEERS = {"minigrad": "minigrad eager", "compiled": "minigrad compiled", "pytorch": "PyTorch eager"}
LOOP = "from benchmarks.process import limit_processors\nlimit_processors(2)\nwhile True: pass"
TITLES = ["step", "who", "alone", "beside a busy loop", "beside a copy", "one thread, alone"]


@contextmanager
def started(peer: str, threads: int, row: Any) -> Iterator[Process]:
    """Start a process of a peer that has built a row's case; end it afterwards."""
    process = Process(peer, threads)
    try:
        process.ask("build", kind=row.kind, settings=row.settings)
        yield process
    finally:
        process.close()


@contextmanager
def busy_loop() -> Iterator[None]:
    """Keep a processor busy."""
    child = subprocess.Popen([sys.executable, "-c", LOOP], env=environment(1))
    try:
        yield
    finally:
        child.kill()
        child.wait()


def median(process: Process, seconds: float) -> float:
    """Return the median seconds of a step."""
    return process.ask("round", seconds=seconds)["median"]


def side_by_side(processes: list[Process], seconds: float) -> float:
    """Return the slower of their medians while all of them run."""
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda p=p: found.append(median(p, seconds))) for p in processes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) < len(processes):
        raise PeerError("one of several processes failed")
    return max(found)


def measured(peer: str, row: Any, seconds: float) -> list[float]:
    """Return the figures of a peer: alone, beside a busy loop, beside a copy, with one thread."""
    with started(peer, 2, row) as one:
        alone = median(one, seconds)
        with busy_loop():
            busy = median(one, seconds)
        with started(peer, 2, row) as other:
            copies = side_by_side([one, other], seconds)
    with started(peer, 1, row) as single:
        return [alone, busy, copies, median(single, seconds)]


def figures(measure: Callable[[], list[float]]) -> list[str]:
    """Return the cells of a row, dashes where the peer is missing or fails."""
    try:
        return [quantity(x, "s") for x in measure()]
    except PeerError as error:
        sys.stderr.write(f"{error}\n")
        return ["–"] * 4


def main() -> int:
    """Measure, write the table, print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a measurement (4)")
    parser.add_argument("--only", nargs="+", choices=STEPS, help="these; nothing is written")
    options = parser.parse_args()
    machine, lines = describe(), []
    for row in ROWS:
        if row.name in (options.only or STEPS):
            for peer, title in PEERS.items():
                cells = figures(lambda p=peer, r=row: measured(p, r, options.seconds))
                lines.append([row.title, title, *cells])
    if options.only:
        sys.stdout.write("\n".join(table(TITLES, lines)) + "\n")
    else:
        publish(RESULTS, table(TITLES, lines), f"{in_words(machine)}. `python -m benchmarks.busy`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
