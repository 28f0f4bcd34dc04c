"""Ranks that are threads of this process: to learn, and to test without processes."""

import collections
import copy
import threading
import time

import numpy as np

from minigrad.arguments import function as function_of
from minigrad.arguments import number, whole
from minigrad.devices.backend import chosen, set_default
from minigrad.devices.loader import is_compiling
from minigrad.distributed.engine import WAITS_LONGER, Engine, absent
from minigrad.distributed.membership import TIMEOUT, Group, membership, runs
from minigrad.distributed.supervisor import first_line
from minigrad.errors import DistributedError
from minigrad.hints import teaching
from minigrad.memory.interrupts import ready

LOOK = 0.05  # seconds between two looks whether a thread compiles
GRACE = 2.0  # seconds that a rank at work has to end after another one has failed


class Meeting:
    """Where the threads of a group meet: round by round, each leaves something for all.

    A rank may leave things in several rounds before it takes what the others left in the first.
    """

    def __init__(self, size, timeout):
        self.size, self.timeout = size, timeout
        self.changed = threading.Condition()
        self.rounds = {}  # round -> {rank: what it left}, until all have taken it
        self.taken = collections.Counter()  # round -> how many ranks have
        self.sent = collections.defaultdict(collections.deque)  # (from, to) -> messages
        self.reasons = {}  # rank -> (the ranks at fault, text): why it comes no more

    def post(self, rank, place, what):
        """Leave something in a round."""
        with self.changed:
            self.rounds.setdefault(place, {})[rank] = what
            self.changed.notify_all()

    def take(self, rank, place, head):
        """Return what all ranks left in a round, by rank."""
        with self.changed:
            came = self.rounds[place]
            self._wait(lambda: self._is_over(came))
            if len(came) == self.size:
                self.taken[place] += 1
                if self.taken[place] == self.size:
                    del self.rounds[place], self.taken[place]
                return [came[k] for k in range(self.size)]
            missing = [k for k in range(self.size) if k not in came]
            is_late = not any(k in self.reasons for k in missing)
            late = missing, f"did not come within {self.timeout:g} s"
            ranks, text = next((self.reasons[k] for k in missing if k in self.reasons), late)
            del came[rank]  # no rank that comes later takes the round for complete
            self._note(rank, ranks, text)
            raise absent(head, ranks, text, WAITS_LONGER if is_late else None)

    def _wait(self, is_over):
        """Wait until is_over() is true, or for `timeout`; its clock stands while threads compile.

        Threads compile one after the other, so a rank may have to wait for all the others.
        """
        left = self.timeout
        while left > 0 and not is_over():
            began = time.monotonic()
            self.changed.wait(min(left, LOOK))
            if not is_compiling():
                left -= time.monotonic() - began

    def _is_over(self, came):
        return len(came) == self.size or any(k not in came for k in self.reasons)

    def send(self, rank, to, message):
        """Leave a message for one rank."""
        with self.changed:
            self.sent[rank, to].append(message)
            self.changed.notify_all()

    def receive(self, rank, source, head):
        """Return the next message of one rank to another."""
        with self.changed:
            queue = self.sent[source, rank]
            self._wait(lambda: queue or source in self.reasons)
            if queue:
                return queue.popleft()
            late = [source], f"sent nothing within {self.timeout:g} s"
            ranks, text = self.reasons.get(source, late)
            self._note(rank, ranks, text)
            raise absent(head, ranks, text)

    def leave(self, rank, reason):
        """Note that a rank comes no more."""
        with self.changed:
            self._note(rank, [rank], reason)

    def _note(self, rank, ranks, text):
        self.reasons.setdefault(rank, (ranks, text))
        self.changed.notify_all()


