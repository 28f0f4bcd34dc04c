"""A function run once under the trace: its Recording, what it returns, what it leaves behind."""

import gc
from dataclasses import dataclass, field
from typing import Any

from minigrad.array.array import Array
from minigrad.compiler.program import CONSTANT, Recording, Value
from minigrad.compiler.refusals import escaped_error
from minigrad.compiler.structure import Output, mapped, variables_of
from minigrad.compiler.trace import SEED, Trace
from minigrad.errors import TraceError
from minigrad.graph.variable import Variable
from minigrad.ops.creation import generator


@dataclass(eq=False)
class GradEffect:
    """What a step does to the `.grad` of one leaf.

    leaf: the Variable, or None if it is the argument number `argument`. before: its `.grad` when
    the step was traced. is_read: whether the program reads or writes the memory of `before`, so
    that `.grad` has to be that very object again. after: None for no gradient, or an Output; kind
    'captured' with `before` itself: unchanged.
    """

    leaf: Variable | None
    argument: int
    before: Variable | None
    is_read: bool
    after: Output | None

    @property
    def was_none(self):
        """Whether there was no gradient when the step began."""
        return self.before is None


@dataclass(eq=False)
class Capture:
    """A traced call of a function.

    recording: the instructions, and Refs of the results.
    structure: what the function returned, with an Output for each Variable.
    grads: a GradEffect for each leaf whose `.grad` the step looked at or set.
    variables: those among the arguments, in order, and values: the argument's Value of each.
    written: {captured or argument Value: how many versions one call counts}.
    actions: [(function, 'before' or 'after')]: work of the host around each run.
    idle: [(Value, offset, size)] of flat gradient buffers that nobody may read after the step.
    random_count: by how much the default generator's counter moves.
    """

    recording: Recording
    structure: Any
    grads: list = field(default_factory=list)
    variables: list = field(default_factory=list)
    values: list = field(default_factory=list)
    written: dict = field(default_factory=dict)
    actions: list = field(default_factory=list)
    idle: list = field(default_factory=list)
    random_count: int = 0
    made: list = field(default_factory=list)

    def escaped(self):
        """The TraceError of values that live on although the trace is over, or None.

        Values that the step returned are no exception: one that is also kept has escaped.
        """
        if not _alive(self.made):
            return None
        gc.collect()  # what only a circle holds has not escaped
        values = _alive(self.made)
        return escaped_error(values) if values else None


def _alive(made):
    return [value for reference, value in made if reference() is not None]


def capture(function, args=(), kwargs=None, donated=()):
    """Runs function(*args, **kwargs) without computing and returns what it would do: a Capture.

    All that the call changes on the way is put back: `.grad`, versions, the generator. Memory is
    not touched at all; only an optimizer's state that is missing is made.

    Args:
        donated: the Variables among the arguments whose memory the step may take over.

    Raises:
        TraceError: the function does what no program can do.
    """
    kwargs = kwargs or {}
    variables = variables_of(args, kwargs)
    trace = Trace([v.array for v in variables])
    seed, counter = generator.seed, generator.counter
    generator.seed, generator.counter = SEED, 0
    try:
        with trace.recording():
            found = _run(trace, function, args, kwargs, variables)
    except Exception as error:
        if trace.failure is not None and error is not trace.failure:
            raise trace.failure from error
        raise
    finally:
        generator.seed, generator.counter = seed, counter
    found.recording.donated = frozenset(trace.value_of(v.array.storage) for v in donated)
    return found


def _run(trace, function, args, kwargs, variables):
    out = function(*args, **kwargs)
    if trace.failure is not None:
        raise trace.failure
    results = _Results(trace, variables)
    structure = mapped(out, results.output)
    grads = [results.grad_effect(leaf, before) for leaf, before in trace.grads.items()]
    recording = Recording(trace.instructions, trace.arguments, results.refs)
    return Capture(
        recording,
        structure,
        grads=grads,
        variables=variables,
        values=[trace.value_of(v.array.storage) for v in variables],
        written={
            value: storage.version - version
            for value, (storage, version, _) in trace.written.items()
        },
        actions=_placed(trace),
        idle=_idle(trace),
        random_count=generator.counter,
        made=trace.made,
    )


class _Results:
    """Numbers the results of a step; each is a whole, contiguous Value of its own."""

    def __init__(self, trace, variables):
        self.trace = trace
        self.argument_of = {id(v): k for k, v in reversed(list(enumerate(variables)))}
        self.refs, self.taken, self.index_of = [], set(), {}

    def output(self, variable):
        """The Output of a Variable that the step returns or leaves as a gradient."""
        k = self.argument_of.get(id(variable))
        if k is not None:
            return Output("argument", k)
        is_number = getattr(variable, "is_number", False)
        found = self.index_of.get(id(variable.array))
        if found is None:
            value = self.trace.value_of(variable.array.storage)
            if value.kind not in ("temporary", "argument", CONSTANT):
                return Output("captured", variable=variable)
            found = self.index_of[id(variable.array)] = len(self.refs)
            self.refs.append(self._whole(variable.array))
        return Output("result", found, is_number=is_number)

    def _whole(self, array: Array):
        ref = self.trace.ref(array)
        if not ref.value.is_temporary or not ref.covers() or ref.value in self.taken:
            ref = self.trace.ref(self.trace.convert(array, array.dtype))
        self.taken.add(ref.value)
        return ref

    def grad_effect(self, leaf, before):
        """The GradEffect of a leaf."""
        after = None if leaf._grad is None else self.output(leaf._grad)
        k = self.argument_of.get(id(leaf), -1)
        is_read = before is not None and id(before.array.storage) in self.trace.known
        return GradEffect(leaf if k < 0 else None, k, before, is_read, after)


def _placed(trace):
    """The host's actions, each before the program or after it."""
    placed = []
    for action, array, position, place in trace.actions:
        value = trace.value_of(array.storage)
        touching = [
            k
            for k, i in enumerate(trace.instructions)
            if any(r.value is value for r in (*i.reads, *i.writes))
        ]
        if not touching or position > touching[-1]:
            placed.append((action, "after"))
        elif position <= touching[0]:
            placed.append((action, "before"))
        else:
            _raise_between(place)
    return placed


def _raise_between(place):
    raise TraceError(
        "a schedule's step() between two uses of the learning rate in one compiled step",
        fix="call schedule.step() after the last optimizer.step(), or outside the step",
        where=place,
    )


def _idle(trace):
    """Slices of flat gradient buffers whose parameters have no gradient before and after."""
    found = []
    for leaf, before in trace.grads.items():
        if before is None and leaf._grad is None and leaf.group is not None:
            group, k = leaf.group
            if id(group.flat) in trace.known:
                view = group.slices[k][0]
                found.append((trace.known[id(group.flat)], view.offset, view.size))
    return found


__all__ = ["Capture", "GradEffect", "Value", "capture"]
