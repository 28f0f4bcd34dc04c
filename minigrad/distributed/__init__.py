"""Training by several ranks: each has a copy of the model and computes its part of every batch.

A rank is a process that MPI started, or a thread of this process (`run`, for lessons and tests).
All ranks make the same calls in the same order. Each call compares what the ranks ask for, so a
mistake of one rank is an error on every rank, and none waits for ever.
"""

from minigrad.distributed.collectives import all_gather, all_reduce, barrier, broadcast
from minigrad.distributed.data_parallel import DataParallel
from minigrad.distributed.membership import init, rank, size
from minigrad.distributed.rank_threads import run
from minigrad.distributed.sharding import batches
from minigrad.hints import missing as _missing

__all__ = [
    "DataParallel",
    "all_gather",
    "all_reduce",
    "barrier",
    "batches",
    "broadcast",
    "init",
    "rank",
    "run",
    "size",
]


def __getattr__(name):
    raise _missing("mg.distributed", name, "mg.distributed has no", known=__all__)
