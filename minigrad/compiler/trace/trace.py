"""The trace of a step: a device that records its calls as instructions.

Arrays made by the step have no memory: their `TraceBuffer` names the Value they stand for. All
other arrays are arguments or captured; they are identified by their Storage.
"""

import weakref
from typing import Any

import numpy as np

from minigrad.array.array import Array
from minigrad.array.dtypes import int64, real_of
from minigrad.array.layout import size_of
from minigrad.compiler.program.program import (
    ARGUMENT,
    CAPTURED,
    CONSTANT,
    TEMPORARY,
    Instruction,
    Ref,
    Value,
    line_of,
    whole,
)
from minigrad.compiler.trace import refusals
from minigrad.compiler.trace.effects import SEED, StepEffects
from minigrad.compiler.trace.numbers import Number, without_numbers
from minigrad.compiler.trace.tracebuffer import TraceBuffer, nowhere
from minigrad.devices import backend
from minigrad.devices.backend import active, values
from minigrad.devices.cpu.direct import border, pays, turned
from minigrad.devices.narrow import computes_wide
from minigrad.devices.table import Device
from minigrad.formulas.expression import (
    ADD,
    IDENTITY,
)
from minigrad.memory.interrupts import block
from minigrad.seams import Effects, seams
from minigrad.tape.modes import state, watch
from minigrad.tape.node import user_place

HOST = "cpu"


