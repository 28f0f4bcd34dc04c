"""The process of one peer: `python -m benchmarks.worker PEER THREADS`.

It reads one JSON command per line from standard input and answers each with one line:

    {"command": "version"}                            -> {"version": "2.13.0"}
    {"command": "build", "kind": ..., "settings": {}} -> {"first": s, "numbers": [...],
                                                          "held": {"bytes": n}}
                                                         or {"unsupported": true}
    {"command": "round", "seconds": 0.4}              -> {"median": s, "best": s, "steps": n}
    {"command": "drop"}                               -> {}

An exception becomes {"error": its last line, "traceback": all of it}.
"""

import gc
import importlib
import json
import os
import sys
import traceback

from benchmarks import denormals
from benchmarks.case import first_calls, measure
from benchmarks.peers import PEERS
from benchmarks.process import limit_processors


class Worker:
    """Answers commands about one peer."""

    def __init__(self, module):
        self.module = module
        self.case = None

    def answer(self, command):
        """The answer to one command, a dict."""
        try:
            return getattr(self, command.pop("command"))(**command)
        except Exception as error:
            last = f"{type(error).__name__}: {error}".splitlines()[0]
            return {"error": last, "traceback": traceback.format_exc()}

    def version(self):
        """The peer's version."""
        return {"version": self.module.version()}

    def build(self, kind, settings):
        """Makes the case of a row; times its first calls, computes its numbers, asks its bytes."""
        self.drop()
        builder = self.module.BUILDERS.get(kind)
        if builder is None:
            return {"unsupported": True}
        self.case = case = builder(**settings)
        first = first_calls(case)
        numbers = case.numbers()
        return {"first": first, "numbers": numbers, "held": case.held() if case.held else {}}

    def round(self, seconds):
        """Times one round."""
        if self.case is None:
            raise RuntimeError("a round was asked for before a case was built")
        return measure(self.case, seconds)

    def drop(self):
        """Lets the case go."""
        self.case = None
        gc.collect()
        return {}


def main(peer, threads):
    """Serves until standard input ends."""
    limit_processors(threads)
    # Before the library starts threads: they take over what holds here.
    denormals.flush()
    # What a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module = importlib.import_module(PEERS[peer].module)
    module.prepare(threads)
    worker = Worker(module)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
