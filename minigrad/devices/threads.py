"""Runs kernels that are large enough to split into ranges on a small thread pool.

Kernels release the GIL. Numba's own threading layers are not used: OpenMP dies after a fork, and
workqueue aborts when two threads enter it. A forked child makes a new pool.
"""

import ctypes
import functools
import itertools
import os
import struct
import sys
import threading
import time
from array import array as integers
from operator import methodcaller
from typing import Any

from minigrad.devices import affinity, denormals, loader
from minigrad.formulas.kinds import cost
from minigrad.memory.interrupts import uninterrupted

LONGEST_WAIT = 10.0  # seconds for the calls of an interrupted run to end
SHORT_WAIT = 5e-5  # seconds, for a thread that wakes
AT_ONCE = (False,)  # acquire(False): acquire a free lock, do not wait


def chosen():
    """Return the number of threads that MINIGRAD_THREADS requests, or None."""
    text = os.environ.get("MINIGRAD_THREADS")
    return max(1, int(text)) if text and text.isdigit() else None


def _count():
    if (count := chosen()) is not None:
        return count
    if hasattr(os, "sched_getaffinity"):
        return min(8, len(os.sched_getaffinity(0)))
    return min(8, os.cpu_count() or 1)


SPLIT = 1 << 17  # additions of elements from which a generated kernel is split among threads
PER_ELEMENT = 10  # arithmetic, as `cost` counts it, that takes as long as to load and store
PER_THREAD = 2  # calls, so that a thread that comes late takes fewer
CALLS = 64  # on a board at once
INTEGERS, FLOATS, MIXED = 32, 3, 9  # as in source/led_calls.py


class _Board:
    """Words that all threads see, where a leader and the workers on standby meet.

    The kernels of `source/led_calls.py` know its places. serve(address): what the workers run.
    mode: for subnormal numbers.
    """

    def __init__(self, serve=None, mode=None):
        self.serve, self.mode = serve, mode
        self._words = integers("q", bytes(320 + 8 * CALLS + 8 * CALLS * INTEGERS))
        start = self._words.buffer_info()[0]
        self.address = (start + 63) & ~63  # a cache line of its own
        self._over = (self.address - start) // 8 + 1

    def set_over(self, is_over):
        """Tell workers that are on standby to leave, as other calls wait for them, or to stay."""
        self._words[self._over] = is_over


@functools.cache  # once: ctypes makes reference cycles for it
def find_yield():
    """Register the system's yield function with LLVM."""
    import llvmlite.binding as llvm

    if hasattr(ctypes, "windll"):
        function = ctypes.windll.kernel32.SwitchToThread  # pyright: ignore - Windows alone has it
    else:
        function = ctypes.CDLL(None).sched_yield
    llvm.add_symbol("minigrad_yield", ctypes.cast(function, ctypes.c_void_p).value)


def work_of(program):
    """Return how many additions take as long as a program does per element."""
    return 1 + cost(program.outputs) // PER_ELEMENT


@functools.cache
def _form(kernel):
    """Return (address, form, format of the arguments) of a kernel that `lead` can call, or None.

    form: as in source/led_calls.py. format: of the module struct.
    """
    code = loader.machine_code(kernel)
    if code is None:
        return None
    address, n, floats = code
    if not 0 < n <= (MIXED if floats else INTEGERS) or floats >> FLOATS:
        return None
    return address, n + (floats << 8), "".join("d" if floats >> k & 1 else "q" for k in range(n))


@functools.cache
def _led():
    """Return the functions that make calls of machine code: of a leader, of who stands by."""
    find_yield()
    return [loader.source_kernel("led_calls", name) for name in ("lead", "serve")]


class Cut:
    """Calls of a kernel for the parts of its operands.

    rows: for each part (what to add to each operand, the arguments that follow).
    """

    def __init__(self, kernel, rows):
        self.kernel, self.rows, self.count, self.words = kernel, rows, len(rows), None
        known = _form(kernel) if self.count <= CALLS else None
        if known is not None:
            self.address, self.form, kinds = known
            whole = [word for more, extra in rows for word in (*more, *extra)]
            self.words = integers("q", whole)
            self.pack = struct.Struct(kinds[: len(rows[0][0])]).pack

    def calls(self, operands):
        """Return the arguments of each call."""
        return [  # no 0 is added: that would take the sign of a number -0.0
            (*[x + d if d else x for x, d in zip(operands, more, strict=True)], *extra)
            for more, extra in self.rows
        ]


