"""The Python around a plan, written out for one trace: guards, addresses, effects.

A call of a compiled step spends its time here, so that nothing is looped over or looked up that is
known when the step is traced. `run(args, kwargs)` answers MISS if a guard does not hold (nothing
was done), RECHECK if it is time to trace again and compare, or what the step returns.

What the step leaves behind (`.grad`, the generator, versions) is done whole or not at all, also if
Ctrl-C comes while the machine code runs: a list in C takes its status, without bytecode between.
"""

import sys
from array import array as integers

from minigrad.array.array import Array, moves, ndarray, unshare
from minigrad.array.layout import contiguous_strides
from minigrad.compiler import donation
from minigrad.compiler.program import ARGUMENT
from minigrad.compiler.structure import Output
from minigrad.graph.modes import SLOW, state
from minigrad.graph.node import OURS
from minigrad.graph.variable import Variable
from minigrad.graph.writes import writes
from minigrad.kernels import backend
from minigrad.kernels.blas import single_threaded
from minigrad.kernels.cpu import cpu
from minigrad.kernels.threads import threads
from minigrad.ops.creation import generator
from minigrad.ops.operands import InferenceVariable

MISS, RECHECK = object(), object()
SYNC = 16  # words of int64: barriers and status
STATUS = 8  # the word of the status


