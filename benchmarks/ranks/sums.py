"""Times sums over ranks by `mg.distributed` and by plain mpi4py, by turns: `sums.py TURNS`."""

import json
import sys
import time

import mpi4py
import numpy as np
from mpi4py import MPI

import minigrad as mg
from minigrad import distributed
from minigrad.distributed import membership

SIZES = [1 << k for k in range(10, 25, 2)]  # bytes: 1 KiB to 16 MiB
SECONDS = 0.02  # of a turn: the least turn is one in which no other process ran


def turn(function, calls):
    """Returns the seconds of a call, on this rank."""
    MPI.COMM_WORLD.Barrier()
    started = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - started) / calls


def least(functions, turns):
    """Returns the least seconds of a call of each, of so many turns, on this rank."""
    counts = []
    for f in functions:
        turn(f, 3)
        once = MPI.COMM_WORLD.bcast(turn(f, 3))  # the same number of calls on all ranks
        counts.append(max(5, int(SECONDS / once)))
    found = [[turn(f, n) for f, n in zip(functions, counts, strict=True)] for _ in range(turns)]
    return [min(times) for times in zip(*found, strict=True)]


def bytes_told():
    """Returns how many bytes this rank sends to the others to compare one call."""
    engine, sent = membership.current("sums").engine, []
    if engine.size > 1:
        send = engine._send
        engine._send = lambda data, *where: (sent.append(len(data)), send(data, *where))
    distributed.all_reduce(mg.ones((256,)))
    vars(engine).pop("_send", None)
    return sum(sent)


def main():
    """Prints seconds: {"barrier": s, "sums": [[bytes, by minigrad, by mpi4py], ...]}, and more.

    "told": bytes to compare one call; "mpi": which MPI this is.
    """
    turns = int(sys.argv[1])
    distributed.init(timeout=60)
    comm = MPI.COMM_WORLD
    told = bytes_told()
    (barrier,) = least([distributed.barrier], turns)
    lines = []
    for size in SIZES:
        data = np.ones(size // 4, np.float32)
        x, out = mg.variable(data), np.empty_like(data)
        functions = [
            lambda x=x: distributed.all_reduce(x),
            lambda d=data, o=out: comm.Allreduce(d, o),
        ]
        lines.append([size, *least(functions, turns)])
        np.testing.assert_array_equal(distributed.all_reduce(x).numpy(), out)
    if comm.rank == 0:
        library = " ".join(MPI.Get_library_version().partition("\n")[0].split())
        mpi = f"mpi4py {mpi4py.__version__}, {library}"
        print(json.dumps({"barrier": barrier, "told": told, "sums": lines, "mpi": mpi}))


if __name__ == "__main__":
    main()
