"""Runs a function under the trace: gives its Recording, its results and its side effects."""

import gc
from dataclasses import dataclass, field
from typing import Any

from minigrad.array.array import Array
from minigrad.compiler.program.program import CAPTURED, Recording
from minigrad.compiler.trace.callbacks import Contexts
from minigrad.compiler.trace.numbers import without_numbers
from minigrad.compiler.trace.pullback import Link, Linker, carries_graph
from minigrad.compiler.trace.refusals import between_error, escaped_error, span_error
from minigrad.compiler.trace.structure import StepOutput, mapped, outputs_of, variables_of
from minigrad.compiler.trace.trace import Trace
from minigrad.compiler.trace.tracebuffer import TraceBuffer
from minigrad.ops.operands import InferenceVariable
from minigrad.tape.modes import state
from minigrad.tape.variable import Variable


@dataclass(eq=False)
class GradEffect:
    """What a step does to the `.grad` of one leaf.

    leaf: the Variable, or None if it is the argument number `argument`. before: its `.grad` when
    the step was traced. is_read: whether the program touches the memory of `before`, so that each
    call needs that very object in `.grad`. after: None for no gradient, or a StepOutput: 'captured'
    with `before` itself if it was only written in place. is_set: whether the step sets `.grad`
    before reading it, so that nothing depends on the old one; `before` is then None.
    """

    leaf: Variable | None
    argument: int
    before: Variable | None
    is_read: bool
    after: StepOutput | None
    is_set: bool = False

    @property
    def was_none(self):
        """Return whether `.grad` was None when the step began."""
        return self.before is None

    @property
    def where(self):
        """Return the leaf in words."""
        if self.leaf is None:
            return f"argument {self.argument}"
        return f"'{self.leaf.name}'" if self.leaf.name else self.leaf.describe()


@dataclass(eq=False)
class Capture:
    """A traced call of a function.

    recording: the instructions, and Refs of the results.
    structure: what the function returned, with a StepOutput for each Variable.
    grads: a GradEffect for each leaf whose `.grad` the step read or set.
    variables: the Variables among the arguments, in order.
    written: {captured or argument Value: how many versions one call counts}.
    actions: [(function, 'before' or 'after')]: host work around each run.
    idle: [(Value, offset, size)]: parts of flat gradient buffers that are never read afterwards.
    random_count: how far the default generator's counter advances.
    made: [(weak reference to an Array that the trace made, its Value)].
    device: the name of the device that it was traced for.
    link: the plan of the node that its results get, or None; see `pullback`.
    cells: {(NumberRow, dtype)} of the numbers that it reads; see `numbers`.
    contexts: the Contexts of custom Functions that the program calls, or None; see `callbacks`.
    flags: {number of a Variable among the arguments: the requires_grad that the step sets}.
    """

    recording: Recording
    structure: Any
    grads: list = field(default_factory=list)
    variables: list = field(default_factory=list)

    written: dict = field(default_factory=dict)
    actions: list = field(default_factory=list)
    idle: list = field(default_factory=list)
    random_count: int = 0
    made: list = field(default_factory=list)
    device: str = "cpu"
    link: Link | None = None
    cells: dict = field(default_factory=dict)
    contexts: Contexts | None = None
    flags: dict = field(default_factory=dict)

    def kept(self):
        """Return [(weak reference to an Array, its Value)] of Arrays that outlive the trace.

        A value that the step both returns and keeps is included.
        """
        return [pair for pair in self.made if pair[0]() is not None] if _alive(self.made) else []

    def escaped(self):
        """Return the TraceError of values that outlive the trace, or None."""
        kept = self.kept()
        return escaped_error([value for _, value in kept]) if kept else None


def _alive(pairs):
    """Return the second of each pair whose weak reference survives garbage collection."""
    if any(reference() is not None for reference, _ in pairs):
        gc.collect()  # what is held only by a cycle is not kept
    return [value for reference, value in pairs if reference() is not None]