class Wrapper:
    """Writes and holds `run` of one trace.

    Args:
        binding: what it runs: see `compiled.Trace`: description, groups (a Group per argument
            Value), members (a Member per Variable), capture, plan, modes, donated.
        failed: called with (status, args, kwargs, [Storage per argument Value]).
    """

    def __init__(self, binding, failed):
        self.b, self.plan, self.capture = binding, binding.plan, binding.capture
        self.left, self.known_writes = [2], [writes.count]
        self.sync = integers("q", bytes(8 * SYNC))
        self.table = integers("q", bytes(8 * len(self.plan.slots)))
        self.lines, self.made = [], set()
        self.scope = dict(binding.description.scope) | {
            "MISS": MISS, "RECHECK": RECHECK, "Array": Array, "Variable": Variable,
            "state": state, "active": backend._active, "writes": writes, "moves": moves,
            "generator": generator, "new": object.__new__, "take": cpu.pool.take, "OURS": OURS,
            "getframe": sys._getframe, "LEFT": self.left, "WRITES": self.known_writes,
            "TABLE": self.table, "SYNC": self.sync, "REBIND": self._rebind, "EPOCH": [-1],
            "STEP": self.plan.step, "ZERO": (0,), "ONE": (1,), "unshare": unshare,
            "AT": (self.table.buffer_info()[0],), "copy_buffer": cpu.copy_buffer,
            "FAILED": failed, "together": threads.together, "ndarray": ndarray,
            "single_threaded": single_threaded, "spend": donation.spend, "moved": donation.moved,
            "claimed": donation.claimed, "taken": donation.taken,
        }  # fmt: skip
        self.fixed, self.dynamic = [], {}
        for k, what in enumerate(self.plan.slots):
            self._slot(k, *what)
        self.text = self._text()
        exec(compile(self.text, f"<the call of {binding.name}>", "exec"), self.scope)
        self.run = self.scope["run"]

    # -- memory --------------------------------------------------------------------------------

    def storage_of(self, value):
        """(whether it is known for good, the Storage or the name of the variable that holds it)."""
        if value.kind == ARGUMENT:
            group = self.b.groups[value.index]
            return (True, group.storage) if group.is_fixed else (False, f"s{group.number}")
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
                self.dynamic.setdefault((ARGUMENT, which), []).append(k)

    def _rebind(self):
        """Writes the addresses of fixed Storages; those that are written are un-shared first."""
        for value in self._written():
            is_fixed, storage = self.storage_of(value)
            if is_fixed:
                unshare(storage, cpu.copy_buffer)
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
        self._aliases()
        self._grads()
        add("LEFT[0] -= 1")
        add("if not LEFT[0]: return RECHECK")
        self._arguments()
        for action, when in self.capture.actions:
            if when == "before":
                add(f"{self._constant(action)}()")
        add("if moves.count != EPOCH[0]: EPOCH[0] = REBIND()")
        self._memory()
        self._versions()
        add("done = []")
        add("try:")
        self.lines += [f"    {x}" for x in self._launch()]
        add("finally:")
        add("    if done and not done[-1]:")
        self.lines += [f"        {x}" for x in self._effects()]
        storages = ", ".join(
            f"s{g.number}" if not g.is_fixed else self._constant(g.storage) for g in self.b.groups
        )
        add(f"if done[-1]: return FAILED(done[-1], args, kwargs, [{storages}])")
        result = self._tree(self.capture.structure)
        add(f"return {result}")
        body = "".join(f"    {x}\n" for x in self.lines)
        return f"def run(args, kwargs):\n{body}"

    def _modes(self):
        path, is_inference, recording = self.b.modes
        if path == SLOW:
            self.lines.append(
                f"if state.path != {SLOW} or state.watchers or state.is_inference is not "
                f"{is_inference} or state.recording is not {recording}: return MISS"
            )
        else:
            self.lines.append(f"if state.path != {path}: return MISS")
        self.lines.append("if active.device is not None: return MISS")
        self.lines.append("if writes.count != WRITES[0]: return MISS")

    def _aliases(self):
        """Arguments must not show memory that the step also reaches from outside."""
        captured = {v.storage for v in self.capture.recording.values("captured")}
        written = {v.storage for v in self._written() if v.kind == "captured"}
        for k, value in enumerate(self.capture.recording.arguments):
            group = self.b.groups[k]
            if group.is_fixed:
                continue
            donated = k in self.b.donated
            against = captured if donated or value in self._written() else written
            if against:
                name = self._constant(frozenset(against))
                self.lines.append(f"if s{group.number} in {name}: return MISS")
            if donated:
                n = group.number
                self.lines.append(f"if x{n}.size != s{n}.size: return MISS")

    def _leaf(self, effect):
        if effect.leaf is not None:
            return self._constant(effect.leaf)
        return f"v{self.b.members[effect.argument].number}"

    def _grads(self):
        for effect in self.capture.grads:
            leaf = self._leaf(effect)
            if effect.before is None:
                self.lines.append(f"if {leaf}._grad is not None: return MISS")
            elif effect.is_read:
                before = self._constant(effect.before)
                self.lines.append(f"if {leaf}._grad is not {before}: return MISS")
            else:
                self.lines.append(f"if {leaf}._grad is None: return MISS")

    def _arguments(self):
        """Addresses of the arguments."""
        add = self.lines.append
        written, claims = self._written(), set(self.plan.taken.values())
        for k, value in enumerate(self.capture.recording.arguments):
            group = self.b.groups[k]
            slots = self.dynamic.get((ARGUMENT, value), [])
            if group.is_fixed or not (slots or value in written or value in claims):
                continue
            n, size = group.number, value.dtype.itemsize
            if value in claims:  # the program writes a result over it
                add(f"t{n} = claimed(s{n}, copy_buffer)")
                add(f"d{n} = s{n}.buffer.address if t{n} is None else t{n}.buffer.address")
            else:
                add(f"b{n} = s{n}.buffer")
                if value in written:
                    add(f"if b{n}.owners > 1: unshare(s{n}, copy_buffer); b{n} = s{n}.buffer")
                low = f" + {group.low * size}" if group.low else ""
                add(f"d{n} = b{n}.address + x{n}.offset * {size}{low}")
            self.lines += [f"TABLE[{slot}] = d{n}" for slot in slots]

    def _memory(self):
        """The arena, the results, the random numbers."""
        add = self.lines.append
        for k in self.dynamic.get(("arena", None), []):
            nbytes = self.plan.slots[k][1]
            if nbytes:
                add("arena = new(Array)")
                add(f"arena.buffer = b = take({nbytes}); TABLE[{k}] = b.address")
        for k, ref in enumerate(self.plan.results):
            slots = self.dynamic.get(("result", k), [])
            if k in self.plan.taken:
                n = self.b.groups[self.plan.taken[k].index].number
                self.lines += [f"TABLE[{slot}] = d{n}" for slot in slots]
                continue
            shape = self._constant(ref.shape)
            strides = self._constant(contiguous_strides(ref.shape))
            dtype = self._constant(ref.dtype)
            add(f"r{k} = new(Array); r{k}.buffer = b = take({ref.nbytes})")
            add(f"r{k}.version = r{k}.offset = 0; r{k}.shape = {shape}; r{k}.strides = {strides}")
            add(f"r{k}.dtype = {dtype}; r{k}.size = {ref.size}; r{k}.is_flat = True")
            self.lines += [f"TABLE[{slot}] = b.address" for slot in slots]
        for k in self.dynamic.get(("seed", None), []):
            add(f"TABLE[{k}] = generator.seed")
        for k in self.dynamic.get(("counter", None), []):
            add(f"TABLE[{k}] = generator.counter")

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
        alone = "done += map(STEP, ZERO, ONE, AT)"
        lines = ["SYNC[0] = 0", f"SYNC[{STATUS}] = 0"]
        n = self.plan.threads
        if n == 1:
            return [*lines[1:], alone]
        lists = self._constant([(t, n, self.table.buffer_info()[0]) for t in range(n)])
        lines += [f"if not together(STEP, {lists}, done): {alone}"]
        if self.plan.has_products:  # two pools of threads that wait for one another are slow
            return ["with single_threaded:", *(f"    {x}" for x in lines)]
        return lines

    def _effects(self):
        """What is left behind when the step has run to its end."""
        lines = []
        for k in self._copied():
            lines.append(f"r{k} = {self._constant(cpu.convert)}(r{self._copied()[k]}, r{k}.dtype)")
        lines += self._donations()
        if self.capture.random_count:
            lines.append(f"generator.counter += {self.capture.random_count}")
        for effect in self.capture.grads:
            if effect.after is None:
                value = "None" if effect.before is not None else None
            elif effect.after.kind == "captured" and effect.after.variable is effect.before:
                value = None
            else:
                value = self._output(effect.after, lines)
            if value:
                lines.append(f"{self._leaf(effect)}._grad = {value}")
        for action, when in self.capture.actions:
            if when == "after":
                lines.append(f"{self._constant(action)}()")
        return lines or ["pass"]

    def _copied(self):
        """{result: the earlier one of the same Value}: the program writes only that."""
        first, found = {}, {}
        for k, ref in enumerate(self.plan.results):
            if ref.value in first:
                found[k] = first[ref.value]
            else:
                first[ref.value] = k
        return found

    def _donations(self):
        lines, taken = [], {v.index: k for k, v in self.plan.taken.items()}
        name = self._constant(self.b.name)
        for k in self.b.donated:
            n = self.b.groups[k].number
            if k in taken:
                ref = self.plan.results[taken[k]]
                shape = self._constant(ref.shape)
                lines.append(f"r{taken[k]} = taken(s{n}, t{n}, {shape}, {name}, place)")
            elif self.b.returns(k):
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
        """The name of an Output's Variable or number, made in `lines` if need be."""
        if output.kind == "argument":
            return f"v{self.b.members[output.index].number}"
        if output.kind == "captured":
            return self._constant(output.variable)
        k = output.index
        if output.is_number:
            return f"ndarray(r{k}).item()"
        if k not in self.made:
            self.made.add(k)
            kind = self._constant(InferenceVariable if self.b.modes[1] else Variable)
            lines.append(
                f"q{k} = new({kind}); q{k}.array = r{k}; q{k}._requires_grad = False; "
                f"q{k}.node = None"
            )
        return f"q{k}"

    def _tree(self, tree):
        """What the step returns, as an expression."""
        if isinstance(tree, Output):
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