@computes_wide
class Trace(Device, StepEffects):
    """A device that records one step of this thread, with the effects that the engine reports.

    Args:
        arguments: the Arrays passed in; Arrays that share a Storage share a Value.
        device: the name of the device that the program will run on.
        numbers: the `RunNumbers` of the trace, or None.
        notes: what custom Functions returned when they ran eagerly: `callbacks.Notes`.
    """

    def __init__(self, arguments=(), device="cpu", numbers=None, notes=None):
        super().__init__(notes)
        self.numbers: Any = numbers
        self.name, self.nowhere = device, nowhere(device)
        self.real = backend.device_named(device)
        self.arguments = []  # Values
        self.known = {}  # id of a Storage with memory, one of `held` -> its Value
        self.adopted = set()  # ids of Storages over NumPy memory
        self.made = []  # (weak reference to an Array without memory, its Value)
        self.written = {}  # Value -> (Storage, its version and written_at before the trace)
        for array in arguments:
            storage = array.storage
            if id(storage) not in self.known:
                value = self._know(ARGUMENT, storage)
                value.index = len(self.arguments)
                self.arguments.append(value)

    # -- beginning and end ---------------------------------------------------------------------

    def run(self, function, *arguments):
        """Record the ops of function(*arguments), then undo its changes."""
        alone = seams.effects
        before = state.path, state.watchers, state.spans, state.is_inference, state.recording
        device, casts = backend.chosen.device, state.casts
        try:
            state.casts = None if casts is None else {}  # what a trace makes must not outlive it
            seams.effects, backend.chosen.device = self, self
            watch(1)
            out = function(*arguments)
        finally:  # starts without a call: Python delivers Ctrl-C at calls
            seams.effects, state.casts = alone, casts
            backend.chosen.device = device
            state.path, state.watchers, state.spans, state.is_inference, state.recording = before
            try:
                self._put_back()
            except KeyboardInterrupt:
                self._put_back()
                raise
        return out

    def _put_back(self):
        for storage, version, place in self.written.values():
            storage.version = version
            storage.written_at = place
        for reference, grad, _ in self.grads.values():
            leaf = reference()
            if leaf is not None:
                leaf._grad = grad
        for reference, node, requires_grad, _ in reversed(self.changed):
            variable = reference()
            if variable is not None:
                variable.node, variable._requires_grad = node, requires_grad

    @block
    def paused(self):
        """Compute instead of recording, within a `with` block."""
        seams.effects = Effects()
        watch(-1)
        try:
            with active(None):
                yield
        finally:
            watch(1)
            seams.effects = self

    # -- instructions --------------------------------------------------------------------------

    def record(self, op, inputs, outputs, **attributes):
        """Append an instruction on Arrays and numbers, unless its outputs are empty."""
        if any(out.size for out in outputs):
            self.append(op, inputs, outputs, attributes)

    def append(self, op, inputs, outputs, attributes):
        name, place = state.running
        if self.numbers is not None and self.numbers.kinds:
            attributes = {key: without_numbers(value) for key, value in attributes.items()}
            inputs = self._with_numbers(inputs, outputs, attributes)
        refs = tuple(map(self.ref, inputs)), tuple(map(self.ref, outputs))
        self.instructions.append(Instruction(op, *refs, attributes, name, place or user_place()))

    def _with_numbers(self, inputs, outputs, attributes):
        """Replace Numbers among the inputs by Arrays that each run fills.

        Their dtype is the one the kernel computes in, as for a literal in the kernel's source.
        """
        if not any(type(x) is Number for x in inputs):
            return inputs
        operands, arrays = [], [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        real = real_of(x.dtype for x in arrays)
        is_narrow = any(x.dtype.kind == "i" and x.dtype is not int64 for x in outputs)
        for x in inputs:
            if type(x) is not Number:
                operands.append(x)
            elif "program" not in attributes or is_narrow:  # such a kernel checks what it stores
                operands.append(without_numbers(x))
            else:
                array = self.numbers.array(x, real)
                self.call(array, x._row.name())
                rank = len(attributes.get("shape", ()))
                operands.append(array.view((1,) * rank, (0,) * rank))
        return operands

    def stop(self, op, x, outputs, **attributes):
        """Append a check that can stop the step, with the error it then raises."""
        name, place = state.running
        place = place or user_place()
        known = dict(attributes)  # a copy: a dict that holds its own lambda would be a cycle
        attributes["error"] = lambda: refusals.stop_error(op, name, known, line_of(place))
        self.append(op, (x,), outputs, attributes)

    # -- values --------------------------------------------------------------------------------

    def _know(self, kind, storage, owner=None):
        value = Value(kind, storage.dtype, storage.size, storage=owner or storage)
        self.known[id(storage)] = value
        self.held.append(storage)
        return value

    def value_of(self, storage):
        """Return the Value of a Storage; capture a Storage that is new to the trace."""
        if self.standing:
            copy = self.copy_of(storage)
            if copy is not None and copy.is_stale():
                self.refuse(*refusals.STALE_COPY)
            self.check_copies(storage)
        buffer = storage.buffer
        if type(buffer) is TraceBuffer:
            if buffer.trace is not self:
                raise self.failed_by(refusals.outside_error(buffer.value))
            return buffer.value
        return self.known.get(id(storage)) or self._met(storage)

    def _met(self, storage):
        """Capture memory from outside: on the program's device or on the CPU."""
        where = storage.buffer.pool.device
        if where not in (self.name, HOST):
            raise self.failed_by(refusals.OtherDevice(where, self.name))
        return self._know(CAPTURED, storage)

    def made_on(self, device):
        """Raise the error for an array created on a device other than the program's."""
        raise self.failed_by(refusals.OtherDevice(device, self.name))

    def ref(self, x):
        """Return the Ref of an Array; return any other operand as a Python number."""
        if isinstance(x, Array):
            layout = without_numbers((x.shape, x.strides, x.offset))
            return Ref(self.value_of(x.storage), *layout)
        return x.item() if isinstance(x, np.generic) else x

    def nonzero(self, x):
        """Return the indices of the nonzero elements of a constant; refuse other values."""
        value = self.value_of(x.storage)
        if value.kind != CONSTANT:
            self.refuse(*refusals.MASK)
        with self.paused():
            places = np.flatnonzero(values(x))
        return self.from_numpy(places, int64)

    def call(self, array, name):
        """Name captured memory for messages, unless it has a name already."""
        value = self.value_of(array.storage)
        value.name = value.name or name

    # -- memory --------------------------------------------------------------------------------

    def empty(self, shape, dtype):
        """Return a contiguous Array without memory."""
        shape = without_numbers(shape)
        value = self._temporary(dtype, size_of(shape))
        array = Array(TraceBuffer(value, self), shape, dtype)
        array.is_flat = False  # keeps ops off their fast paths, which compute immediately
        self.made.append((weakref.ref(array), value))
        return array

    def _temporary(self, dtype, size):
        name, place = state.running
        return Value(TEMPORARY, dtype, size, name=name, place=place or user_place())

    def copy_buffer(self, old):
        """Fail: a trace never unshares a Buffer; each run does so before it starts."""
        raise AssertionError("a trace un-shares no Buffer")

    def prepare_write(self, array, place=None):
        """Count an in-place write during this trace; copy a constant first."""
        storage = array.storage
        value = self.value_of(storage)
        if value.kind == CONSTANT:
            self._copy_constant(storage, value)
        elif value.kind != TEMPORARY and value not in self.written:
            written_at = getattr(storage, "written_at", None)
            self.written[value] = storage, storage.version, written_at
        storage.version += 1
        storage.written_at = place
        copy = self.copy_of(storage)
        base = None if copy is None else copy.base()
        if copy is not None and base is not None:  # eager execution writes to the base here
            self.prepare_write(base, place)
            copy.version, copy.is_changed = base.version, True

    def _copy_constant(self, storage, value):
        if id(storage) in self.adopted:
            self.refuse(
                "an in-place write to memory that from_numpy shares, inside a compiled step",
                "call from_numpy outside the step, and pass it as an argument",
            )
        own = self.known[id(storage)] = self._temporary(value.dtype, value.size)
        self.made.append((weakref.ref(storage), own))
        refs, how = ((whole(value),), (whole(own),)), {"program": IDENTITY}
        self.instructions.append(Instruction("elementwise", *refs, how, own.name, own.place))

    def from_numpy(self, data, dtype):
        """Return an Array with a copy of an ndarray: a constant of the program."""
        with self.paused():
            array = self.real.from_numpy(data, dtype)
            own = self.real.share(array)
        self._know(CONSTANT, array, own)
        return array

    def adopt(self, data, dtype):
        """Return an Array over an ndarray's memory; the program reads a copy, as a constant."""
        with self.paused():
            array = self.real.adopt(data, dtype)
            own = self.real.share(array)
        self._know(CONSTANT, array, own)
        self.adopted.add(id(array))
        return array

    # -- formulas ------------------------------------------------------------------------------

    def elementwise(self, program, inputs, outputs):
        self.record("elementwise", inputs, outputs, program=program)

    def reduce(self, program, how, inputs, out, shape, axes):
        self.record("reduce", inputs, (out,), program=program, how=how, shape=shape, axes=axes)

    def rows(self, program, modes, inputs, outputs, shape):
        self.record("rows", inputs, outputs, program=program, modes=modes, shape=shape)

    def share(self, x):
        """Record clone() as a copy; a pass removes it if neither side is written."""
        return self.convert(x, x.dtype)

    # -- products, indices, scans ----------------------------------------------------------------

    def matmul(self, a, b, out, bias=None, accumulate=False):
        """Record out = a @ b (+ bias); integers are computed in int64."""
        result = out
        if not out.dtype.is_float:
            a, b = (x if x.dtype is int64 else self.convert(x, int64) for x in (a, b))
            result = out if out.dtype is int64 else self.empty(out.shape, int64)
        self.record("matmul", (a, b), (result,), accumulate=accumulate)
        if bias is not None:
            self.record("elementwise", (result, bias), (result,), program=ADD)
        if result is not out:
            self.copy(result, out)

    def gather(self, x, index, out):
        self.record("gather", (x, _flat(index)), (out,))

    def scatter_add(self, source, index, out):
        self.record("scatter_add", (source, _flat(index)), (out,))

    def put(self, source, index, out):
        self.record("put", (source, _flat(index)), (out,))

    def wrap_index(self, index, n, out):
        """Record out = nonnegative indices; the program stops if an index is out of range."""
        self.stop("wrap_index", index, (out,), n=n)
        return -1

    def all_within(self, x, low, high, wanted=None):
        """Return True; the program stops if an element lies outside [low, high]."""
        if x.size:
            self.stop("check", x, (), what="within", low=low, high=high, wanted=wanted)
        return True

    def check_finite(self, x, error):
        """Record a check: the program stops and raises error() if x has a NaN or infinity."""
        self.append(
            "check", (x,), (), {"what": "finite", "low": None, "high": None, "error": error}
        )

    def cumsum(self, x, out, axis):
        x = self.contiguous(x if x.dtype is out.dtype else self.convert(x, out.dtype))
        self.record("cumsum", (x,), (out,), axis=axis)

    def arg_reduce(self, x, out, axis, is_max):
        is_computed = x.dtype.is_float or x.dtype is int64
        x = self.contiguous(x if is_computed else self.convert(x, int64))
        self.record("arg_reduce", (x,), (out,), axis=axis, is_max=is_max)

    def item(self, x):
        """Raise: no element is known during tracing."""
        self.read(x)

    def argsort(self, x, out, descending=False):
        """Record out = argsort of each row; on the CPU, with scratch memory."""
        others = (self.empty(out.shape, int64),) if self.name == "cpu" else ()
        self.record("argsort", (x,), (out, *others), descending=descending)

    def solve(self, a, b, out, factors, rest):
        self.record("solve", (a, b), (out, factors, rest))

    def cholesky(self, a, out):
        self.record("cholesky", (a,), (out,))

    # -- random numbers, windows, ranges ---------------------------------------------------------

    def random(self, array, kind, seed, counter, low=0, high=0):
        """Record a random fill; `counter` is relative to the default generator's at run start."""
        if seed is not SEED:
            self.refuse_generator()
        self.record("random", (), (array,), kind=kind, low=low, high=high, counter=counter)

    def unfold(self, x, out, window):
        self.record("unfold", (x,), (out,), window=window)

    def fold(self, columns, out, window):
        self.record("fold", (columns,), (out,), window=window)

    def convolves(self, what, dtype, shape, kernels, window):
        """Return whether a direct convolution pays off, as eager execution decides it."""
        return self.name == "cpu" and pays(what, dtype, shape, kernels, window)

    def convolve(self, x, w, bias, out, window):
        """Record out = cross-correlation of x with w; the bias fuses with later operations."""
        self._convolve(x, w, out, window)
        assert bias is not None, "Conv2d always has one"
        row = bias.view((1, bias.size, 1, 1), (0, bias.strides[0], 0, 0))
        self.record("elementwise", (out, row), (out,), program=ADD)

    def convolve_back(self, g, w, out, window):
        """Record out = input gradient: a convolution of g with the flipped kernels."""
        self._convolve(g, w.view(*turned(*w.layout())), out, border(window))

    def _convolve(self, x, w, out, window):
        blocks, rows = -(-out.shape[1] // 4), x.shape[1] * w.shape[2] * w.shape[3]
        packed = self.empty((blocks, 4 * (1 + rows)), w.dtype)
        self.record("pack", (w,), (packed,))
        self.record("convolve", (x, packed), (out,), window=window)

    def correlate(self, g, x, out, window):
        self.record("correlate", (g, x), (out,), window=window)

    def largest(self, x, out, window):
        self.record("largest", (x,), (out,), window=window)

    def side_by_side(self, function, count, work):
        """Call function(0, 0, count): the program is split into threads later."""
        function(0, 0, count)

    def parts(self, count, work):
        return 1


def _flat(index):
    """Return a contiguous index as a view of shape (m,)."""
    return index.view((index.size,), (1,))
