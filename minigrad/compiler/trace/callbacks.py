"""Calls back into Python between runs of a step's code: custom Functions, and sums over ranks.

A `mg.Function` whose forward or backward reads elements (NumPy, `if`, `@mg.kernel`) cannot be
recorded as instructions. It becomes one instruction, `callback`: when the program reaches it,
Python runs the method on Variables that hold copies of the program's values. What a forward saves
is kept with its ctx for the backward of the same call.

The trace must know the number, shapes and dtypes of a forward's outputs. They are noted when the
forward runs eagerly: at the first call, and at the first call with new shapes.

What the engine itself does in Python in each run, such as a sum over ranks, is such an instruction,
too (`EngineCall`).
"""

from typing import NamedTuple

from minigrad.compiler.program.program import Instruction, whole
from minigrad.compiler.trace.guards import is_plain, value_key
from minigrad.compiler.trace.refusals import OtherDevice
from minigrad.devices.backend import device_of, values
from minigrad.devices.cpu.device import cpu
from minigrad.errors import (
    ArgumentTypeError,
    DTypeError,
    SavedValueModifiedError,
    ShapeError,
    TraceError,
)
from minigrad.tape.context import Context
from minigrad.tape.function_plan import FunctionPlan
from minigrad.tape.modes import no_grad
from minigrad.tape.variable import Variable, written_line


class Unlearned(TraceError):
    """Raised for a Function that never ran with such arguments: an eager call notes them."""


class NotedResult(NamedTuple):
    """What is noted about one output of a forward."""

    shape: tuple
    dtype: object
    is_differentiable: bool


class Notes:
    """What custom Functions returned: {call: (NotedResults, is_tuple, materializes, is_dirty)}.

    A call is identified by the class, the shapes and dtypes of Variables, and the other arguments.
    """

    def __init__(self):
        self.found = {}

    def add(self, cls, ctx, args, outputs, is_tuple, is_written):
        results = tuple(
            NotedResult(
                y.shape,
                y.dtype,
                y.dtype.is_float and not any(y is z for z in ctx._non_differentiable),
            )
            for y in outputs
        )
        is_dirty = is_written or bool(ctx._dirty)
        self.found[_call_key(cls, args)] = results, is_tuple, ctx.materializes, is_dirty

    def of(self, cls, args):
        """Return the notes on a call; raise Unlearned if there are none."""
        notes = self.found.get(_call_key(cls, args))
        if notes is None:
            raise Unlearned(f"{cls.__name__}.forward has not run with arguments like these")
        return notes


def _call_key(cls, args):
    return cls, tuple(map(_argument_key, args))


def _argument_key(x):
    if isinstance(x, Variable):
        return Variable, x.shape, x.dtype, x.requires_grad
    return value_key(x) if is_plain(x) else (type(x), id(x))


class Contexts:
    """The ctx of each callback in the running call: {number: ctx}."""

    def __init__(self):
        self.found = {}

    def taken(self):
        contexts, self.found = self.found, {}
        return contexts


def without_seen(i):
    """Return the instruction; for a callback, a copy that reads only its arguments."""
    if i.op != "callback":
        return i
    count = sum(x is _INPUT for x in i.attributes["call"].arguments)
    return Instruction(i.op, i.inputs[:count], i.outputs, i.attributes, i.name, i.place)


class Callback:
    """Base class of calls. raised: the error of the last one.

    arguments: _INPUT stands for an input of the instruction; the others are constants. label: what
    it is in a report. is_repeatable: whether an eager call may do it again if the step fails later.
    """

    label, is_repeatable = "Python", True

    def __init__(self, cls, method, arguments):
        self.cls, self.method, self.name = cls, method, f"{cls.__name__}.{method}"
        self.arguments = list(arguments)
        self.raised = None

    def key(self):
        """Return a key that is equal for two callbacks that do the same."""
        constants = tuple(None if x is None else _argument_key(x) for x in self.arguments)
        return self.cls, self.method, constants

    def __eq__(self, other):
        return type(other) is type(self) and self.key() == other.key()

    __hash__ = None  # pyright: ignore - two traces compare them, nobody looks them up

    def attributes(self):
        return {"call": self, "error": lambda: self.raised}

    def of_call(self, contexts):
        """Return the same callback with other contexts: the pullback's."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, contexts=contexts)
        return new

    def run(self, inputs, outputs, dtypes):
        """Call the method on copies of `inputs`; write its results to `outputs` (ndarrays).

        dtypes: of the inputs, then of the outputs, whose memory the ndarrays show.
        """
        given = zip(inputs, dtypes, strict=False)  # its arguments, then the memory that it may see
        arguments = [_own(*next(given)) if x is _INPUT else x for x in self.arguments]
        results = self.call(arguments)
        for array, y, dtype in zip(outputs, results, dtypes[len(inputs) :], strict=True):
            array[...] = 0 if y is None else dtype.cells(values(y.array))

    def call(self, arguments):
        """Run the method; return a Variable, or None for zeros, per output."""
        raise NotImplementedError


_INPUT = object()


def _own(array, dtype):
    """Copy the program's memory into a Variable, because a Function may keep what it gets."""
    return Variable(cpu.from_numpy(dtype.numbers(array), dtype))


