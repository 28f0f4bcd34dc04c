"""Holds one trace of a compiled function: its arguments, its Capture, its program."""

import functools
import time
from typing import Any, NamedTuple

from minigrad.compiler.call.gpu_wrapper import GpuWrapper
from minigrad.compiler.call.wrapper import Wrapper
from minigrad.compiler.cpu.cpu_plan import Plan
from minigrad.compiler.gpu.gpu_plan import GpuPlan, Unfit, check_arguments
from minigrad.compiler.program.program import CAPTURED, whole
from minigrad.compiler.trace import donation
from minigrad.compiler.trace.capture import capture, settle
from minigrad.compiler.trace.numbers import RunNumbers
from minigrad.compiler.trace.pullback import raise_failed
from minigrad.compiler.trace.refusals import OtherDevice, escaped_error
from minigrad.compiler.trace.standins import StandIns, give_memory
from minigrad.compiler.trace.structure import StepOutput
from minigrad.compiler.trace.surroundings import replaced
from minigrad.compiler.trace.trace import HOST
from minigrad.devices import backend
from minigrad.devices.backend import default_device
from minigrad.errors import TraceError
from minigrad.ops.creation import generator
from minigrad.tape.modes import state


class FirstAnswer(NamedTuple):
    """The result of a first call's program if the function keeps values outside."""

    result: Any
    kept: list


class Traced:
    """A program for one kind of arguments.

    key: what must be equal in a call that uses it; facts: the same in words. capture: what was
    traced; plan: the program. groups: a StandInGroup per argument Value; members: a Member per
    Variable passed in. donated: indices of donated argument Values; unused: Members whose memory no
    result could take; copies: {donated index: how many calls had to copy its memory because it was
    shared or pinned}; default: the device of new arrays, None for the CPU; moving: see `settle`;
    run: see `wrapper`; seconds: time to trace and compile; numbers: see `numbers`; draws: the
    generator it draws from. kept: [(weak reference to an Array, index of its result)] of values
    that the first call stores outside: such a program runs once.
    """

    draws = generator

    def __init__(self, step, description, capture, groups, members, donated, numbers):
        self.function = step.function
        self.numbers = numbers
        key = description.key, _modes(), default_device().name, numbers.key()
        self.name, self.key = step.name, key
        self.description, self.capture, self.moving = description, capture, settle(capture)
        self.groups, self.members = groups, members
        self.donated = [k for k, g in enumerate(groups) if any(m in donated for m in g.members)]
        self.modes, self.identities = _modes(), description.identities
        self.default = backend.chosen.default
        self.facts = _facts(description, capture, numbers)
        self.plan: Any = None
        self.wrapper: Any = None
        self.run: Any = None
        self.unused, self.copies, self.kept = [], {}, []
        self.began = self.seconds = 0.0
        self._next, self._is_checked = 2, False

    @property
    def is_alive(self):
        """Return whether the objects that it was traced for are alive."""
        return all(i.reference() is not None for i in self.identities)

    def is_for(self, other):
        """Return whether it serves the same calls as another trace with the same program."""
        return self.key == other.key and all(
            a.storage is b.storage
            for a, b in zip(self.groups, other.groups, strict=True)
            if a.is_fixed
        )

    def renew(self):
        """Note that a retrace found the program valid for the current attributes."""
        self.wrapper.learn()
        if self.wrapper.left[0] == 1:  # a comparison is due, and the retrace was one
            self.count_on()

    def take(self, other):
        """Adopt the program of another trace, which is the same."""
        self.plan, self.capture, self.moving = other.plan, other.capture, other.moving

    def build(self):
        """Build the program. Raise Unfit if the device cannot run it."""
        self.plan = _planned(self.capture, self.moving)
        link = self.capture.link
        for pullback in link.pullbacks.values() if link is not None else ():
            pullback.make = _make
            if self.capture.device != HOST:  # later the step could no longer run eagerly
                pullback.plan = _planned(pullback.capture)

    def wrap(self, failed, is_checked):
        """Create the wrapper. is_checked: whether to compare every call; failed: see Wrapper."""
        wrapper = _wrapped(self, failed)
        self.wrapper, self.run, self._is_checked = wrapper, wrapper.run, is_checked
        for member in self.members:  # drop the arguments of the traced call
            member.forget()
        for group in self.groups:
            group.forget()

    def count_on(self):
        """Schedule the next comparison, after 2, 4, 8, ... further calls of this program."""
        distance = 1 if self._is_checked else self._next
        self._next *= 2
        self.wrapper.left[0] = distance + 1

    def keep(self, escaped):
        """Add values that are kept outside to the results. escaped: [(weak reference, Value)]."""
        refs = self.capture.recording.results
        index = {r.value: k for k, r in enumerate(refs)}
        for reference, value in escaped:
            if value not in index:
                index[value] = len(refs)
                refs.append(whole(value))
            self.kept.append((reference, index[value]))
        outputs = [StepOutput("result", k) for _, k in self.kept]
        self.capture.structure = FirstAnswer(self.capture.structure, outputs)

    def first_run(self, args, kwargs):
        """Call `run`, and give memory to values that are kept outside."""
        answer = self.run(args, kwargs)
        if type(answer) is not FirstAnswer:
            return answer
        for (reference, _), v in zip(self.kept, answer.kept, strict=True):
            array = reference()
            if array is not None:
                give_memory(array, v.array)
        return answer.result

    # -- donation ------------------------------------------------------------------------------

    def passes_on(self, index):
        """Return whether a donated argument Value is returned as it is, or kept for backward.

        Its memory then already has another owner, and no result may overwrite it.
        """
        recording = self.capture.recording
        return recording.arguments[index] not in recording.donated

    def check_donations(self, strict):
        """If strict, raise when no result takes over the memory of a donated argument."""
        taken = {value.index for value in self.plan.taken.values()}
        unused = [k for k in self.donated if k not in taken and not self.passes_on(k)]
        self.unused = [self.groups[k].members[0] for k in unused]
        if self.unused and strict:
            argument = self.capture.recording.arguments[unused[0]]
            reasons = [why for _, owner, why in self.plan.refused if owner is argument]
            size_or_dtype = "its size or dtype differs"
            why = next((w for w in reasons if w != size_or_dtype), "")
            raise donation.unused_error(self.unused, self.plan.results, why)