class _Worker:
    """A thread that sleeps on a lock until it gets a call."""

    def __init__(self):
        self.wake, self.done = threading.Lock(), threading.Lock()
        self.board: Any = None  # where to stand by when no call is left
        self.wake.acquire()
        self.done.acquire()
        self.calls: Any = []  # the call to make, until it is begun or taken back
        self.error: BaseException | None = None
        self.is_running = False
        self.mode: int | None = None  # for subnormal numbers, if set
        thread = threading.Thread(target=self._run, daemon=True, name="minigrad-kernel")
        thread.start()
        self.native_id: Any = thread.native_id

    def hand(self, function, arguments, mode):
        """Set the call to make once `wake` is released, and its `denormals` mode."""
        affinity.keep_apart(self.native_id)
        self.error, self.is_running = None, True
        self.calls.append((function, arguments, mode))

    def take_back(self):
        """Return whether the call that was set had not begun; then it is not made."""
        try:
            self.calls.pop()
        except IndexError:
            return False
        self.is_running = False
        return True

    @uninterrupted
    def stand_by(self, board):
        """Serve at a board when no call is left; nobody waits for the end of that."""
        self.board = board
        if self.wake.locked():
            affinity.keep_apart(self.native_id)
            self.wake.release()

    def end(self):
        """End the thread when it next waits for a call."""
        self.calls.append(None)
        if self.wake.locked():
            self.wake.release()

    def _run(self):
        while True:
            self.wake.acquire()
            try:
                call = self.calls.pop()
            except IndexError:  # taken back, or none but to stand by
                call = ()
            if call is None:
                return
            if call:
                self._make(*call)
                self.is_running = False
                self.done.release()
            del call
            if (board := self.board) is not None:
                self._set_mode(board.mode)
                board.serve(board.address)
                self.board = None

    def _set_mode(self, mode):
        if mode != self.mode:
            denormals.set_mode(mode)
            self.mode = mode

    def _make(self, function, arguments, mode):
        try:
            self._set_mode(mode)
            function(*arguments)
        except BaseException as error:  # the caller raises it
            self.error = error


class _Shared:
    """Calls that several threads share: each takes the next one until none is left."""

    def __init__(self, function, argument_lists):
        self._function, self._left = function, iter(argument_lists)
        self.errors = []

    def work(self):
        """Make calls until none is left. One iterator serves all: the GIL makes `next` atomic."""
        for arguments in self._left:
            try:
                self._function(*arguments)
            except Exception as error:  # raised when the other calls have ended
                self.errors.append(error)

    def stop(self):
        """Leave the calls that have not begun."""
        for _ in self._left:
            pass


