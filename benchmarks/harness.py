"""Runs rows: one process per peer, rounds interleaved, results compared.

In each round every peer takes its turn, so that a machine that grows warm or busy slows all of
them. A round resets parameters and optimizer state, for values that have been trained for long
become denormal, and those are slow.
"""

import math
import statistics
import tempfile
from pathlib import Path

from benchmarks import fresh
from benchmarks.limits import limit
from benchmarks.peers import PEERS
from benchmarks.process import PeerError, Process

RTOL = 1e-3


def summary(rounds):
    """Median over the rounds' medians, best over all batches."""
    waits = [r["waited"] for r in rounds if "waited" in r]
    return {
        "median": statistics.median(r["median"] for r in rounds),
        "best": min(r["best"] for r in rounds),
        "rounds": [r["median"] for r in rounds],
        "steps": sum(r["steps"] for r in rounds),
        **({"waited": statistics.median(waits)} if waits else {}),
    }


def disagreements(numbers, rtol=RTOL):
    """The peers whose numbers differ from the first one's, with what differs.

    Args:
        numbers: peer -> list of floats.
        rtol: relative tolerance; sums of float32 in another order differ by 1e-5 or so.
    """
    if not numbers:
        return {}
    (reference, expected), *others = numbers.items()
    wrong = {}
    for peer, values in others:
        if len(values) != len(expected):
            wrong[peer] = f"{len(values)} numbers, {reference} has {len(expected)}"
            continue
        for k, (got, wanted) in enumerate(zip(values, expected, strict=True)):
            if not math.isclose(got, wanted, rel_tol=rtol, abs_tol=1e-6):
                wrong[peer] = f"number {k} is {got:.6g}, {reference} has {wanted:.6g}"
                break
    return wrong


class Harness:
    """Peers' processes, and the running of rows over them.

    Each peer caches what it compiles in an empty folder of its own, so that the first calls of a
    row say what compiling costs.

    Args:
        peers: names, the first of which is the reference for results.
        rounds: how often each peer takes its turn.
        seconds: how long a turn lasts.
        threads: for each peer.
        start: makes the process of a peer (tests put another in its place).
        once: one figure of a fresh process.
        say: takes a line about progress.
        rates: what the machine can do, as `rates.measured`; None leaves the limits out.
    """

    def __init__(
        self,
        peers,
        rounds=5,
        seconds=0.4,
        threads=2,
        start=Process,
        once=fresh.seconds,
        say=print,
        rates=None,
    ):
        self.rounds, self.seconds, self.threads = rounds, seconds, threads
        self.once, self.say, self.rates = once, say, rates
        self.status, self.processes, self.versions = {}, {}, {}
        self.caches = tempfile.TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True)
        for name in peers:
            self.status[name] = "measured" if PEERS[name].installed else "not installed"
            if self.status[name] == "measured":
                self.processes[name] = start(name, threads, self._folder(name))
        for name, process in list(self.processes.items()):
            try:
                self.versions[name] = process.ask("version")["version"]
            except PeerError as error:
                self.status[name] = f"does not start: {error}"
                self.processes.pop(name).close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.close()
        self.caches.cleanup()

    def _folder(self, name):
        """Where a peer keeps what it compiles."""
        folder = Path(self.caches.name) / name
        folder.mkdir(exist_ok=True)
        return folder

    def run(self, row):
        """One row's results: peer -> summary, and what went wrong."""
        if row.kind in fresh.KINDS:
            return self._run_fresh(row)
        results, errors, built = {}, {}, {}
        for name, process in self.processes.items():
            try:
                answer = process.ask("build", kind=row.kind, settings=row.settings)
            except PeerError as error:
                errors[name] = str(error)
                continue
            if not answer.get("unsupported"):
                built[name] = answer
        numbers = {name: answer["numbers"] for name, answer in built.items()}
        for name, what in disagreements(numbers).items():
            errors[name] = f"computes something else: {what}"
        turns = {name: [] for name in built if name not in errors}
        for _ in range(row.rounds or self.rounds):
            for name in list(turns):
                try:
                    turns[name].append(self.processes[name].ask("round", seconds=self.seconds))
                except PeerError as error:
                    errors[name] = str(error)
                    del turns[name]
        for name, rounds in turns.items():
            results[name] = summary(rounds) | {"first": built[name]["first"]} | built[name]["held"]
        self._drop()
        return {"results": results, "errors": errors, "numbers": numbers}

    def _run_fresh(self, row):
        errors = {}
        turns = {name: [] for name in self.processes if fresh.offers(name, row)}
        # Unless it is to be cold, the first figure reads files from the disk and fills caches.
        uncounted = 0 if row.settings.get("cold") else 1
        for k in range((row.rounds or self.rounds) + uncounted):
            for name in list(turns):
                try:
                    seconds = self.once(name, row, self.threads, self._folder(f"{name}-fresh"))
                except PeerError as error:
                    errors[name] = str(error)
                    seconds = None
                if seconds is None:
                    del turns[name]
                elif k >= uncounted:
                    turns[name].append({"median": seconds, "best": seconds, "steps": 1})
        results = {name: summary(rounds) for name, rounds in turns.items()}
        return {"results": results, "errors": errors, "numbers": {}}

    def _drop(self):
        for name, process in list(self.processes.items()):
            try:
                process.ask("drop")
            except PeerError as error:  # ended or stuck: it takes no part in later rows
                self.status[name] = f"stopped: {error}"
                self.processes.pop(name).close()

    def run_all(self, rows):
        """All rows, each with its description, as the JSON file holds them."""
        done = []
        for row in rows:
            self.say(f"{row.name} ...")
            outcome = self.run(row)
            entry = {
                "name": row.name,
                "title": row.title,
                "kind": row.kind,
                "settings": row.settings,
                "limit": limit(row, self.rates),
                **outcome,
                "goals": [goal.judged(outcome["results"]) for goal in row.goals],
            }
            for name, what in outcome["errors"].items():
                self.say(f"  {name}: {what}")
            self.say(
                "  " + ", ".join(f"{n} {r['median']:.3g}" for n, r in entry["results"].items())
            )
            done.append(entry)
        return done