def _planned(capture, moving=()):
    """Return the plan of a Capture. Raise Unfit if the device cannot run it."""
    calls = [i.name for i in capture.recording.instructions if i.op == "callback"]
    if calls and capture.device != HOST:
        raise Unfit(f"{calls[0]} is Python, and the step computes on {capture.device}")
    if capture.device == HOST:
        return Plan(capture.recording, capture.idle)
    return GpuPlan(capture.recording, capture.idle, capture.device, moving)


def _wrapped(binding, failed):
    return (Wrapper if binding.capture.device == HOST else GpuWrapper)(binding, failed)


def _make(pullback):
    """Build the program of a Pullback and its wrapper; return the wrapper's `run`."""
    began = time.perf_counter()
    plan = pullback.plan = pullback.plan or _planned(pullback.capture)
    wrapper = _wrapped(pullback, functools.partial(raise_failed, plan))
    wrapper.left[0] = 0  # it is never traced again
    pullback.wrapper, pullback.run = wrapper, wrapper.run
    pullback.seconds = time.perf_counter() - began
    return pullback.run


def traced(step, args, kwargs, description, is_first=False):
    """Trace a compiled step's function; return a Traced without a plan.

    The program runs on the device of the arguments. If they are all on the CPU, or there are none,
    it runs on the device of the first other memory that the step meets, or on the default device.

    Args:
        is_first: whether values that the function keeps outside become results; see `Traced.keep`.

    Raises:
        TraceError: the function cannot become a program.
    """
    devices = [m.array.device for m in description.members]
    gpus = [d for d in devices if d != HOST]
    device = gpus[0] if gpus else HOST
    try:
        new = _traced(step, args, kwargs, description, device, is_first)
    except OtherDevice as other:
        if gpus:
            raise
        device = other.found
    else:
        device = default_device().name
        if devices or device == HOST or new.capture.recording.values(CAPTURED):
            return new
    return _traced(step, args, kwargs, description, device, is_first)


