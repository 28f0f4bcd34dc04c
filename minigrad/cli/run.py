"""`minigrad run`: starts a script in several processes, the ranks of `mg.distributed`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

USAGE, MISSING = 2, 3
LAUNCHERS = ("mpiexec", "mpirun")
# what libraries read to choose their number of threads: all ranks share the machine's cores
THREADS = ("MINIGRAD_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Open MPI ties each rank to one core, and starts no more ranks than there are cores
OPEN_MPI = {
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(options: argparse.Namespace) -> int:
    """Run the script by MPI's launcher; return 0, or 1 if a rank failed."""
    from minigrad.distributed import (
        notes,
        supervisor,
    )  # they load the engine: no other command does

    if options.ranks < 1:
        return _refuse(f"wanted at least 1 rank, got {options.ranks}", USAGE)
    if not Path(options.script).is_file():
        return _refuse(f"there is no file {options.script}", USAGE)
    launcher = find_launcher()
    missing = [] if launcher else [f"{LAUNCHERS[0]}, which MPI has"]
    missing += [] if importlib.util.find_spec("mpi4py") else ["the package mpi4py"]
    if missing or launcher is None:
        return _refuse(
            f"ranks need {' and '.join(missing)}. pip install 'minigrad[distributed]' brings both; "
            "on a cluster load its own MPI (module load ...) and pip install mpi4py",
            MISSING,
        )
    python = [sys.executable, supervisor.__file__]
    command = [launcher, "-n", f"{options.ranks}", *python, *python, supervisor.INSIDE]
    with tempfile.TemporaryDirectory(prefix="minigrad-ranks-") as folder:
        environment = {**os.environ, supervisor.FOLDER: folder}
        for name in THREADS:
            environment.setdefault(name, f"{threads_of_a_rank(options.ranks)}")
        for name, value in OPEN_MPI.items():
            environment.setdefault(name, value)
        command += [options.script, *options.arguments]
        code = subprocess.call(command, env=environment)
        calls, processes = notes.calls_of(folder), notes.processes(folder)
        lines = report(calls, processes, notes.ends(folder)) if code else warning(calls, processes)
        print("".join(f"{line}\n" for line in lines), end="", file=sys.stderr)
    return 1 if code else 0  # launchers return now the code of one rank, now that of another


def find_launcher() -> str | None:
    """Return the path of MPI's launcher: that of this environment, else the first one in PATH."""
    for folder in (str(Path(sys.executable).parent), None):
        for name in LAUNCHERS:
            if launcher := shutil.which(name, path=folder):
                return launcher
    return None


def threads_of_a_rank(ranks: int) -> int:
    """Return how many threads each of several ranks on this machine may have."""
    is_known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
    return max(1, cores // ranks)


def report(calls: dict, processes: dict, ends: dict) -> list[str]:
    """Return lines about ranks that failed, the first cause first; arguments: those of `notes`.

    A rank that others hold at fault comes before one that fails alone, and that before those that
    only heard of it.
    """
    blamed = {}  # {rank: the first that holds it at fault}
    for rank, end in sorted(ends.items(), key=lambda item: item[1].when):
        for other in end.ranks:
            blamed.setdefault(other, rank)

    def told(rank):
        """Return where a rank stands, and how it ended."""
        end = ends.get(rank)
        if rank in blamed and (end is None or (end.ranks and rank not in end.ranks)):
            teller = blamed[rank]
            return (0, ends[teller].when), f"rank {teller} says: {ends[teller].text}"
        if end is None:
            return (3, 0), "no error of its own"
        if end.ranks and rank not in end.ranks:
            return (2, 0), "heard of it"
        return (0 if rank in blamed else 1, end.when), end.text

    lines = ["minigrad run: the ranks have failed."]
    for rank in sorted({*calls, *processes, *blamed}, key=lambda rank: (told(rank)[0], rank)):
        last = calls.get(rank) or "none"
        process = processes.get(rank, "?")
        lines.append(f"  rank {rank} (process {process}): {told(rank)[1]}; last call: {last}")
    return lines


def warning(calls: dict, processes: dict) -> list[str]:
    """Return a line if several ranks have exchanged nothing; arguments: those of `notes`."""
    n = len(processes)
    if n < 2 or any(calls.values()):
        return []
    reason = (
        f"the {n} ranks called mg.distributed.init(), and nothing of it that ranks do together"
        if calls
        else f"none of the {n} processes called mg.distributed.init()"
    )
    return [f"minigrad run: {reason}: {n} copies of one program have run, each by itself"]


def _refuse(why: str, code: int) -> int:
    print(f"minigrad run: {why}", file=sys.stderr)
    return code
