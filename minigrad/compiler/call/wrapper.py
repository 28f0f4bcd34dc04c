"""Generates the Python code around a plan, for one trace: guards, addresses, effects.

Every call of a compiled step runs this code, so it neither loops over nor looks up what is known
at trace time. `run(args, kwargs)` returns MISS if a guard fails (nothing has been done then),
RECHECK if it is time to retrace and compare, or else the step's result.

The effects of a step (`.grad`, the generator, versions) are atomic: all or none happen, even if
Ctrl-C arrives while the machine code runs. Its status is appended to a list in C, with no bytecode
in between.
"""

import functools
import sys
import time
import weakref
from array import array as integers
from typing import Any

from minigrad.array.array import Array, moves, unshare
from minigrad.array.dtypes import float32
from minigrad.array.layout import contiguous_strides
from minigrad.compiler.call.pace import Pace
from minigrad.compiler.program.program import ARGUMENT, CAPTURED
from minigrad.compiler.trace import donation
from minigrad.compiler.trace.functions import weakly
from minigrad.compiler.trace.pullback import kept_array
from minigrad.compiler.trace.structure import StepOutput, outputs_of
from minigrad.devices import backend
from minigrad.devices.cpu.blas import single_threaded
from minigrad.devices.cpu.device import cpu
from minigrad.devices.threads import threads
from minigrad.memory.interrupts import WHOLE
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.attribute_writes import writes
from minigrad.tape.modes import SLOW, state
from minigrad.tape.node import OURS
from minigrad.tape.variable import Variable

pool = cpu.pool
MISS, RECHECK = object(), object()
SYNC = 16  # words of int64: barriers and status
STATUS = 8  # index of the status word
MOST_STATES = 16  # attribute states that a program remembers


def _references():
    """Return the refcount of an object held by one slot and one local variable, as in `_reuse`."""
    g = Variable(cpu.empty((), float32))
    r = g.array
    return sys.getrefcount(r)


ALONE = _references()


