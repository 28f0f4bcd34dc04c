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
    # -m mpi4py: a rank that ends by an exception ends all, also before mg.distributed.init()
    python = [sys.executable, supervisor.__file__, sys.executable, "-m", "mpi4py"]
    command = [launcher, "-n", f"{options.ranks}", *python]
    with tempfile.TemporaryDirectory(prefix="minigrad-ranks-") as folder:
        environment = {**os.environ, supervisor.FOLDER: folder}
        for name in THREADS:
            environment.setdefault(name, f"{threads_of_a_rank(options.ranks)}")
        for name, value in OPEN_MPI.items():
            environment.setdefault(name, value)
        command += [options.script, *options.arguments]
        code = subprocess.call(command, env=environment)
        if code:
            print("\n".join(report(notes.calls_of(folder), notes.died(folder))), file=sys.stderr)
    return 1 if code else 0  # launchers return now the code of one rank, now that of another


def find_launcher() -> str | None:
    """Return the path of MPI's launcher: that of this environment, else the first one in PATH."""
    for folder in (str(Path(sys.executable).parent), None):
        for name in LAUNCHERS:
            if found := shutil.which(name, path=folder):
                return found
    return None


def threads_of_a_rank(ranks: int) -> int:
    """Return how many threads each of several ranks on this machine may have."""
    is_known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
    return max(1, cores // ranks)


def report(calls: dict[int, tuple[int, str]], deaths: dict[int, str]) -> list[str]:
    """Return lines about ranks that failed; calls and deaths are those of `notes`."""
    lines = ["minigrad run: the ranks have failed."]
    for rank in sorted({*calls, *deaths}):
        process, call = calls.get(rank, (0, "none"))
        how = f" {deaths[rank]};" if rank in deaths else ""
        lines.append(f"  rank {rank} (process {process or '?'}){how} last call: {call}")
    return lines


def _refuse(why: str, code: int) -> int:
    print(f"minigrad run: {why}", file=sys.stderr)
    return code
