"""Rows that need a fresh process for each figure: import, first gradient, first two calls."""

import json
import tempfile
from pathlib import Path

from benchmarks.peers import PEERS
from benchmarks.process import last_line

KINDS = ("import", "first", "calls")


def offers(peer, row):
    """Whether a peer takes part in such a row."""
    asked = PEERS[peer]
    return bool({"import": asked.imports, "first": asked.first, "calls": asked.compiles}[row.kind])


def seconds(peer, row, threads, caches):
    """One figure, or None where the peer offers no such step.

    Python's own start is not counted. With `cold` in the row's settings, the caches are in a folder
    that is empty; otherwise in `caches`, which the first call fills.
    """
    if row.kind == "calls":
        if not row.settings["cold"]:
            return _calls(peer, row, threads, caches)
        with tempfile.TemporaryDirectory() as empty:
            return _calls(peer, row, threads, empty)
    script = PEERS[peer].imports if row.kind == "import" else PEERS[peer].first
    timed = (
        f"import time; start = time.perf_counter()\n{script}\nprint(time.perf_counter() - start)"
    )
    return float(last_line(["-c", timed], threads, caches))


def _calls(peer, row, threads, caches):
    Path(caches).mkdir(parents=True, exist_ok=True)
    described = (row.settings["kind"], json.dumps(row.settings["settings"]), str(threads))
    told = last_line(["-m", "benchmarks.first_calls", peer, *described], threads, caches)
    return None if told == "unsupported" else float(told)