def capture(function, args=(), kwargs=None, donated=(), device="cpu", numbers=None, notes=None):
    """Run function(*args, **kwargs) without computing; return what it would do: a Capture.

    All changes of the call are undone: `.grad`, versions, the generator. No memory is touched; only
    missing optimizer state is created.

    Args:
        donated: the Variables among the arguments whose memory the step may take over.
        device: the name of the device that the program will run on.
        numbers: the `RunNumbers` of the trace.
        notes: see `trace.Trace`.

    Raises:
        TraceError: the function does something that no program can do.
    """
    kwargs = kwargs or {}
    variables = variables_of(args, kwargs)
    trace = Trace([v.array for v in variables], device, numbers, notes)
    try:
        captured = trace.run(_run, trace, function, args, kwargs, variables)
    except Exception as error:
        if trace.failure is not None and error is not trace.failure:
            raise trace.failure from error
        raise
    finally:
        trace.failure = None  # it holds this frame, and so the trace: a cycle
    given = {trace.value_of(v.array.storage) for v in donated}
    captured.recording.donated = frozenset(given - _passed_on(trace, captured))
    flagged = [variables[k] for k in captured.flags]
    changed = [(r, error) for r, *_, error in trace.changed if all(r() is not v for v in flagged)]
    changed = _alive(changed)
    if changed:
        trace.changed = []
        raise changed.pop(0)  # nothing that this frame holds may hold the error: a cycle
    return captured


def _passed_on(trace, captured):
    """Return the argument Values that the step returns as they are, or keeps for backward."""
    outputs = [o for o in outputs_of(captured.structure) if o.kind == "argument"]
    returned = {trace.value_of(captured.variables[o.index].array.storage) for o in outputs}
    return returned.union(() if captured.link is None else captured.link.kept)


def _run(trace, function, args, kwargs, variables):
    spans = state.spans
    out = function(*args, **kwargs)
    if trace.failure is not None:
        raise trace.failure
    if state.spans != spans:
        raise span_error()
    trace.check_copies()
    for function in trace.endings:
        function()
    results = _Results(trace, variables)
    structure = mapped(out, results.output, without_numbers)
    name = getattr(function, "__qualname__", type(function).__name__)
    del out
    shown = set(results.shown)
    grads = results.grad_effects()
    captured = Capture(
        Recording(trace.instructions, trace.arguments, results.refs),
        structure,
        grads=grads,
        variables=variables,
        written={
            value: storage.version - version
            for value, (storage, version, _) in trace.written.items()
        },
        actions=_placed(trace),
        idle=_idle(trace, grads, variables, shown),
        random_count=trace.random_count,
        made=trace.made,
        cells={} if trace.numbers is None else trace.numbers.cells,
        device=trace.name,
        contexts=trace.contexts if trace.callbacks else None,
        flags=_flags(trace, variables),
    )
    if results.roots:
        captured.link = Linker(trace, name, results, Capture).link()
        if trace.failure is not None:
            raise trace.failure
        captured.random_count = trace.random_count
    return captured


