"""Counts which parts of the engine a training calls, the learner's and minigrad's own.

Learner's parts are called through `Part`, which asks the tally. For every other seam `counted` puts
a stand-in there that counts and leaves the work to the engine.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minigrad.course.seam_parts import GradientPlan
from minigrad.devices.backend import device_of
from minigrad.memory.interrupts import block
from minigrad.memory.monitor import pool_of, unwatch, watch
from minigrad.ops.gradient_plan import IDENTITY, sum_program
from minigrad.seams import seams
from minigrad.tape.backward import add_gradients
from minigrad.tape.modes import state
from minigrad.tape.modes import watch as watch_operations
from minigrad.tape.order import ordered
from minigrad.tape.versions import raise_modified


class TooSlow(Exception):
    """A training with a learner's parts took too long."""


class Tally:
    """The calls of one thread's parts.

    Args:
        longest: seconds from now on; the first call of a learner's part after that raises TooSlow.
        enter: called with the label of the learner's part that runs from now on, "" for none.

    Attributes:
        mine: how often each of the learner's parts was called, by its label, such as "storage".
        seconds: the time within each of the learner's parts, without that of parts inside it.
        own: how often each of minigrad's own parts was called.
        last: the label of the learner's part that ran last, or "".
        raised: the label of the learner's part that raised the first error, or "".
        is_late: whether TooSlow was raised.
    """

    def __init__(self, longest: float, enter: Callable[[str], Any]) -> None:
        self.end = time.perf_counter() + longest
        self.longest = longest
        self.last = self.raised = ""
        self.is_late = False
        self.clear()
        self._running = ""
        self._inner = 0.0  # seconds of the parts that ran inside the one that runs now
        self._enter = enter
        self.count_this_thread()

    def count_this_thread(self) -> None:
        """Count the calls of this thread, and no others."""
        self._thread = threading.get_ident()

    def clear(self) -> None:
        """Set all counts and times to 0."""
        self.mine: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.own: Counter[str] = Counter()

    def slowest(self) -> str:
        """Return the label of the part that has taken the most time, "" if none has run."""
        return max(self.seconds, key=lambda label: self.seconds[label], default="")

    def call(self, label: str, function: Callable, args: tuple) -> Any:
        """Call a learner's function and count it."""
        if threading.get_ident() != self._thread:
            return function(*args)
        began = time.perf_counter()
        if began > self.end:
            self.is_late = True
            raise TooSlow(f"the training took longer than {self.longest:.0f} s")
        outer, before = self._running, self._inner
        self._running, self._inner = label, 0.0
        self._enter(label)
        try:
            return function(*args)
        except Exception:
            self.raised = self.raised or label
            raise
        finally:
            took = time.perf_counter() - began
            self.mine[label] += 1
            self.seconds[label] = self.seconds.get(label, 0.0) + took - self._inner
            self._running, self._inner = outer, before + took
            self.last = label
            self._enter(outer)


@contextmanager
def counted(tally: Tally) -> Iterator[None]:
    """Count into a tally while the block runs, in this thread."""
    stand_ins = {name: stand_in(tally) for name, stand_in in STAND_INS.items()}
    kept = {name: one for name, one in stand_ins.items() if getattr(seams, name) is None}
    kernels = _Kernels(tally, seams.kernel)
    with _put_in(tally, kept | {"kernel": kernels}):
        yield
    for name, count in kernels.operations.items():  # those without a kernel that can be replaced
        if name not in kernels.asked:
            tally.own[f"kernels[{name!r}]"] += count


@block
def _put_in(tally: Tally, parts: dict[str, Any]) -> Iterator[None]:
    def backward(node, dy, gradients, seconds):
        if not isinstance(node.plan, GradientPlan):
            tally.own[f"gradients[{node.op!r}]"] += 1

    def memory(kind, buffer):
        tally.own["pool"] += 1

    pool = pool_of("cpu")
    observers, kernels = (state.observers, state.op_observers), parts["kernel"]
    before = seams.replace(**parts)
    state.observers = (*observers[0], backward)
    state.op_observers = (*observers[1], kernels.operation)
    watch_operations(+1)
    if seams.pool is None:
        watch(pool, memory)
    try:
        yield
    finally:
        if seams.pool is None:
            unwatch(pool, memory)
        watch_operations(-1)
        state.observers, state.op_observers = observers
        seams.replace(**before)


class _Kernels:
    """Asks the learner's kernels, if there are any, and counts what they leave to the engine."""

    def __init__(self, tally: Tally, mine: Any) -> None:
        self.tally, self.mine = tally, mine
        self.asked: set[str] = set()
        self.operations: Counter[str] = Counter()

    def __call__(self, op, operands, out=None):
        self.asked.add(op)
        replaced = self.mine(op, operands, out) if self.mine is not None else None
        if replaced is None:
            self.tally.own[f"kernels[{op!r}]"] += 1
        return replaced

    def operation(self, name, y, inputs):
        """Take note of an operation; minigrad calls it after each."""
        self.operations[name] += 1


def _order(tally: Tally) -> Callable:
    def topological_order(roots):
        tally.own["topological_order"] += 1
        return ordered(roots)

    return topological_order


def _cycles(tally: Tally) -> Callable:
    def find_cycle(roots):  # `ordered` finds them as well
        tally.own["find_cycle"] += 1

    return find_cycle


def _sums(tally: Tally) -> Callable:
    def unbroadcast(array, shape, dtype):
        tally.own["unbroadcast"] += 1
        return sum_program(device_of(array), IDENTITY, (array,), array.shape, shape, dtype)

    return unbroadcast


def _accumulation(tally: Tally) -> Callable:
    def accumulate(arrived, key, g):
        tally.own["accumulate"] += 1
        arrived[key] = add_gradients(arrived[key], g) if key in arrived else g

    return accumulate


def _checks(tally: Tally) -> Callable:
    def check_saved(node):
        tally.own["check_saved"] += 1
        for value, version in zip(node.kept, node.versions, strict=True):
            if version is not None and value.version != version:
                raise_modified(node, value, version)

    return check_saved


class _Storage:
    """Counts clones and writes; the engine makes them."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def forked(self, source, clone):
        """Take note of a clone."""
        self.tally.own["storage"] += 1

    def write(self, storage, copy_buffer):
        """Take note of a write."""
        self.tally.own["storage"] += 1
        return False


STAND_INS: dict[str, Callable[[Tally], Any]] = {
    "topological_order": _order,
    "find_cycle": _cycles,
    "unbroadcast": _sums,
    "accumulate": _accumulation,
    "check_saved": _checks,
    "storage": _Storage,
}