def _traced(step, args, kwargs, description, device, is_first):
    began = time.perf_counter()
    donated = donation.members_of(description, step.donate, step.names) if step.donate else []
    numbers = RunNumbers(step.places)
    stand_ins = StandIns(description, args, kwargs, numbers)
    outside = description.outside.items()
    with replaced([(p, numbers.argument(p.get(), where)) for where, p in outside]):
        captured = capture(
            step.function,
            stand_ins.args,
            stand_ins.kwargs,
            stand_ins.of(donated),
            device,
            numbers,
            step.notes,
        )
    stand_ins.check_unchanged()
    stand_ins.check_leaves(captured)
    escaped = captured.kept()
    if escaped and not is_first:
        raise escaped_error([value for _, value in escaped])
    by_base = {id(g.base): g for g in stand_ins.groups}
    groups = [by_base[id(value.storage)] for value in captured.recording.arguments]
    members = [stand_ins.member_of[id(v)] for v in captured.variables]
    for value, group in zip(captured.recording.arguments, groups, strict=True):
        value.name = value.name or group.where
        if not group.is_fixed:
            value.storage = None
    captured.variables = []
    stand_ins.let_go(is_first)
    _check_aliases(captured, groups, donated)
    check_arguments(captured.recording, groups, device)
    numbers.let_go()
    new = Traced(step, description, captured, groups, members, donated, numbers)
    new.began = began
    if escaped:
        new.keep(escaped)
    return new


def _check_aliases(capture, groups, donated):
    """Raise if the step reaches memory that it writes in two ways.

    Either it also captures an argument's memory, or two Storages share the same NumPy memory
    (mg.from_numpy).
    """
    captured = {v.storage: v for v in capture.recording.values("captured")}
    reached = [*(g.storage for g in groups), *captured]
    for value, group in zip(capture.recording.arguments, groups, strict=True):
        is_donated = any(m in donated for m in group.members)
        is_written = value in capture.written
        other = None if group.is_fixed else captured.get(group.storage)
        if other is not None and (is_donated or is_written or other in capture.written):
            what = "is donated" if is_donated else "is written in place"
            raise TraceError(
                f"{group.where} {what}, and the compiled step also reaches its memory from outside",
                f"{value.dtype}[{value.size}]",
                "use the argument or the outside name in the step, not both; or pass a clone",
            )
        if is_written or is_donated:
            _check_foreign(group.where, group.storage, reached)
    for storage, value in captured.items():
        if value in capture.written:
            _check_foreign(value.name or "memory from outside", storage, reached)


def _check_foreign(where, storage, reached):
    other = storage.shares_foreign_bytes(reached)
    if other is not None:
        raise TraceError(
            f"{where} is written in place, and the compiled step also reaches its bytes through "
            "another array of mg.from_numpy",
            f"{storage.dtype}[{storage.size}] and {other.dtype}[{other.size}]",
            "copy one of them: mg.variable(a) instead of mg.from_numpy(a)",
        )


def _modes():
    return state.path, state.is_inference, state.recording, state.autocast


def _facts(description, capture, numbers):
    facts = dict(description.facts)
    for leaf in numbers.deciding():
        facts[leaf.where, "value"] = description.numbers[leaf.where]
    facts["the call", "mode (recording, inference)"] = state.recording, state.is_inference
    facts["the call", "autocast"] = state.autocast
    for effect in capture.grads:
        if effect.leaf is not None:
            facts[effect.where, "whether .grad is None"] = effect.was_none
    return facts