class Wrapper:
    """The generated `run` function of one trace.

    Args:
        binding: a `tracing.Traced` or a `pullback.Pullback`.
        failed: called with (status, args, kwargs, [Storage per argument Value]).
    """

    NO_STORAGE = "type({0}) is not Array or not {0}.is_flat"  # see capture.settle

    def __init__(self, binding, failed):
        # the binding holds the wrapper, and `run` holds the scope: strong references make cycles
        self.b: Any = weakref.proxy(binding)
        self.plan, self.capture = binding.plan, binding.capture
        self.device = backend.device_named(self.capture.device)
        self.left, self.known_writes, self.states = [2], [writes.count], {writes.state()}
        self.sync = integers("q", bytes(8 * SYNC))
        self.table = integers("q", bytes(8 * len(self.plan.slots)))
        self.lines, self.made, self.reused = [], set(), []
        self.scope: dict = dict(binding.description.scope) | {
            "MISS": MISS, "RECHECK": RECHECK, "Array": Array, "Variable": Variable,
            "state": state, "active": backend.chosen, "writes": writes, "moves": moves,
            "generator": binding.draws, "new": object.__new__, "OURS": OURS,
            "pool": pool, "grow": pool.grow, "getrefcount": sys.getrefcount, "ALONE": ALONE,
            "getframe": sys._getframe, "LEFT": self.left, "WRITES": self.known_writes,
            "TABLE": self.table, "SYNC": self.sync, "REBIND": weakly(self._rebind), "EPOCH": [-1],
            "STEP": self.plan.machine_code[0], "unshare": unshare,
            "copy_buffer": self.device.copy_buffer, "FAILED": failed, "item": self.device.item,
            "together": threads.together, "single_threaded": single_threaded,
            "PACE": Pace(), "clock": time.perf_counter,
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

    # -- attribute writes ----------------------------------------------------------------------

    def learn(self):
        """Record that the program is valid for the current attributes."""
        lasting, _ = now = writes.state()
        self.states = {s for s in self.states if s[0] == lasting and len(self.states) < MOST_STATES}
        self.states.add(now)
        self.known_writes[0] = writes.count

    def recognises(self):
        """Return whether attributes were set and are now back in a state the program knows."""
        count = writes.count
        if self.known_writes[0] == count or writes.state() not in self.states:
            return False
        self.known_writes[0] = count
        return True

    # -- memory --------------------------------------------------------------------------------

    def storage_of(self, value):
        """Return (is_fixed, the Storage if it is fixed, else the name of its local variable)."""
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
        """Write the addresses of fixed Storages into the table; first unshare the written ones."""
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
            if checks:  # perhaps partly overwritten
                leaf, known = self._leaf(self.reusable[k]), self._constant(checks)
                add(f"    if done[-1] in {known} and g{k} is not None: {leaf}._grad = None")
        add(f"    return FAILED(done[-1], args, kwargs, [{storages}])")
        result = self._tree(self.capture.structure)
        self._link()
        add(f"return {result}")
        body = "".join(f"    {x}\n" for x in self.lines)
        return f"def run(args, kwargs):\n{body}"

    def _modes(self):
        if self.b.modes is None:  # a pullback depends on no mode
            return
        path, is_inference, recording, lower = self.b.modes
        if path == SLOW:
            self.lines.append(
                f"if state.path != {SLOW} or state.watchers or state.is_inference is not "
                f"{is_inference} or state.recording is not {recording} "
                f"or state.autocast is not {self._constant(lower)}: return MISS"
            )
        else:
            self.lines.append(f"if state.path != {path}: return MISS")
        default = self._constant(self.b.default)
        self.lines.append(
            f"if active.device is not None or active.default is not {default}: return MISS"
        )
        self.lines.append("if writes.count != WRITES[0]: return MISS")

    def _numbers(self):
        """Add lines that compute and guard numbers; return the lines that store them."""
        if self.b.numbers is None:
            return []
        names, outside = self.b.description.moving, self.b.description.outside
        lines, writes = self.b.numbers.lines(self.capture.cells, names, outside, self._constant)
        self.lines += lines
        return writes

    def _aliases(self):
        """Guard against arguments that alias memory the step also captures."""
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
        """Guard against a written Storage that shares NumPy memory with another Storage."""
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
        n = self.plan.threads
        *first, last = -1 if n > 1 else 0, n, at, *more
        call = self._constant(functools.partial(self.plan.machine_code[0], *first))
        alone = f"done += map({call}, {self._constant((last,))})"
        lines = ["SYNC[0] = 0", f"SYNC[{STATUS}] = 0"]
        jump = "for _ in done: pass"  # a pending Ctrl-C raises here
        if n == 1:
            return [*lines[1:], alone, jump]
        lists = self._constant([(t, n, at, *more) for t in range(n)])
        lines += [
            "began = clock()",
            f"if PACE.is_alone or not together(STEP, {lists}, done): {alone}",
            "PACE.note(clock() - began)",
            jump,
        ]
        if self.plan.has_products:  # two thread pools that wait for each other are slow
            return ["with single_threaded:", *(f"    {x}" for x in lines)]
        return lines

    # -- memory: arguments, arena, results ------------------------------------------------------

    def _arguments(self):
        """Add lines that write the addresses of the arguments."""
        add = self.lines.append
        written, claims = self._written(), set(self.plan.taken.values())
        for k, value in enumerate(self.capture.recording.arguments):
            group = self.b.groups[k]
            slots = self.dynamic.get((ARGUMENT, value), [])
            if group.is_fixed or not (slots or value in written or value in claims):
                continue
            n, size = group.number, value.dtype.itemsize
            if value in claims:  # the program overwrites it with a result
                add(f"t{n} = claimed(s{n}, copy_buffer, COPIES, {k})")
                add(f"d{n} = s{n}.buffer.address if t{n} is None else t{n}.buffer.address")
            else:
                add(f"b{n} = s{n}.buffer")
                if value in written:
                    add(f"if b{n}.owners > 1: unshare(s{n}, copy_buffer); b{n} = s{n}.buffer")
                low = f" + {group.low * size}" if group.low else ""
                add(f"d{n} = b{n}.address + x{n}.offset * {size}{low}")
            self.lines += [f"TABLE[{slot}] = d{n}" for slot in slots]
        for value, k in self.b.moving.items():
            if value in written:
                add(f"if h{k}.buffer.owners > 1: unshare(h{k}, copy_buffer)")
            for slot in self.dynamic.get((CAPTURED, value), []):
                add(f"TABLE[{slot}] = h{k}.buffer.address")

    def _memory(self):
        """Add lines that allocate results and arena, and write the generator state."""
        add = self.lines.append
        taken, grads = self.plan.taken, self.reusable
        for k, ref in enumerate(self.plan.results):
            slots = self.dynamic.get(("result", k), [])
            if k in taken:
                n = self.b.groups[taken[k].index].number
                self.lines += [f"TABLE[{slot}] = d{n}" for slot in slots]
                continue
            start = len(self.lines)
            add(f"r{k} = new(Array)")  # first: once the pool counts, no call may let Ctrl-C in
            self._take("b", ref.nbytes)
            shape = self._constant(ref.shape)
            strides = self._constant(contiguous_strides(ref.shape))
            dtype = self._constant(ref.dtype)
            add(f"r{k}.buffer = b; r{k}.version = r{k}.offset = 0")
            add(f"r{k}.shape = {shape}; r{k}.strides = {strides}; r{k}.dtype = {dtype}")
            add(f"r{k}.size = {ref.size}; r{k}.is_flat = True")
            if k in grads:
                self._reuse(k, grads[k], start)
            self.lines += [f"TABLE[{slot}] = b.address" for slot in slots]
        for k in self.dynamic.get(("arena", None), []):
            self._arena(k, self.plan.slots[k][1])
        for k in self.dynamic.get(("seed", None), []):
            add(f"TABLE[{k}] = generator.seed")
        for k in self.dynamic.get(("counter", None), []):
            add(f"TABLE[{k}] = generator.counter")

    def _take(self, name, nbytes):
        """Add `pool.take(nbytes)`, inlined."""
        home = self._constant(cpu.pool.home_of(nbytes))
        self.lines += [
            f"{name} = {home}.pop() if {home} else grow({home}, {nbytes})",
            f"{name}.owners = 1; {name}.requested = {nbytes}; n = {name}.nbytes",
            "pool.takes += 1; pool.allocated_bytes += n",
            "n = pool.current_bytes = pool.current_bytes + n",
            "if n > pool.peak_bytes: pool.peak_bytes = n",
        ]

    def _arena(self, k, nbytes):
        """Add lines that take the arena: last, as it goes back first; it counts only as a peak."""
        if nbytes:
            home = self._constant(cpu.pool.home_of(nbytes))
            self.lines += [
                f"arena = {home}.pop() if {home} else grow({home}, {nbytes})",
                f"arena.owners = 1; n = arena.nbytes; TABLE[{k}] = arena.address",
                "pool.takes += 1; pool.allocated_bytes += n; n += pool.current_bytes",
                "if n > pool.peak_bytes: pool.peak_bytes = n",
            ]

    @functools.cached_property
    def reusable(self):
        """Return {result: GradEffect} of gradients that replace one the program does not read."""
        outputs = [o.index for o in outputs_of(self.capture.structure) if o.kind == "result"]
        outputs += [
            e.after.index for e in self.capture.grads if e.after and e.after.kind == "result"
        ]
        if self.capture.link is not None:
            outputs += self.capture.link.results  # kept until backward, so they must not change
        return {
            e.after.index: e
            for e in self.capture.grads
            if e.after is not None
            and e.after.kind == "result"
            and (e.is_set or e.before is not None)
            and not e.is_read
            and outputs.count(e.after.index) == 1
            and not any(early.get(e.after.index) for early in self.spoilt.values())
        }

    @functools.cached_property
    def spoilt(self):
        """Return {check: {result written before it: whether the user's program writes it later}}.

        If it does, the old gradient must survive a failed check: do not overwrite it.
        """
        return {c: self.plan.results_before(c) for c in range(1, len(self.plan.checks) + 1)}

    def _reuse(self, k, effect, start):
        """Reuse the old gradient if nothing else holds it, its Array, a view or a clone."""
        allocation = self.lines[start:]
        del self.lines[start:]
        self.reused.append(k)
        self.lines += [
            f"g{k} = {self._leaf(effect)}._grad; r{k} = None if g{k} is None else g{k}.array",
            f"if getrefcount(g{k}) == ALONE and getrefcount(r{k}) == ALONE and type(r{k}) is Array "
            f"and r{k}.is_flat and r{k}.buffer.owners == 1:",
            f"    b = r{k}.buffer",
            "else:",
            f"    g{k} = None",
            *(f"    {line}" for line in allocation),
        ]

    # -- effects --------------------------------------------------------------------------------

    def _effects(self):
        """Return the lines that apply the effects of a completed step."""
        lines = self._donations()
        if self.capture.random_count:
            lines.append(f"generator.counter += {self.capture.random_count}")
        for effect in self.capture.grads:
            if effect.after is None:
                value = "None" if effect.before is not None or effect.is_set else None
            elif effect.after.kind == "captured" and effect.after.variable is effect.before:
                value = None
            else:
                value = self._output(effect.after, lines)
            if value and effect.after and effect.after.index in self.reused:
                k = effect.after.index
                made = lines.pop()
                lines += [
                    f"if g{k} is None:",
                    f"    {made}",
                    f"    {self._leaf(effect)}._grad = q{k}",
                ]
            elif value:
                lines.append(f"{self._leaf(effect)}._grad = {value}")
        for k, flag in self.capture.flags.items():
            lines.append(f"v{self.b.members[k].number}._requires_grad = {flag}")
        for action, when in self.capture.actions:
            if when == "after":
                lines.append(f"{self._constant(action)}()")
        return lines or ["pass"]

    def _donations(self):
        lines, taken = [], {v.index: k for k, v in self.plan.taken.items()}
        name = self._constant(self.b.name)
        for k in self.b.donated:
            n = self.b.groups[k].number
            if k in taken:
                ref = self.plan.results[taken[k]]
                shape = self._constant(ref.shape)
                lines.append(f"r{taken[k]} = taken(s{n}, t{n}, {shape}, {name}, place)")
            elif self.b.passes_on(k):
                lines.append(f"m{n} = moved(s{n}, {name}, place)")
                lines.append(
                    f"x{n} = m{n} if x{n}.shape == m{n}.shape else "
                    f"m{n}.view(x{n}.shape, x{n}.strides, 0)"
                )
                lines.append(f"v{n} = type(v{n})(x{n}, name=v{n}.name)")
            else:
                lines.append(f"spend(s{n}, {name}, place)")
        return lines

    # -- results -------------------------------------------------------------------------------

    def _output(self, output, lines):
        """Return an expression for a StepOutput; append what creates it to `lines`."""
        if output.kind == "argument":
            return f"v{self.b.members[output.index].number}"
        if output.kind == "captured":
            return self._constant(output.variable)
        k = output.index
        if output.is_number:
            return self._number(k)
        if k not in self.made:
            self.made.add(k)
            kind = self._constant(InferenceVariable if output.is_inferred else Variable)
            lines.append(
                f"q{k} = new({kind}); q{k}.array = r{k}; q{k}._requires_grad = False; "
                f"q{k}.node = None"
            )
        return f"q{k}"

    def _link(self):
        """Add the line that attaches this call's node to the results; see `pullback.Link`."""
        link = self.capture.link
        if link is None:
            return
        members = self.b.members
        edges = [
            f"v{members[e].number}.node or v{members[e].number}"
            if isinstance(e, int)
            else self._constant(e)
            for e in link.edges
        ]
        kept = [f"r{k}" if isinstance(k, int) else self._kept(k) for k in link.kept]
        variables = [f"q{k}" for k in link.outputs]
        parts = [f"({''.join(f'{x}, ' for x in xs)})" for xs in (variables, edges, kept)]
        contexts = "None" if self.capture.contexts is None else "contexts"
        drawn = f"(generator.seed, generator.counter - {self.capture.random_count}, {contexts})"
        self.lines.append(f"{self._constant(link.attach)}({', '.join(parts)}, {drawn})")

    def _kept(self, value):
        """Return an expression for the kept array of an argument or of captured memory."""
        keep = self._constant(kept_array)
        if value.kind == ARGUMENT and not self.b.groups[value.index].is_fixed:
            group = self.b.groups[value.index]
            n = group.number
            return f"{keep}(x{n}, {value.size}, x{n}.offset + {group.low})"
        is_fixed, storage = self.storage_of(value)
        return f"{keep}({self._constant(storage) if is_fixed else storage}, {value.size}, 0)"

    def _number(self, k):
        """Return an expression for result `k` as a Python number."""
        return f"item(r{k})"

    def _tree(self, tree):
        """Return an expression for the (nested) return value of the step."""
        if isinstance(tree, StepOutput):
            return self._output(tree, self.lines)
        if isinstance(tree, dict):
            inner = ", ".join(f"{self._constant(k)}: {self._tree(v)}" for k, v in tree.items())
            text = f"{{{inner}}}"
            return text if type(tree) is dict else f"{self._constant(type(tree))}({text})"
        if isinstance(tree, list):
            return f"[{', '.join(map(self._tree, tree))}]"
        if isinstance(tree, tuple):
            inner = "".join(f"{self._tree(x)}, " for x in tree)
            if hasattr(tree, "_fields"):
                return f"{self._constant(type(tree))}({inner})"
            return f"({inner})"
        return self._constant(tree)
