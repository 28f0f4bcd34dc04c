"""The Python around a plan, written out for one trace: guards, addresses, effects.

A call of a compiled step spends its time here, so that nothing is looped over or looked up that is
known when the step is traced. `run(args, kwargs)` answers MISS if a guard does not hold (nothing
was done), RECHECK if it is time to trace again and compare, or what the step returns.

What the step leaves behind (`.grad`, the generator, versions) is done whole or not at all, also if
Ctrl-C comes while the machine code runs: a list in C takes its status, without bytecode between.
"""

import functools
import sys
import weakref
from array import array as integers
from typing import Any

from minigrad.array.array import Array, moves, ndarray, unshare
from minigrad.compiler.call.effect_lines import EffectLines
from minigrad.compiler.call.memory_lines import ALONE, MemoryLines
from minigrad.compiler.program.program import ARGUMENT
from minigrad.compiler.trace import donation
from minigrad.compiler.trace.functions import weakly
from minigrad.devices import backend
from minigrad.devices.cpu.blas import single_threaded
from minigrad.devices.cpu.device import cpu
from minigrad.devices.threads import threads
from minigrad.memory.interrupts import WHOLE
from minigrad.tape.modes import SLOW, state
from minigrad.tape.node import OURS
from minigrad.tape.variable import Variable
from minigrad.tape.writes import writes

pool = cpu.pool
MISS, RECHECK = object(), object()
SYNC = 16  # words of int64: barriers and status
STATUS = 8  # the word of the status
MOST_STATES = 16  # of attributes, with which one program is known to hold


