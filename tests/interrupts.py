"""Ctrl-C at one chosen moment after another, without timers; `python -m tests.interrupts --all`.

Two ways. `interrupted` raises KeyboardInterrupt itself, as a handler does that is not the engine's.
`attempt` does what Python does: it calls the handler of SIGINT at one boundary between bytecodes,
with the frame that it comes upon. Boundaries are those where Python looks for signals (where a
function begins, after a call, where a loop begins anew) in whatever frame, and in functions that
Ctrl-C must not tear, every single one.
"""

import contextlib
import dis
import functools
import gc
import inspect
import signal
import sys

from minigrad.devices import backend
from minigrad.memory import interrupts
from minigrad.memory.buffer import Bin, blocks
from minigrad.seams import seams
from minigrad.tape.modes import state


def interrupted(k, file, function, *arguments):
    """function(*arguments), with Ctrl-C after the k-th call that code of a file makes.

    Returns whether there were so many calls.
    """
    last, left = {}, [k]

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = last.get(id(frame), "")
            now = last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            left[0] -= before.startswith(("CALL", "PRECALL")) and not now.startswith("CALL")
            if left[0] < 0:
                raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False


@contextlib.contextmanager
def timers():
    """Ctrl-C by a timer, `signal.setitimer(signal.ITIMER_REAL, seconds)`, for machine code.

    Python ignores an exception that comes inside a callback of the garbage collector, as hypothesis
    has one, so there is none meanwhile. One inside a destructor it ignores, too; pytest would keep
    its traceback, and with it the values of a step that is being traced.
    """
    handler, hook, callbacks = (
        signal.signal(signal.SIGALRM, interrupts._on_interrupt),
        sys.unraisablehook,
        gc.callbacks[:],
    )
    sys.unraisablehook = lambda ignored: None
    gc.callbacks.clear()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        gc.callbacks[:] = callbacks
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, handler)


# -- as Python does it -----------------------------------------------------------------------------

CALLS = {code for name, code in dis.opmap.items() if name.startswith("CALL")}
RESUME = dis.opmap.get("RESUME")
LOOKED_PAST = ("importlib", "/numba/", "/llvmlite/", "/_pytest/", "/pluggy/")  # not the engine's


@functools.cache
def guarded(code, at):
    """Where an instruction's exceptions are handled.

    Python looks as a part of a call; we come with the next instruction. Where that is handled
    elsewhere, as at the end of a block, we cannot do as Python does, and leave it out.
    """
    entries = dis._parse_exception_table(code)  # pyright: ignore - nothing public tells
    return [entry.target for entry in entries if entry.start <= at < entry.end]


class Attempt:
    """A function run with Ctrl-C at its k-th boundary.

    Attributes:
        count: how many boundaries there were up to it.
        came: whether there was such a one.
        where: the line.
    """

    def __init__(self, k):
        self.k, self.count, self.came, self.where = k, 0, False, ""
        self._last, self._kinds = {}, {}

    def run(self, function, *arguments):
        """Runs it; whether KeyboardInterrupt came out."""
        gc_was_on = gc.isenabled()
        gc.disable()
        try:
            sys.settrace(self._called)
            function(*arguments)
            sys.settrace(None)
            for _ in range(3):  # where one that had to wait comes at last
                len(self.where)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
            if gc_was_on:
                gc.enable()
        return False

    def _kind(self, frame):
        """0: not looked at; 1: where Python looks for signals; 2: everywhere."""
        code = frame.f_code
        if code.co_filename == __file__ or any(part in code.co_filename for part in LOOKED_PAST):
            return 0
        generated = {interrupts.WHOLE, interrupts.ALONE} & frame.f_globals.keys()
        return 2 if generated or id(code) in interrupts._whole else 1

    def _called(self, frame, event, _):
        code = frame.f_code
        kind = self._kinds.get(code)
        if kind is None:
            kind = self._kinds[code] = self._kind(frame)
        if not kind:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last.pop(id(frame), None)
        if not code.co_flags & inspect.CO_GENERATOR:  # which is also called to be closed
            self._reached(frame)
        return self._inside_marked if kind == 2 else self._inside

    def _inside(self, frame, event, _):
        if event == "opcode":
            now, text = frame.f_lasti, frame.f_code.co_code
            last = self._last.get(id(frame))
            self._last[id(frame)] = now
            if last is None:
                looks = text[now] == RESUME and frame.f_code.co_flags & inspect.CO_GENERATOR
            else:
                looks = now < last or (
                    text[last] in CALLS
                    and guarded(frame.f_code, last) == guarded(frame.f_code, now)
                )
            if looks:
                self._reached(frame)
        return self._inside

    def _inside_marked(self, frame, event, _):
        if event == "opcode":
            self._reached(frame)
        return self._inside_marked

    def _reached(self, frame):
        self.count += 1
        if self.count - 1 == self.k:
            self.came = True
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
            sys.settrace(None)
            frame.f_trace = None
            signal.getsignal(signal.SIGINT)(signal.SIGINT, frame)


