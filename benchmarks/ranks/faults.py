"""A fault of rank 1, and when each rank gets its error: `faults.py FAULT TIMEOUT FOLDER`.

Each rank writes FOLDER/RANK.json: when the error came, by the clock that all processes share, and
its text. Rank 1 writes FOLDER/fault.json first: when it began. FOLDER/RANK.pid names a process.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import minigrad as mg
from minigrad import distributed, errors


def kill(number):
    """Returns a fault: this process gets a signal."""
    return lambda replica: os.kill(os.getpid(), number)


def raises(replica):
    """Raises what no rank catches."""
    raise ValueError("no such batch")


def ends(replica):
    """Ends as a script does that has come to its last line."""
    sys.exit(0)


def reduce(elements):
    """Returns a call: a sum over the ranks."""
    return lambda replica: distributed.all_reduce(mg.zeros((elements,)))


def backward(value):
    """Returns a call: the gradients of a loss, which has this value."""
    return lambda replica: replica.backward(replica(mg.full((1, 1), value)).sum(), weight=1)


FAULTS = {  # {name: (what rank 1 does, what the others do)}
    "exception": (raises, reduce(4)),
    "killed": (kill(signal.SIGKILL), reduce(4)),
    "stopped": (kill(signal.SIGSTOP), reduce(4)),
    "ends": (ends, reduce(4)),
    "shape": (reduce(3), reduce(4)),
    "order": (lambda replica: distributed.barrier(), reduce(4)),
    "nan": (backward(float("nan")), backward(1.0)),
}


def main(fault, timeout, folder):
    """Commits the fault."""
    mg.set_default_device("numpy")  # it compiles nothing: the processes start sooner
    distributed.init(timeout=timeout)
    rank = distributed.rank()
    (folder / f"{rank}.pid").write_text(f"{os.getpid()}")
    replica = distributed.DataParallel(mg.nn.Linear(1, 1))
    at_fault, others = FAULTS[fault]
    distributed.barrier()
    try:
        if rank == 1:
            (folder / "fault.json").write_text(json.dumps({"at": time.monotonic()}))
            at_fault(replica)
        else:
            others(replica)
    except (errors.DistributedError, errors.NonFiniteError) as error:
        told = {"at": time.monotonic(), "text": f"{type(error).__name__}: {error}"}
        (folder / f"{rank}.json").write_text(json.dumps(told))
        raise


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
