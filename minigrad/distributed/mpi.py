"""Ranks that are processes which MPI started, by mpi4py (extra `distributed`).

Heads go from every rank to every other one, so a rank that waits knows for whom. No wait blocks in
MPI, which could not end it: all are polled, with pauses, since ranks may share a core.
"""

import atexit
import os
import pickle
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from minigrad.distributed.engine import WAITS_LONGER, Engine, absent
from minigrad.distributed.notes import died, note_call, note_joined
from minigrad.distributed.supervisor import FOLDER, first_line
from minigrad.errors import MissingLibraryError

HEAD, GONE, ALONE = 1, 2, 3  # tags of messages; ALONE: to one rank
SPINS = 200  # polls before the first pause
PAUSE = 5e-5  # seconds
NEWS = 0.02  # seconds between two looks for notes of dead ranks


class Gone(NamedTuple):
    """What a rank tells the others before it ends.

    before: the number of the first call in which it takes no part, 0 for a rank that is dead.
    ranks, text: who is at fault, and why.
    """

    before: int
    ranks: list
    text: str


class Moving(NamedTuple):
    """A request, and data that MPI may still write, also after a timeout."""

    request: Any
    data: Any


class MpiEngine(Engine):
    """The engine of one process. MPI: mpi4py's module."""

    name = "mpi"

    def __init__(self, MPI, timeout):
        self.MPI, self.timeout = MPI, timeout
        self.comm = MPI.COMM_WORLD.Dup()
        self.comm.Set_errhandler(MPI.ERRORS_RETURN)
        self.rank, self.size = self.comm.rank, self.comm.size
        self._gone: dict[int, Gone] = {}
        self._before = 1  # the number of the call that is not complete yet
        self._sent: Any = []  # requests, and the bytes that they send
        self._moving: list[Moving] = []
        self._notes, self._looked = os.environ.get(FOLDER), 0.0  # of dead ranks

    def exchange(self, head):
        self._before = head.number
        note_call(self.rank, head)
        heads = {self.rank: head}
        data = pickle.dumps(head)
        for r in self._others():
            self._send(data, r, HEAD)
        waiting = self._others()

        def is_over():
            for r in [*waiting]:
                if self.comm.Iprobe(r, HEAD):
                    heads[r] = self._receive(r, HEAD)
                    waiting.remove(r)
            is_hopeless = self._hear() or any(g.before <= head.number for g in self._gone.values())
            return is_hopeless or not waiting

        self._poll(is_over)
        if waiting:
            reasons = [g for g in self._gone.values() if g.before <= head.number]
            late = Gone(head.number, waiting, f"did not come within {self.timeout:g} s")
            raise self._given_up(head, sorted(reasons) or [late])
        self._before = head.number + 1
        return [heads[r] for r in range(self.size)]

    def start_sum(self, data):
        return self._started(self.comm.Iallreduce(self.MPI.IN_PLACE, data), data)

    def advance(self):
        for one in self._moving:
            if not one.request.Test():  # MPI moves data of all requests while it looks at one
                break

    def finish_sum(self, started, head):
        self._move(started, head)

    def broadcast(self, data, root, head):
        self._move(self._started(self.comm.Ibcast(_bytes(data), root), data), head)

    def gather(self, data, head):
        gathered = np.empty((self.size, *data.shape), data.dtype)
        request = self.comm.Iallgather(_bytes(data), _bytes(gathered))
        self._move(self._started(request, (data, gathered)), head)
        return list(gathered)

    def send(self, message, rank):
        self._send(pickle.dumps(message), rank, ALONE)

    def receive(self, rank, head):
        self._poll(lambda: self.comm.Iprobe(rank, ALONE) or self._hear() or rank in self._gone)
        if self.comm.Iprobe(rank, ALONE):
            return self._receive(rank, ALONE)
        self._before = head.number
        dead = [g for g in self._gone.values() if not g.before]
        late = Gone(head.number, [rank], f"sent nothing within {self.timeout:g} s")
        raise self._given_up(head, dead or [self._gone.get(rank, late)])

    def leave(self, reason):
        self._leave([self.rank], reason)

    def _leave(self, ranks, text):
        if self.rank not in self._gone:
            mine = self._gone[self.rank] = Gone(self._before, ranks, text)
            for r in self._others():
                self._send(pickle.dumps(mine), r, GONE)

    def wait_for_others(self):
        """Wait until the other ranks have left, too, but for those that did not come in time."""
        late = {r for g in self._gone.values() for r in g.ranks if "did not come" in g.text}

        def is_over():
            self._hear()
            return self._gone.keys() | late >= {*range(self.size)}

        self._poll(is_over)

    def has_dead(self):
        """Return whether a rank was killed."""
        return self._hear()

    def abort(self):
        """End all processes."""
        self.comm.Abort(1)

    # -- messages ------------------------------------------------------------------------------

    def _others(self):
        return [r for r in range(self.size) if r != self.rank]

    def _send(self, data, rank, tag):
        self._sent = [(one, kept) for one, kept in self._sent if not one.Test()]
        self._sent.append((self.comm.Isend([data, self.MPI.BYTE], rank, tag), data))

    def _receive(self, rank, tag):
        status = self.MPI.Status()
        self.comm.Probe(rank, tag, status)  # it is there: this does not wait
        data = bytearray(status.Get_count(self.MPI.BYTE))
        self.comm.Recv([data, self.MPI.BYTE], rank, tag)
        return pickle.loads(data)

    def _hear(self):
        """Note which ranks have left; return whether one of them is dead."""
        for r in self._others():
            if r not in self._gone and self.comm.Iprobe(r, GONE):
                self._gone[r] = self._receive(r, GONE)
        now = time.monotonic()
        if self._notes and now - self._looked > NEWS:
            self._looked = now
            for r, text in died(self._notes).items():
                self._gone[r] = Gone(0, [r], text)
        return any(not g.before for g in self._gone.values())

    def _started(self, request, data):
        """Keep a request and its data, also if Ctrl-C ends the wait for it; return both."""
        one = Moving(request, data)
        self._moving.append(one)
        return one

    def _move(self, one, head):
        """Wait until a request has moved its data."""
        self._poll(lambda: one.request.Test() or self._hear())
        if one.request.Test():
            self._moving = [other for other in self._moving if other is not one]
        else:
            text = f"moved no data for {self.timeout:g} s: one of them has stopped in this call"
            late = Gone(head.number, self._others(), text)
            self._before = head.number
            raise self._given_up(head, [g for g in self._gone.values() if not g.before] or [late])

    def _given_up(self, head, reasons):
        """Leave, for the first reason; return the error."""
        _, ranks, text = reasons[0]
        self._leave(ranks, text)
        return absent(head, ranks, text, WAITS_LONGER if "did not come" in text else None)

    def _poll(self, is_over):
        """Call is_over until it returns true, or for `timeout` seconds; return what it returned."""
        deadline = time.monotonic() + self.timeout
        for _ in range(SPINS):
            if is_over():
                return True
        while not (done := is_over()) and time.monotonic() < deadline:
            time.sleep(PAUSE)
        return done


def start(timeout):
    """Start MPI, and see to it that an exception of one rank ends all. Return the engine."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MissingLibraryError(
            "init: wanted mpi4py and a library of MPI",
            first_line(error),
            "pip install 'minigrad[distributed]' brings MPICH; on a cluster load its own MPI "
            "(module load ...), and pip install mpi4py",
        ) from None
    engine = MpiEngine(MPI, timeout)
    note_joined(engine.rank)
    show = sys.excepthook

    def on_exception(kind, error, trace):
        show(kind, error, trace)
        sys.stderr.flush()
        engine.leave(f"raised {first_line(error)}")
        engine.wait_for_others()  # they raise at their next call
        engine.abort()

    def at_exit():
        engine.leave("has ended")
        engine.wait_for_others()
        if engine.has_dead():
            engine.abort()  # to end MPI would wait for them

    sys.excepthook = on_exception
    atexit.register(at_exit)
    return engine


def _bytes(array):
    return array.reshape(-1).view(np.uint8)