def boundaries(function, *arguments):
    """How many boundaries a function has."""
    attempt = Attempt(-1)
    attempt.run(function, *arguments)
    return attempt.count


# -- what must hold afterwards ---------------------------------------------------------------------


def modes():
    """The modes of this thread, all of them."""
    usual = vars(type(state))
    names = [name for name in usual if not name.startswith("_") and not callable(usual[name])]
    found = {name: getattr(state, name) for name in names if name != "running"}
    return found | {
        "active": backend.chosen.device,
        "seams": dict(vars(seams)),
        "default": backend.chosen.default,
        "watchers": [list(pool.watchers) for pool in (backend.device_named("cpu").pool,)],
    }


def broken(pool):
    """What is wrong with a pool: a list of sentences, empty if all its invariants hold."""
    found, used, free, binned = [], 0, {True: [], False: []}, {}
    for segment in pool.segments:
        at, before = segment.address, None
        for block in blocks(segment):
            if block.address != at or block.left is not before or block.segment is not segment:
                found.append(f"{block} does not follow {before}")
            if block.state == "free":
                free[segment.is_small].append((block.nbytes, block.address, block))
                if block.owners:
                    found.append(f"{block} is free, and owned")
                if before is not None and before.state == "free":
                    found.append(f"{block} is free beside {before}")
            elif block.owners:
                used += block.nbytes
            else:
                binned.setdefault(id(block.home), []).append(block)
            if block.state == "bin" and block.home.nbytes != block.nbytes:
                found.append(f"{block} belongs to a bin of {block.home.nbytes}")
            at, before = at + block.nbytes, block
        if at != segment.address + segment.nbytes:
            found.append(f"the blocks of a segment end at {at}")
    for is_small, listed in pool.free.items():
        if [x[:2] for x in listed] != sorted(x[:2] for x in free[is_small]):
            found.append(f"the free list (small: {is_small}) is not what is free")
    for home in pool.bins.values():
        ready = binned.pop(id(home), [])
        if sorted(map(id, ready)) != sorted(map(id, list.__iter__(home))):
            found.append(f"the bin of {home.nbytes} holds {len(home)}, ready are {len(ready)}")
        if type(home) is Bin and pool.watchers:
            found.append(f"nobody sees the bin of {home.nbytes}")
    if binned:
        found.append("buffers are ready for bins that are gone")
    if pool.current_bytes != used:
        found.append(f"{pool.current_bytes} bytes are counted as used, {used} are")
    if pool.reserved_bytes != sum(segment.nbytes for segment in pool.segments):
        found.append("the reserved bytes are not those of the segments")
    if pool.lock.acquire(blocking=False):
        pool.lock.release()
    else:
        found.append("the lock is taken")
    return found


def heal(pool):
    """Finds what an exception lost that came between two steps of the pool: blocks of no bin."""
    for segment in pool.segments:
        for block in blocks(segment):
            if block.state == "bin" and not block.owners and block not in list(block.home):
                list.append(block.home, block)
    for home in pool.bins.values():
        home[:] = dict.fromkeys(b for b in list(home) if b.owners == 0)
    pool.current_bytes = sum(b.nbytes for b in pool.in_use())


