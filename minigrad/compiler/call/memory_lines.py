"""The lines of a wrapper that find the memory of a call: arguments, arena, results."""

import functools
import sys
from typing import Any

from minigrad.array.dtypes import float32
from minigrad.array.layout import contiguous_strides
from minigrad.compiler.program.program import ARGUMENT, CAPTURED
from minigrad.compiler.trace.structure import outputs_of
from minigrad.devices.cpu.device import cpu
from minigrad.tape.variable import Variable


def _references():
    """What getrefcount says of what one slot and one local variable hold, as in `_reuse`."""
    g = Variable(cpu.empty((), float32))
    r = g.array
    return sys.getrefcount(r)


ALONE = _references()


class MemoryLines:
    """A part of `wrapper.Wrapper`, whose attributes it uses."""

    b: Any
    plan: Any
    capture: Any
    lines: list
    reused: list
    dynamic: dict
    _constant: Any
    _written: Any
    _leaf: Any

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
        """The arena, the results, the random numbers."""
        add = self.lines.append
        taken, grads = self.plan.taken, self.reusable
        for k, ref in enumerate(self.plan.results):
            slots = self.dynamic.get(("result", k), [])
            if k in taken:
                n = self.b.groups[taken[k].index].number
                self.lines += [f"TABLE[{slot}] = d{n}" for slot in slots]
                continue
            start = len(self.lines)
            add(f"r{k} = new(Array)")  # before: from the statistics on no call, so no Ctrl-C
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
        """`pool.take(nbytes)` without the call."""
        home = self._constant(cpu.pool.home_of(nbytes))
        self.lines += [
            f"{name} = {home}.pop() if {home} else grow({home}, {nbytes})",
            f"{name}.owners = 1; {name}.requested = {nbytes}; n = {name}.nbytes",
            "pool.takes += 1; pool.allocated_bytes += n",
            "n = pool.current_bytes = pool.current_bytes + n",
            "if n > pool.peak_bytes: pool.peak_bytes = n",
        ]

    def _arena(self, k, nbytes):
        """The arena comes last and goes back first: to the statistics it is a peak and no more."""
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
        """{result: effect} of gradients that replace one which the program does not look at."""
        outputs = [o.index for o in outputs_of(self.capture.structure) if o.kind == "result"]
        outputs += [
            e.after.index for e in self.capture.grads if e.after and e.after.kind == "result"
        ]
        if self.capture.link is not None:
            outputs += self.capture.link.results  # they are as they are until backward
        return {
            e.after.index: e
            for e in self.capture.grads
            if e.after is not None
            and e.after.kind == "result"
            and (e.is_set or e.before is not None)
            and not e.is_read
            and outputs.count(e.after.index) == 1
            and e.after.index not in self._copied()
            and not any(early.get(e.after.index) for early in self.spoilt.values())
        }

    @functools.cached_property
    def spoilt(self):
        """{check: {result written when it fails: whether the person's program writes it later}}.

        Where it does, the old gradient is still to be there: no result is written over it.
        """
        return {c: self.plan.results_before(c) for c in range(1, len(self.plan.checks) + 1)}

    def _reuse(self, k, effect, start):
        """Writes over the old gradient if nobody else has it, its Array, a view or a clone."""
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

    def _copied(self):
        """{result: the earlier one of the same Value}: the program writes only that."""
        first, found = {}, {}
        for k, ref in enumerate(self.plan.results):
            if ref.value in first:
                found[k] = first[ref.value]
            else:
                first[ref.value] = k
        return found
