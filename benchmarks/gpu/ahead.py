"""Kernels compiled ahead of the checks, by all cores: one after the other takes minutes.

Processes run the checks' parts and throw what they find away; what stays are the compiled kernels,
on disk, where the checks find them.
"""

import contextlib
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from benchmarks.gpu import check

MOST_PROCESSES = 8  # each takes some 0.5 GB of the GPU's memory for itself
WHOLE = {"large arrays": check.large, "training steps": check.training}


def parts(names=None):
    """What the processes are given one by one, the longest first: of WHOLE, and names of ops."""
    ops = [name for name in check.checked_ops() if names is None or name in names]
    return [*reversed(WHOLE), *ops]


def run_part(device, part):
    """Runs a part; whatever is wrong will be seen by the checks."""
    with contextlib.suppress(Exception):
        if part in WHOLE:
            WHOLE[part](device)
        else:
            check.operations(device, [part])


def compile_all(device, names=None, processes=None):
    """Runs every part, on a device by its name; a process that dies is no fault."""
    processes = min(processes or os.cpu_count() or 1, MOST_PROCESSES)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_part, device, part) for part in parts(names)]
        for one in running:
            try:
                one.result()
            except BrokenProcessPool:
                return