class ForwardCall(Callback):
    """A forward. number: the key of its ctx in contexts; wanted: a NotedResult per output."""

    def __init__(self, cls, arguments, needs, wanted, number, contexts):
        super().__init__(cls, "forward", arguments)
        self.needs, self.wanted, self.number, self.contexts = needs, wanted, number, contexts

    def key(self):
        return (*super().key(), self.needs, self.wanted, self.number)

    def call(self, arguments):
        ctx = Context(self.cls.__name__, self.needs)
        for x, need in zip(arguments, self.needs, strict=True):
            if need:
                x._requires_grad = True
        with no_grad():
            result = self.cls.forward(ctx, *arguments)
        results = result if isinstance(result, tuple) else (result,)
        is_written = any(isinstance(x, Variable) and x.array.version for x in arguments)
        self._check(results, is_written or ctx._dirty)
        kept, versions = [], []
        for v, array, version in ctx._to_save:
            kept.append(array)
            if array is not None and v is not None and array is not v.array:
                version = array.version  # a copy's own
            versions.append(version)
        for name in ("_to_save", "_dirty", "_non_differentiable"):
            ctx.__dict__[name] = ()
        self.contexts.found[self.number] = ctx, kept, versions
        return results

    def _check(self, results, is_dirty):
        for y in results:
            if not isinstance(y, Variable):
                raise ArgumentTypeError(
                    f"{self.name}: wanted a Variable or a tuple of Variables",
                    f"{type(y).__name__}",
                    "wrap it: mg.variable(...)",
                )
        what = f"{self.name} in a compiled step: wanted what it gave when the step was traced,"
        if len(results) != len(self.wanted):
            raise ShapeError(f"{what} {len(self.wanted)} outputs", f"{len(results)}", PADDED)
        for k, (y, want) in enumerate(zip(results, self.wanted, strict=True)):
            if y.shape != want.shape:
                raise ShapeError(f"{what} shape {want.shape} of output {k}", f"{y.shape}", PADDED)
            if y.dtype is not want.dtype:
                raise DTypeError(f"{what} {want.dtype} of output {k}", f"{y.dtype}", PADDED)
        if is_dirty:
            raise TraceError(f"{self.name}: a write to an input in a compiled step", fix=DIRTY)


PADDED = "the shapes of a program are fixed: pad to one size, or call the Function outside the step"
DIRTY = "write out of place, or call the Function outside the step"


class BackwardCall(Callback):
    """A backward. arguments: dys, then saved values if the forward is a part of the program.

    number: the key of the ctx in contexts; None if the forward was traced into `ctx`. wanted:
    (shape, dtype, device) or None per argument of forward; targets: arguments with a gradient.
    """

    def __init__(self, plan, arguments, dys, targets, contexts):
        super().__init__(plan.cls, "backward", arguments)
        self.number = getattr(plan.ctx, "callback", None)
        self.ctx = plan.ctx if self.number is None else None
        self.wanted, self.outputs, self.dys = plan.wanted, plan.outputs, dys
        self.targets, self.contexts = targets, contexts

    def key(self):
        return (*super().key(), self.number, self.dys, tuple(self.targets), tuple(self.wanted))

    def call(self, arguments):
        dys, saved = arguments[: self.dys], arguments[self.dys :]
        ctx = self.ctx
        if self.number is not None:
            ctx, kept, versions = self.contexts.found[self.number]
            for k, (value, version) in enumerate(zip(kept, versions, strict=True)):
                if value is not None and value.version != version:
                    raise SavedValueModifiedError(
                        f"{self.cls.__name__} saved value {k} ({value.dtype}{list(value.shape)}) "
                        "for backward, and it was written to in place before backward used it",
                        fix="write out of place, or after backward",
                        details=[("written at", written_line(value))],
                    )
            saved = [None if a is None else Variable(a) for a in kept]
        plan = FunctionPlan(self.cls, ctx, (), self.wanted, self.outputs)
        with no_grad():
            grads = plan.called(dys, saved)
            checked = [plan._checked(k, g) for k, g in enumerate(grads)]
        return [checked[k] for k in self.targets]