MOST = {"compiled_and_compared": 500, "compiling": 100}  # attempts


class Scenario:
    """Something to interrupt.

    Args:
        make: () -> the world that the stages change.
        stages: functions of the world, one after the other.
        look: world -> plain values, which each stage changes at once or not at all.
    """

    def __init__(self, name, make, stages, look, pool=None):
        self.name, self.make, self.stages, self.look = name, make, stages, look
        self.pool_of = pool or (lambda world: backend.device_named("cpu").pool)

    def _stages(self, world, first=0):
        for stage in self.stages[first:]:
            stage(world)

    def prepare(self):
        """Runs it twice without an interrupt: what the stages leave, and how many boundaries."""
        interrupts.ready()
        torn = broken(backend.device_named("cpu").pool)
        assert not torn, f"an earlier test left the pool torn: {torn}"
        self._stages(self.make())
        gc.freeze()  # who looks for nodes among all objects is not to go over old ones
        world = self.make()
        self.seen = [self.look(world)]
        for stage in self.stages:
            stage(world)
            self.seen.append(self.look(world))
        self.count = boundaries(self._stages, self.make())
        return self.count

    def attempt(self, k):
        """Interrupts at boundary k: (whether there is one, what is broken, where)."""
        cpu = backend.device_named("cpu").pool
        before, bytes_before, limit = modes(), cpu.current_bytes, cpu.limit
        swallowed, outer = [], sys.unraisablehook
        sys.unraisablehook = lambda found: swallowed.append(repr(found.exc_value))
        try:
            world = self.make()
            one = Attempt(k)
            came_out = one.run(self._stages, world)
            found = [f"swallowed: {what}" for what in swallowed]
            if one.came and not came_out:
                found.append("nobody heard of it")
            if came_out and not one.came:
                found.append("it came of itself")
            found += broken(self.pool_of(world))
            after = modes()
            for m in [m for m in after if after[m] != before[m]]:
                found.append(f"{m} is {after[m]}")
                if hasattr(type(state), m):
                    setattr(state, m, before[m])  # other tests run in this process
            if not found:
                found += self._goes_on(world)
            del world
        finally:
            sys.unraisablehook = outer
            cpu.limit = limit  # a stage that was not run to its end may have left its own
        found += broken(cpu)
        if cpu.current_bytes != bytes_before:
            found.append(f"{cpu.current_bytes - bytes_before:+} bytes")
        return one.came, found, one.where

    def _goes_on(self, world):
        left = self.look(world)
        stages = [i for i, seen in enumerate(self.seen) if seen == left]
        if not stages:
            return [f"torn: {left}"]
        self._stages(world, stages[-1] if stages[-1] < len(self.stages) else len(self.stages))
        return [] if self.look(world) == self.seen[-1] else [f"other numbers: {self.look(world)}"]


def main(arguments):
    """Tries every boundary of every scenario (--all), or every 97th; returns how many broke.

    Of scenarios that compile, with their hundred thousand boundaries, MOST at equal distances.
    """
    from tests.memory.interrupt_scenarios import SCENARIOS

    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    names = [a for a in arguments if not a.startswith("-")]
    stride = 1 if "--all" in arguments else 97
    tried = bad = 0
    for name, make in SCENARIOS.items():
        if names and not any(wanted in name for wanted in names):
            continue
        scenario = make()
        count, wrong = scenario.prepare(), 0
        for k in range(0, count, max(stride, count // MOST.get(name, count))):
            came, found, where = scenario.attempt(k)
            tried += came
            if found:
                wrong += 1
                if wrong <= 5:
                    print(f"  {name} at boundary {k}, {where}: {'; '.join(found)[:300]}")  # noqa: T201
        bad += wrong
        print(f"{name}: {count} boundaries, broken {wrong}", flush=True)  # noqa: T201
    gc.unfreeze()
    print(f"interrupts tried {tried:,}, invariants broken {bad:,}")  # noqa: T201
    return bad


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