class _Results:
    """Numbers the results of a step; each is a whole, contiguous Value of its own.

    roots: {number: Variable} of the results that carry a graph.
    """

    def __init__(self, trace, variables):
        self.trace = trace
        self.argument_of = {id(v): k for k, v in reversed(list(enumerate(variables)))}
        self.refs, self.index_of, self.held, self.roots = [], {}, [], {}
        self.shown = set()  # captured Values that the step returns

    def output(self, variable, is_gradient=False):
        """Return the StepOutput of a Variable that the step returns or leaves as a gradient."""
        k = self.argument_of.get(id(variable))
        if k is not None:
            return StepOutput("argument", k)
        array = variable.array
        value = self.trace.value_of(array.storage)
        is_linked = not is_gradient and carries_graph(variable)
        if value.kind == CAPTURED and not is_linked:
            self.shown.add(value)
            if variable.node is not None:
                variable = Variable(variable.array)
            return StepOutput("captured", variable=variable)
        key = id(array), is_linked
        index = self.index_of.get(key)
        if index is None:
            index = self.index_of[key] = len(self.refs)
            if is_linked:
                self.roots[index] = variable
            self.held.append(array)  # so that its id is not reused
            self.refs.append(self._whole(array))
        is_number = getattr(variable, "is_number", False)
        is_inferred = type(variable) is InferenceVariable
        return StepOutput("result", index, None, is_number, is_inferred, is_linked)

    def _whole(self, array):
        ref = self.trace.ref(array)
        is_free = all(ref.value is not r.value for r in self.refs)
        if ref.value.is_temporary and ref.covers() and is_free:
            return ref
        return self.trace.ref(self.trace.convert(array, array.dtype))

    def grad_effects(self):
        """Return a GradEffect per leaf that outlives the step and had its `.grad` read or set."""
        effects = []
        for reference, before, is_set in list(self.trace.grads.values()):
            leaf = reference()
            if leaf is None or type(leaf.array.storage.buffer) is TraceBuffer:
                continue  # the step made it
            after = None if leaf._grad is None else self.output(leaf._grad, is_gradient=True)
            k = self.argument_of.get(id(leaf), -1)
            before = None if is_set else before
            is_read = before is not None and id(before.array.storage) in self.trace.known
            effects.append(GradEffect(leaf if k < 0 else None, k, before, is_read, after, is_set))
        return effects


def _flags(trace, variables):
    """Return {argument index: requires_grad} of leaves whose flag the step has set."""
    flags = {}
    for reference, node, before, _ in trace.changed:
        for k, v in enumerate(variables):
            if reference() is v and v.node is None and node is None and v._requires_grad != before:
                flags[k] = v._requires_grad
    return flags


def _placed(trace):
    """Return the host actions, each placed before or after the program."""
    placed = []
    for action, arrays, position, place in trace.actions:
        values = {trace.value_of(array.storage) for array in arrays}
        touching = [
            k
            for k, i in enumerate(trace.instructions)
            if any(r.value in values for r in (*i.reads, *i.writes))
        ]
        if not touching or position > touching[-1]:
            placed.append((action, "after"))
        elif position <= touching[0]:
            placed.append((action, "before"))
        else:
            raise between_error(place)
    return placed


PRESENT: Any = object()  # stands for any gradient: it must exist, but can differ at the next call


def settle(capture):
    """Replace gradients of a Capture that may be other objects at the next call by PRESENT.

    A call reaches a gradient that the step replaces or adds to through its leaf, so that no trace
    holds it. A slice of a flat buffer stays the same object; a guard checks that. Return
    {Value whose memory is reached through a leaf: index of its GradEffect}.
    """
    returned = [o.variable for o in outputs_of(capture.structure) if o.kind == "captured"]
    captured = {id(v.storage): v for v in capture.recording.values("captured")}
    moving = {}
    for k, effect in enumerate(capture.grads):
        before, after = effect.before, effect.after
        if before is None or any(before is x for x in returned):
            continue
        if effect.is_read:
            array = before.array
            value = captured.get(id(array))
            is_whole = type(array) is Array and (array.is_flat or array.device != "cpu")
            if not is_whole or value is None:
                continue
            moving[value], value.storage = k, None
        if after is not None and after.variable is before:
            effect.after = after._replace(variable=PRESENT)
        effect.before = PRESENT
    return moving


def _idle(trace, grads, variables, shown):
    """Return slices of flat gradient buffers whose parameters have no gradient before or after.

    shown: Values that the step returns, whose slices the caller can read.
    """
    slices = []
    for effect in grads:
        leaf = variables[effect.argument] if effect.leaf is None else effect.leaf
        if effect.before is None and effect.after is None and leaf.group is not None:
            group, k = leaf.group
            value = trace.known.get(id(group.flat))
            if value is not None and value not in shown:
                view = group.slices[k][0]
                slices.append((value, view.offset, view.size))
    return slices