class EngineCall(Callback):
    """A function that the engine calls in each run. It takes and returns Variables."""

    label, is_repeatable = "all ranks", False

    def __init__(self, name, function, count):
        super().__init__(type(function), "__call__", [_INPUT] * count)
        self.name, self.function = name, function

    def __repr__(self):
        return f"{self.function}"

    def key(self):
        return self.name, self.function, len(self.arguments)

    def call(self, arguments):
        with no_grad():
            return self.function(*arguments)


class Mark:
    """A position in a trace to roll back to, unless more than instructions was added since."""

    def __init__(self, trace):
        self.trace = trace
        self.instructions, self.random = len(trace.instructions), trace.random_count
        self.failure, self.rest = trace.failure, self._rest()

    def _rest(self):
        trace = self.trace
        versions = {v: storage.version for v, (storage, *_) in trace.written.items()}
        return versions, len(trace.grads), len(trace.changed), len(trace.actions)

    def go_back(self, error):
        """Drop what was recorded since, if only this refusal ended it; return whether it did."""
        trace = self.trace
        is_refusal = isinstance(error, TraceError) and trace.failure is error
        if not is_refusal or isinstance(error, OtherDevice) or self.rest != self._rest():
            return False
        del trace.instructions[self.instructions :]
        trace.random_count, trace.failure = self.random, self.failure
        return True


def forward(trace, cls, ctx, args):
    """Return the result of cls.forward: trace its operations, or make it a callback."""
    mark = Mark(trace)
    try:
        return cls.forward(ctx, *args)
    except TraceError as error:
        if not mark.go_back(error):
            raise
    try:
        wanted, is_tuple, materializes, is_dirty = trace.notes.of(cls, args)
    except Unlearned as error:
        raise trace.failed_by(error) from None
    if is_dirty:
        trace.refuse(f"{cls.__name__}.forward needs numbers, and writes to its input", DIRTY)
    number = trace.callbacks
    trace.callbacks += 1
    arguments = [_INPUT if isinstance(x, Variable) else x for x in args]
    call = ForwardCall(cls, arguments, ctx.needs_input_grad, wanted, number, trace.contexts)
    outputs = [trace.empty(w.shape, w.dtype) for w in wanted]
    inputs = [x.array for x in args if isinstance(x, Variable)]
    _call_back(trace, call, inputs, outputs)
    results = tuple(map(Variable, outputs))
    for name in ("_to_save", "_dirty"):
        ctx.__dict__[name] = ()
    plain = [y for y, w in zip(results, wanted, strict=True) if not w.is_differentiable]
    ctx.__dict__["_non_differentiable"] = tuple(plain)
    ctx.materializes, ctx.callback = materializes, number
    return results if is_tuple else results[0]


def backward(trace, plan, dys, saved):
    """Return the gradients of a Function's backward: trace it, or make it a callback."""
    ctx = plan.ctx
    if not hasattr(ctx, "callback"):
        mark = Mark(trace)
        try:
            return plan.called(dys, saved)
        except TraceError as error:
            if not mark.go_back(error):
                raise
    given = [*dys, *saved]
    targets = [k for k, need in enumerate(ctx.needs_input_grad) if need]
    arguments = [x if x is None else _INPUT for x in given]
    call = BackwardCall(plan, arguments, len(dys), targets, trace.contexts)
    outputs = [trace.empty(*plan.wanted[k][:2]) for k in targets]
    _call_back(trace, call, [x.array for x in given if x is not None], outputs)
    ctx.has_left_graph = True
    grads = dict(zip(targets, map(Variable, outputs), strict=True))
    return tuple(grads.get(k) for k in range(len(plan.wanted)))


def each_run(trace, name, function, inputs, wanted):
    """Record a call of the engine's function; return the Variables of its results."""
    outputs = [trace.empty(*one) for one in wanted]
    call = EngineCall(name, function, len(inputs))
    _call_back(trace, call, [x.array for x in inputs], outputs)
    return [Variable(y) for y in outputs]


def _call_back(trace, call, inputs, outputs):
    """Append the callback instruction."""
    inputs = [device_of(a).contiguous(a) for a in inputs]
    trace.append("callback", inputs, outputs, call.attributes())
    seen = tuple(whole(v) for v in trace.written)  # Python may look at what was written outside
    trace.instructions[-1].inputs += seen
    trace.instructions[-1].name = call.name