class Threads:
    """A pool whose `run(function, argument_lists)` makes its calls side by side.

    Ctrl-C may raise its exception after a call has returned but before its result is stored. So
    `taken += map(...)` records in C that the pool is taken, and likewise that workers are awake.
    """

    def __init__(self, count=None):
        self.count = count or _count()
        self._workers = []
        self._busy = threading.Lock()
        self._board = _Board()

    def parts(self, work, split=SPLIT):
        """Return into how many calls to cut work, in elements: one, or some for each thread."""
        if work < split or self.count == 1:
            return 1
        return max(self.count, min(PER_THREAD * self.count, 2 * work // split))

    def run(self, function, argument_lists):
        """Make all calls and return when every call has returned.

        The caller and the workers take one call after another. On a busy machine a worker may come
        late, or when all is done: it takes fewer calls, or none, and nobody waits for it.

        One caller at a time uses the workers; others run alone, also at interpreter shutdown, when
        no worker runs. The first exception of a call is raised when all calls have ended.

        A kernel's calls need no interpreter: workers on standby make them (`lead`).
        """
        if (count := len(argument_lists)) == 1:
            function(*argument_lists[0])
            return
        if count <= CALLS and (known := _form(function)) is not None:
            address, form, kinds = known
            words = struct.pack(kinds * count, *itertools.chain.from_iterable(argument_lists))
            words, (lead, serve) = integers("q", words), _led()
            at = words.buffer_info()[0]
            self.lead(lead, serve, (count, self.count, address, form, at, 0, 0))
            return
        shared, workers, taken = _Shared(function, argument_lists), [], [False]
        try:
            if not sys.is_finalizing():
                taken += map(self._busy.acquire, AT_ONCE)
            if taken[-1]:
                self._board.set_over(True)
                mode = denormals.get_mode()
                workers = self._ready(min(self.count, len(argument_lists)) - 1) or []
                for worker in workers:
                    worker.hand(shared.work, (), mode)
                    if worker.wake.locked():  # else it has not yet woken for a call taken back
                        worker.wake.release()
            shared.work()
            for worker in workers:
                if not worker.take_back():
                    worker.done.acquire()
                    if worker.error is not None:
                        shared.errors.append(worker.error)
                        worker.error = None
        except BaseException:  # Ctrl-C
            shared.stop()
            if taken[-1]:
                self._abandon()
            raise
        finally:
            if taken[-1]:
                self._busy.release()
        for error in shared.errors:
            try:
                raise error
            finally:
                del error, shared  # its traceback holds this frame: avoid a cycle

    def share(self, cut, operands):
        """Run a kernel on the parts of its operands, which are addresses and numbers."""
        if cut.words is None:
            self.run(cut.kernel, cut.calls(operands))
            return
        given, (lead, serve) = integers("q", cut.pack(*operands)), _led()
        at, with_each = cut.words.buffer_info()[0], given.buffer_info()
        self.lead(lead, serve, (cut.count, self.count, cut.address, cut.form, at, *with_each))

    def lead(self, lead, serve, arguments):
        """Make the call lead(board, *arguments), of which workers on standby take parts.

        Workers that sleep are told to stand by: they come too late for this call, and serve the
        next ones. Both functions are machine code that releases the GIL: `source/led_calls.py`.
        """
        board, taken = None, [False]
        try:
            if not sys.is_finalizing():
                taken += map(self._busy.acquire, AT_ONCE)
            if taken[-1]:
                board = self._board_for(serve, denormals.get_mode())
                for worker in self._ready(self.count - 1) or ():
                    if worker.board is None:
                        worker.stand_by(board)
            else:
                board = _Board()  # nobody else takes part
            lead(board.address, *arguments)
        finally:
            if taken[-1]:
                self._busy.release()

    def _board_for(self, serve, mode):
        """Return a board at which workers run serve(address) in this mode."""
        board = self._board
        if board.serve is not serve or board.mode != mode:
            board.set_over(True)
            board = self._board = _Board(serve, mode)
        board.set_over(False)
        return board

    def together(self, function, argument_lists, returned):
        """Run compiled calls that wait for one another, the first one in the caller.

        Either all of them run or none. `function` must be machine code that releases the GIL.

        A signal raises its exception before or after all calls. No bytecode runs between the
        release of the first worker and the end of the caller's own call, so the exception cannot
        end the caller's call while workers wait for it.

        Args:
            returned: a list. A None for each other call, then the result of the first are appended
                as soon as that has returned, even if an exception ends the wait for the others.

        Returns:
            False if no threads are available: another caller has them, or Python is shutting down.
        """
        first, *others = argument_lists
        own, workers, taken = functools.partial(function, *first), None, [False]
        try:
            if not sys.is_finalizing():
                taken += map(self._busy.acquire, AT_ONCE)
            if taken[-1]:
                self._board.set_over(True)
                workers = self._ready(len(others))
            if workers is None:
                return False
            while not all(worker.wake.locked() for worker in workers):
                time.sleep(SHORT_WAIT)  # for a worker that wakes late, for a call taken back
            mode = denormals.get_mode()
            for worker, arguments in zip(workers, others, strict=True):
                worker.hand(function, arguments, mode)
            returned += map(_call, [*(w.wake.release for w in workers), own])
            for worker in workers:
                worker.done.acquire()
            return True
        except BaseException:  # Ctrl-C
            if taken[-1]:
                self._abandon()
            raise
        finally:
            if taken[-1]:
                self._busy.release()

    @uninterrupted
    def _abandon(self):
        """Let the workers, whose states are unknown, end what they run, and then themselves."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.take_back()
        _wait_until_idle(workers)
        for worker in workers:
            worker.end()

    @uninterrupted
    def _ready(self, count):
        """Return `count` idle workers, or None if the system has no more threads."""
        try:
            while len(self._workers) < count:
                self._workers.append(_Worker())
        except RuntimeError:  # can't start new thread
            return None
        return self._workers[:count]


_call = methodcaller("__call__")  # implemented in C, so no bytecode runs


def _wait_until_idle(workers):
    """Wait, up to LONGEST_WAIT, until running kernels no longer write to their memory."""
    deadline = time.monotonic() + LONGEST_WAIT
    while any(w.is_running for w in workers) and time.monotonic() < deadline:
        time.sleep(0.0005)


threads = Threads()


def _after_fork():
    threads.__init__(threads.count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
