"""Which group of ranks this thread belongs to, and how its members agree on a call."""

import os
import threading
from typing import Any

from minigrad.arguments import choice, number
from minigrad.distributed.engine import Engine, Head, named
from minigrad.errors import DistributedError, user_line
from minigrad.hints import teaching
from minigrad.seams import seams

TIMEOUT = 10.0  # seconds


class Group:
    """One rank's membership in a group: an engine, and the number of calls that it has made."""

    def __init__(self, engine):
        self._engine = engine
        self.rank, self.size = engine.rank, engine.size
        self.count = 0
        self.failure = ""  # the text of the error after which no call can be made

    @property
    def engine(self):
        """Return what moves data: the engine, or what a learner's part makes of it."""
        return self._engine if seams.all_reduce is None else seams.all_reduce(self._engine)

    def agree(self, what, note=None):
        """Compare a call with those of the other ranks. Return this rank's head, and all notes.

        Raises:
            DistributedError: on every rank, if the ranks make different calls.
        """
        if self.failure:
            raise DistributedError(
                f"{what}: this group of ranks has failed before",
                self.failure,
                "start the ranks again: what they hold may differ now",
            )
        self.count += 1
        head = Head(self.count, what, user_line(), note)
        try:
            heads = self.engine.exchange(head)
        except DistributedError as error:
            self.failed(error)
            raise
        if any(other.what != what for other in heads):
            raise self.failed(_disagreement(heads))
        return head, [other.note for other in heads]

    def failed(self, error):
        """Note that the group can make no further call; return the error."""
        self.failure = error.wanted  # the error itself would keep the frames that it came through
        return error


def _disagreement(heads):
    """Return the error for calls that differ; the smallest party of ranks is named first."""
    parties = {}
    for rank, head in enumerate(heads):
        parties.setdefault(head.what, []).append(rank)
    parties = sorted(parties.values(), key=lambda ranks: (len(ranks), -ranks[0]))
    return DistributedError(
        f"call {heads[0].number} of mg.distributed: wanted the same call on every rank",
        details=[(named(ranks), heads[ranks[0]]) for ranks in parties],
        fix="every rank makes the same calls, in one order, with the same shapes and dtypes: is a "
        "call inside an `if` that only some ranks enter, or a batch of another size?",
        ranks=parties[0],
        call=heads[parties[0][0]].what,
    )


class _Membership(threading.local):
    """The group of a thread that `run` started; others belong to the group of the process."""

    group: Any = None


membership = _Membership()
runs: list[Any] = []  # what `run` has at work in this process
_of_process: list[Group] = []


def current(where, is_repeated=False):
    """Return this thread's group; raise if it has none.

    is_repeated: whether a program makes the call in each run; any other one is refused in a step.
    """
    if not is_repeated:
        seams.effects.refuse(
            f"mg.distributed.{where} inside a compiled step would run once, while tracing",
            "call it outside the step, and pass it what it returns; a program repeats "
            "replica.backward and all_reduce alone",
        )
    if membership.group is not None:
        return membership.group
    _refuse_others(where)
    if not _of_process:
        raise DistributedError(
            f"{where}: this process has not joined the other ranks",
            fix="mg.distributed.init() first, at the top of the script",
        )
    return _of_process[0]


def _refuse_others(where):
    """Raise if this thread may be one that a rank of `run` started: it would be a group of one."""
    if runs:
        raise DistributedError(
            f"{where}: this thread is no rank, and `run` is at work",
            f"thread {threading.current_thread().name!r}",
            "call it in the thread that run() started",
        )


@teaching
def init(engine=None, timeout=TIMEOUT):
    """Joins the group of ranks that this process belongs to. Further calls do nothing.

    Inside `run` there is nothing to join.

    Args:
        engine: "mpi" for the processes that MPI started, "alone" for a group of one rank. By
            default "mpi" in a process that MPI's launcher started, else "alone".
        timeout: the longest time, in seconds, that a rank waits for the others in a call. What only
            some ranks do between two calls must take less, such as an evaluation on rank 0.

    Raises:
        DistributedError: this process has joined by another engine, or this is a thread beside the
            ranks of `run`.
        MissingLibraryError: mpi4py or MPI's library is missing.
    """
    timeout = number("init", "timeout", timeout, above=0.0)
    if engine is not None:
        choice("init", "engine", engine, ENGINES)
    if membership.group is not None:
        return
    _refuse_others("init")
    name = engine or ("mpi" if any(x in os.environ for x in LAUNCHED) else "alone")
    if _of_process:
        if engine not in (None, _of_process[0].engine.name):
            raise DistributedError(
                "init: this process has joined its group before, and there is one group",
                f"the engine {_of_process[0].engine.name!r}, now {engine!r}",
            )
        return
    _of_process.append(Group(ENGINES[name](timeout)))


def _mpi(timeout):
    from minigrad.distributed.mpi import start  # mpi4py may be missing

    return start(timeout)


ENGINES = {"alone": lambda timeout: Engine(), "mpi": _mpi}
# in the environment of every process that MPICH, Intel MPI, Open MPI or Slurm has started
LAUNCHED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


def rank():
    """Returns this rank's number, from 0 to size() - 1."""
    return current("rank").rank


def size():
    """Returns the number of ranks."""
    return current("size").size