class ThreadEngine(Engine):
    """The engine of one of several threads. Each sums the data of all, in the order of ranks."""

    name = "threads"

    def __init__(self, meeting, rank):
        self.meeting, self.rank, self.size = meeting, rank, meeting.size
        self._rounds = collections.Counter()  # how many of each kind this rank has begun

    def _post(self, what, kind="call"):
        """Leave something in the next round of a kind; return the round.

        Sums have rounds of their own: a rank that failed before one may come to the next call.
        """
        self._rounds[kind] += 1
        place = kind, self._rounds[kind]
        self.meeting.post(self.rank, place, what)
        return place

    def _meet(self, what, head):
        return self.meeting.take(self.rank, self._post(what), head)

    def exchange(self, head):
        return self._meet(head, head)

    def start_sum(self, data):
        return self._post(data.copy(), "sum"), data  # a copy: others may still read it later

    def finish_sum(self, started, head):
        place, data = started
        parts = self.meeting.take(self.rank, place, head)
        data[...] = parts[0]
        for part in parts[1:]:
            np.add(data, part, out=data)

    def broadcast(self, data, root, head):
        sent = self._meet(data.copy() if self.rank == root else None, head)[root]
        data[...] = sent

    def gather(self, data, head):
        return [part.copy() for part in self._meet(data.copy(), head)]

    def send(self, message, rank):
        self.meeting.send(self.rank, rank, copy.deepcopy(message))

    def receive(self, rank, head):
        return self.meeting.receive(self.rank, rank, head)

    def leave(self, reason):
        self.meeting.leave(self.rank, reason)


@teaching
def run(function, ranks, *args, timeout=TIMEOUT):
    """Runs a function in several threads, each a rank of one group; returns the results by rank.

    The threads share the process: its modules, files and the default random generator, from which
    they draw in no fixed order. Each rank makes its own model.

    Args:
        function: called as function(*args) in every thread. Modes such as `no_grad` begin anew.
        ranks: how many threads, at least 1.
        args: the same objects for all.
        timeout: as in `init`.

    Raises:
        Exception: the first one that a rank raised, with a note of the rank. The ranks that wait
            for it get a DistributedError.

    >>> import minigrad as mg
    >>> def step():
    ...     mine = mg.variable([1.0 + mg.distributed.rank()])
    ...     return mg.distributed.all_reduce(mine).item()
    >>> mg.distributed.run(step, 3)
    [6.0, 6.0, 6.0]
    """
    function_of("run", "function", function)
    n = whole("run", "ranks", ranks, 1)
    timeout = number("run", "timeout", timeout, above=0.0)
    if membership.group is not None:
        raise DistributedError("run: this is a rank already, and a rank starts no others")
    ready()
    meeting, default = Meeting(n, timeout), chosen.default
    results, errors = [None] * n, []

    def work(rank):
        engine = ThreadEngine(meeting, rank)
        membership.group = Group(engine)
        set_default(default)
        try:
            results[rank] = function(*args)
        except BaseException as error:
            errors.append((rank, error))
            engine.leave(f"raised {first_line(error)}")
        else:
            engine.leave("has ended: its function returned")

    threads = [
        threading.Thread(target=work, args=(k,), name=f"rank {k}", daemon=True) for k in range(n)
    ]
    runs.append(meeting)
    try:
        for thread in threads:
            thread.start()
        _wait(threads, errors)
    except BaseException:  # Ctrl-C: the ranks end at their next call
        for k in range(n):
            meeting.leave(k, "was interrupted")
        raise
    finally:
        runs.remove(meeting)
    if not errors:
        return results
    # the others hear of an error at once, and may raise before the rank where it came from has
    rank, error = next((e for e in errors if not isinstance(e[1], DistributedError)), errors[0])
    errors.clear()  # its traceback leads here: avoid a cycle
    error.add_note(f"raised in rank {rank} of {n}")
    try:
        raise error
    finally:
        del error  # its traceback holds this frame


def _wait(threads, errors):
    """Wait until all threads have ended; after an error, no longer than GRACE."""
    deadline = None
    for thread in threads:
        while thread.is_alive():
            thread.join(0.05)  # in steps, so that Ctrl-C is heard
            if errors and deadline is None:
                deadline = time.monotonic() + GRACE
            if deadline is not None and time.monotonic() > deadline:
                break
