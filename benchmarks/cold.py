"""Where the first call of a compiled CNN step goes: `python -m benchmarks.cold` writes cold.md.

Each call is a process of its own, with an empty folder for kernels, with the kernels of
`devices/source/` there, as `minigrad lab` compiles them ahead, and with all of them. Seconds of a
processor, not of a clock: the least of some rounds, and within that round the parts.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.machine import describe, in_words
from benchmarks.process import environment
from benchmarks.rows import ROWS
from benchmarks.tables import publish, table

RESULTS = Path(__file__).with_name("results") / "cold.md"
ROUNDS = 3
STATES = ("nothing compiled", "compiled ahead", "all compiled")
PARTS = {  # title -> passes of Numba; the rest of a pipeline is in "its other passes"
    "Numba: from bytecode to its own form": {"translate_bytecode", "ir_processing"},
    "Numba: types": {"nopython_type_inference"},
    "Numba: LLVM's text": {"native_lowering"},
}
OTHER, LLVM, OURS = "Numba: its other passes", "LLVM: optimising, machine code", "minigrad"


def parts() -> dict[str, float]:
    """Run the first call in this process, and return the seconds of each part."""
    from numba.core import codegen, event

    from benchmarks.peers import compiled_peer

    titles = {name: title for title, names in PARTS.items() for name in names}
    spent: dict[str, float] = defaultdict(float)
    under_way = [OURS]
    since = time.process_time()

    def switch():
        nonlocal since
        now = time.process_time()
        spent[under_way[-1]] += now - since
        since = now

    class Passes(event.Listener):
        def on_start(self, event):
            switch()
            under_way.append(titles.get(event.data["name"].partition(" [")[0], OTHER))

        def on_end(self, event):
            switch()
            under_way.pop()

    def counted(method):
        def whole(*arguments):
            switch()
            under_way.append(LLVM)
            try:
                return method(*arguments)
            finally:
                switch()
                under_way.pop()

        return whole

    of_library = "_optimize_functions", "_optimize_final_module", "_finalize_final_module"
    for name in of_library:
        found = getattr(codegen.CPUCodeLibrary, name)
        setattr(codegen.CPUCodeLibrary, name, counted(found))
    row = next(row for row in ROWS if row.name == "cnn-step")
    case = compiled_peer.BUILDERS[row.kind](**row.settings)
    with event.install_listener("numba:run_pass", Passes()):
        since = time.process_time()
        case.step()
        switch()
    return spent


def measured(kernels: str) -> dict[str, float]:
    """Return the parts of a first call in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cold", "parts"],
        env={**environment(os.cpu_count() or 1), "MINIGRAD_CACHE": kernels},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def main() -> int:
    """Measure, write the table, print it."""
    machine = describe()  # before the load is ours
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as kernels:
            for state in STATES:
                found = measured(kernels)
                if state not in best or sum(found.values()) < sum(best[state].values()):
                    best[state] = found
                if state == STATES[0]:
                    for path in Path(kernels).glob("*.step.*.code"):
                        with contextlib.suppress(OSError):
                            path.unlink()
    rows = [
        [part, *(f"{best[state].get(part, 0.0):.2f} s" for state in STATES)]
        for part in (*PARTS, OTHER, LLVM, OURS)
    ]
    rows.append(["all", *(f"{sum(best[state].values()):.2f} s" for state in STATES)])
    note = (
        f"{in_words(machine)}. The first call of the step of the row `cnn-step`, least of {ROUNDS} "
        "rounds, seconds of a processor. Made by `python -m benchmarks.cold`."
    )
    publish(RESULTS, table(["part", *STATES], rows), note)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["parts"]:
        sys.stdout.write(json.dumps(parts()))
    else:
        sys.exit(main())
