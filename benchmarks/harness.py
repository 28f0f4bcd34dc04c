"""Runs rows: one process per peer, rounds interleaved, results compared.

In each round every peer takes its turn, so that a machine that grows warm or busy slows all of
them. A round resets parameters and optimizer state, for values that have been trained for long
become denormal, and those are slow.
"""

import math
import statistics

from benchmarks.peers import PEERS
from benchmarks.process import PeerError, Process, time_script

RTOL = 1e-3
FRESH_PROCESS = ("import", "first")


def summary(rounds):
    """Median over the rounds' medians, best over all batches."""
    return {
        "median": statistics.median(r["median"] for r in rounds),
        "best": min(r["best"] for r in rounds),
        "rounds": [r["median"] for r in rounds],
        "steps": sum(r["steps"] for r in rounds),
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

    Args:
        peers: names, the first of which is the reference for results.
        rounds: how often each peer takes its turn.
        seconds: how long a turn lasts.
        threads: for each peer.
        start: makes the process of a peer (tests put another in its place).
        script: times a script in a fresh process.
        say: takes a line about progress.
    """

    def __init__(
        self,
        peers,
        rounds=5,
        seconds=0.4,
        threads=2,
        start=Process,
        script=time_script,
        say=print,
    ):
        self.rounds, self.seconds, self.threads = rounds, seconds, threads
        self.script, self.say = script, say
        self.status, self.processes, self.versions = {}, {}, {}
        for name in peers:
            self.status[name] = "measured" if PEERS[name].installed else "not installed"
            if self.status[name] == "measured":
                self.processes[name] = start(name, threads)
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

    def run(self, row):
        """One row's results: peer -> summary, and what went wrong."""
        if row.kind in FRESH_PROCESS:
            return self._run_scripts(row)
        results, errors, numbers = {}, {}, {}
        for name, process in self.processes.items():
            try:
                built = process.ask("build", kind=row.kind, settings=row.settings)
            except PeerError as error:
                errors[name] = str(error)
                continue
            if "bytes" in built:
                value = built["bytes"]
                results[name] = {"median": value, "best": value, "rounds": [value], "steps": 1}
            elif "numbers" in built:
                numbers[name] = built["numbers"]
        for name, what in disagreements(numbers).items():
            errors[name] = f"computes something else: {what}"
        turns = {name: [] for name in numbers if name not in errors}
        for _ in range(self.rounds):
            for name in list(turns):
                try:
                    turns[name].append(self.processes[name].ask("round", seconds=self.seconds))
                except PeerError as error:
                    errors[name] = str(error)
                    del turns[name]
        results |= {name: summary(rounds) for name, rounds in turns.items() if rounds}
        self._drop()
        return {"results": results, "errors": errors, "numbers": numbers}

    def _run_scripts(self, row):
        results, errors = {}, {}
        turns = {name: [] for name in self.processes}
        for k in range(self.rounds + 1):
            for name in list(turns):
                peer = PEERS[name]
                script = peer.imports if row.kind == "import" else peer.first
                try:
                    seconds = self.script(script, self.threads)
                except PeerError as error:
                    errors[name] = str(error)
                    del turns[name]
                    continue
                if k:  # the first reads files from the disk and fills caches
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
                "unit": row.unit,
                "goal": row.goal,
                "goal_ratio": row.ratio,
                **outcome,
            }
            entry |= judged(row, outcome["results"])
            for name, what in outcome["errors"].items():
                self.say(f"  {name}: {what}")
            self.say(
                "  " + ", ".join(f"{n} {r['median']:.3g}" for n, r in entry["results"].items())
            )
            done.append(entry)
        return done


def judged(row, results):
    """The ratio of minigrad to PyTorch, and whether the goal is met (None: cannot be said)."""
    ours, theirs = results.get("minigrad"), results.get("pytorch")
    ratio = ours["median"] / theirs["median"] if ours and theirs else None
    best = ours["best"] / theirs["best"] if ours and theirs else None
    met = None
    if row.ratio is not None and ratio is not None:
        met = ratio <= row.ratio
    elif row.limit is not None and ours:
        met = ours["median"] < row.limit
    return {"ratio": ratio, "ratio_of_best": best, "goal_met": met}