class Wrapper(MemoryLines, EffectLines):
    """Writes and holds `run` of one trace.

    Args:
        binding: what it runs: see `tracing.Traced`: description, groups (a Group per argument
            Value), members (a Member per Variable), capture, plan, modes, donated.
        failed: called with (status, args, kwargs, [Storage per argument Value]).
    """

    NO_STORAGE = "type({0}) is not Array or not {0}.is_flat"  # see gradients.is_whole

    def __init__(self, binding, failed):
        # what it runs has the wrapper, and `run` has the scope: neither may be found from here
        self.b: Any = weakref.proxy(binding)
        self.plan, self.capture = binding.plan, binding.capture
        self.device = backend.device_named(self.capture.device)
        self.left, self.known_writes, self.states = [2], [writes.count], {writes.state()}
        self.sync = integers("q", bytes(8 * SYNC))
        self.table = integers("q", bytes(8 * len(self.plan.slots)))
        self.lines, self.made, self.reused = [], set(), []
        self.scope: dict = dict(binding.description.scope) | {
            "MISS": MISS, "RECHECK": RECHECK, "Array": Array, "Variable": Variable,
            "state": state, "active": backend._active, "writes": writes, "moves": moves,
            "generator": binding.draws, "new": object.__new__, "OURS": OURS,
            "pool": pool, "grow": pool.grow, "getrefcount": sys.getrefcount, "ALONE": ALONE,
            "getframe": sys._getframe, "LEFT": self.left, "WRITES": self.known_writes,
            "TABLE": self.table, "SYNC": self.sync, "REBIND": weakly(self._rebind), "EPOCH": [-1],
            "STEP": self.plan.machine_code[0], "unshare": unshare,
            "copy_buffer": self.device.copy_buffer, "FAILED": failed, "ndarray": ndarray,
            "together": threads.together, "single_threaded": single_threaded,
            "spend": donation.spend, "moved": donation.moved, "COPIES": binding.copies,
            "claimed": donation.claimed, "taken": donation.taken, WHOLE: True,
        }  # fmt: skip
        self.fixed, self.dynamic = [], {}
        for k, what in enumerate(self.plan.slots):
            self._slot(k, *what)
        self.text = self._text()
        exec(compile(self.text, f"<the call of {binding.name}>", "exec"), self.scope)
        scope, self.scope = self.scope, {}
        self.run = scope.pop("run")

    # -- attributes that were set --------------------------------------------------------------

    def learn(self):
        """Notes that the program holds with the attributes as they are now."""
        lasting, _ = now = writes.state()
        self.states = {s for s in self.states if s[0] == lasting and len(self.states) < MOST_STATES}
        self.states.add(now)
        self.known_writes[0] = writes.count

    def recognises(self):
        """Whether attributes have been set and are again as the program knows them."""
        count = writes.count
        if self.known_writes[0] == count or writes.state() not in self.states:
            return False
        self.known_writes[0] = count
        return True

    # -- memory --------------------------------------------------------------------------------

    def storage_of(self, value):
        """(whether it is known for good, the Storage or the name of the variable that holds it)."""
        if value.kind == ARGUMENT:
            group = self.b.groups[value.index]
            return (True, group.storage) if group.is_fixed else (False, f"s{group.number}")
        if value in self.b.moving:
            return False, f"h{self.b.moving[value]}"
        return True, value.storage

    def _slot(self, k, kind, which=None):
        if kind == "sync":
            self.table[k] = self.sync.buffer_info()[0]
        elif kind in ("arena", "result", "seed", "counter"):
            self.dynamic.setdefault((kind, which if kind == "result" else None), []).append(k)
        else:
            is_fixed, storage = self.storage_of(which)
            if is_fixed:
                self.fixed.append((k, storage))
            else:
                self.dynamic.setdefault((kind, which), []).append(k)

    def _rebind(self):
        """Writes the addresses of fixed Storages; those that are written are un-shared first."""
        for value in self._written():
            is_fixed, storage = self.storage_of(value)
            if is_fixed:
                unshare(storage, self.device.copy_buffer)
        count = moves.count
        for k, storage in self.fixed:
            self.table[k] = storage.buffer.address
        return count

    def _written(self):
        return {**dict.fromkeys(self.plan.written), **self.capture.written}

    def _constant(self, value):
        name = f"K{len(self.scope)}"
        self.scope[name] = value
        return name

    # -- the text ------------------------------------------------------------------------------

    def _text(self):
        add = self.lines.append
        self._modes()
        self.lines += self.b.description.lines
        self._grads()
        self._aliases()
        writes = self._numbers()
        add("LEFT[0] -= 1")
        add("if not LEFT[0]: return RECHECK")
        self.lines += writes
        self._arguments()
        self._memory()
        add("done = []")
        add("try:")
        start = len(self.lines)
        for action, when in self.capture.actions:
            if when == "before":
                add(f"{self._constant(action)}()")
        add("if moves.count != EPOCH[0]: EPOCH[0] = REBIND()")
        self._versions()
        self.lines += self._launch()
        self.lines[start:] = [f"    {x}" for x in self.lines[start:]]
        add("finally:")
        if any(what[0] == "arena" and what[1] for what in self.plan.slots):
            add("    arena.owners = 0; arena.home.append(arena)")
        add("    if done and not done[-1]:")
        self.lines += [f"        {x}" for x in self._effects()]
        storages = ", ".join(
            f"s{g.number}" if not g.is_fixed else self._constant(g.storage) for g in self.b.groups
        )
        if self.capture.contexts is not None:
            add(f"contexts = {self._constant(self.capture.contexts.taken)}()")
        add("if done[-1]:")
        for k in self.reused:
            checks = {c for c, results in self.spoilt.items() if k in results}
            if checks:  # half written, perhaps
                leaf, known = self._leaf(self.reusable[k]), self._constant(checks)
                add(f"    if done[-1] in {known} and g{k} is not None: {leaf}._grad = None")
        add(f"    return FAILED(done[-1], args, kwargs, [{storages}])")
        result = self._tree(self.capture.structure)
        self._link()
        add(f"return {result}")
        body = "".join(f"    {x}\n" for x in self.lines)
        return f"def run(args, kwargs):\n{body}"

    def _modes(self):
        if self.b.modes is None:  # a pullback: it reads nothing from outside
            return
        path, is_inference, recording = self.b.modes
        if path == SLOW:
            self.lines.append(
                f"if state.path != {SLOW} or state.watchers or state.is_inference is not "
                f"{is_inference} or state.recording is not {recording}: return MISS"
            )
        else:
            self.lines.append(f"if state.path != {path}: return MISS")
        default = self._constant(self.b.default)
        self.lines.append(
            f"if active.device is not None or active.default is not {default}: return MISS"
        )
        self.lines.append("if writes.count != WRITES[0]: return MISS")

    def _numbers(self):
        """Adds what computes and compares numbers; gives what writes those that are read."""
        if self.b.numbers is None:
            return []
        names, outside = self.b.description.moving, self.b.description.outside
        lines, writes = self.b.numbers.lines(self.capture.cells, names, outside, self._constant)
        self.lines += lines
        return writes

    def _aliases(self):
        """Arguments must not show memory that the step also reaches from outside."""
        moving = self.b.moving
        values = [v for v in self.capture.recording.values("captured") if v not in moving]
        captured = {v.storage for v in values}
        names = [f"s{g.number}" for g in self.b.groups if not g.is_fixed]
        foreign = [s for s in captured if s.is_foreign]
        names += map(self._constant, foreign)
        written = {v.storage for v in values if v in self._written()}
        for k, value in enumerate(self.capture.recording.arguments):
            group = self.b.groups[k]
            if group.is_fixed:
                continue
            donated = k in self.b.donated
            against = captured if donated or value in self._written() else written
            for v, h in moving.items():
                if donated or value in self._written() or v in self._written():
                    self.lines.append(f"if s{group.number} is h{h}: return MISS")
            if against:
                name = self._constant(frozenset(against))
                self.lines.append(f"if s{group.number} in {name}: return MISS")
            if len(names) > 1 and value in self._written():
                self._apart(f"s{group.number}", names)
            if donated:
                n = group.number
                self.lines.append(f"if x{n}.size != s{n}.size: return MISS")
        for storage in foreign:
            if storage in written:
                self._apart(self._constant(storage), names)

    def _apart(self, name, others):
        """What is written shares no bytes from outside, which may lie under several Storages."""
        self.lines.append(
            f"if {name}.buffer.is_foreign and "
            f"{name}.shares_foreign_bytes(({', '.join(others)},)) is not None: return MISS"
        )

    def _leaf(self, effect):
        if effect.leaf is not None:
            return self._constant(effect.leaf)
        return f"v{self.b.members[effect.argument].number}"

    def _grads(self):
        moving = self.b.moving.values()
        for k, effect in enumerate(self.capture.grads):
            leaf = self._leaf(effect)
            if k in moving:
                self.lines += [
                    f"h{k} = {leaf}._grad",
                    f"if h{k} is None: return MISS",
                    f"h{k} = h{k}.array",
                    f"if {self.NO_STORAGE.format(f'h{k}')}: return MISS",
                ]
            elif effect.is_set:
                continue
            elif effect.before is None:
                self.lines.append(f"if {leaf}._grad is not None: return MISS")
            elif effect.is_read:
                before = self._constant(effect.before)
                self.lines.append(f"if {leaf}._grad is not {before}: return MISS")
            else:
                self.lines.append(f"if {leaf}._grad is None: return MISS")

    def _versions(self):
        add = self.lines.append
        if self.capture.written or self.b.donated:
            add("frame = getframe(2); code = frame.f_code")
            add("while OURS[code.co_filename] and frame.f_back is not None:")
            add("    frame = frame.f_back; code = frame.f_code")
            add("place = (code, frame.f_lasti)")
        for value, count in self.capture.written.items():
            is_fixed, storage = self.storage_of(value)
            name = self._constant(storage) if is_fixed else storage
            add(f"{name}.version += {count}; {name}.written_at = place")

    def _launch(self):
        at, more = self.table.buffer_info()[0], self.plan.machine_code[1]
        *first, last = 0, 1, at, *more
        call = self._constant(functools.partial(self.plan.machine_code[0], *first))
        alone = f"done += map({call}, {self._constant((last,))})"
        lines = ["SYNC[0] = 0", f"SYNC[{STATUS}] = 0"]
        jump = "for _ in done: pass"  # where Ctrl-C raises its exception, if it came meanwhile
        n = self.plan.threads
        if n == 1:
            return [*lines[1:], alone, jump]
        lists = self._constant([(t, n, at, *more) for t in range(n)])
        lines += [f"if not together(STEP, {lists}, done): {alone}", jump]
        if self.plan.has_products:  # two pools of threads that wait for one another are slow
            return ["with single_threaded:", *(f"    {x}" for x in lines)]
        return lines
