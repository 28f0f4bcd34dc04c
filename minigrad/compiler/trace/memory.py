"""The memory of a step while it is traced: what it reads, writes and makes.

Arrays made by the step have no memory: a `TraceBuffer` names the Value that they stand for. All
other arrays are arguments of the step or captured; they are identified by their Storage.
"""

import weakref
from typing import Any

import numpy as np

from minigrad.array.array import Array
from minigrad.array.dtypes import float32, float64, int64
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
from minigrad.compiler.trace.numbers import Number, without_numbers
from minigrad.compiler.trace.tracebuffer import TraceBuffer, nowhere
from minigrad.devices import backend
from minigrad.devices.backend import active, values
from minigrad.devices.table import Device
from minigrad.errors import TraceError
from minigrad.formulas.expression import IDENTITY
from minigrad.memory.interrupts import block
from minigrad.seams import Effects, seams
from minigrad.tape.modes import state, watch
from minigrad.tape.node import user_place

HOST = "cpu"


class Copy:
    """An Array in the place of a view x[i] whose i is known only when the program runs.

    Eager execution returns a view there. The copy may be used while it cannot be told from a view:
    until x is written. It may be changed if it is then put back, as x[i] += 1 does.
    """

    def __init__(self, storage, base):
        self.storage, self.base = weakref.ref(storage), weakref.ref(base)
        self.version, self.is_changed = base.version, False

    def is_stale(self):
        """Whether its base has been written since it was copied."""
        base = self.base()
        return base is not None and base.version != self.version


class TracedMemory(Device):
    """A device without memory: the Values of a step, and the instructions on them.

    Args:
        arguments: Arrays that are passed in; those of one Storage are one Value.
        device: the name of the device that the program will run on.
        numbers: the `RunNumbers` of the trace, or None.
    """

    numbers: Any

    def __init__(self, arguments=(), device="cpu", numbers=None):
        self.numbers = numbers
        self.name, self.nowhere = device, nowhere(device)
        self.real = backend.device_named(device)
        self.instructions = []
        self.arguments = []  # Values
        self.known = {}  # id of a Storage with memory -> its Value
        self.held = []  # those Storages, and the step's own Modules, so that no id is used again
        self.adopted = set()  # ids of Storages over NumPy's memory
        self.made = []  # (weak reference to an Array without memory, its Value)
        self.written = {}  # Value -> (Storage, version, written_at) as they were before
        self.standing = {}  # id of a Storage -> the Copy of a view that it stands for
        self.failure = None
        for array in arguments:
            storage = array.storage
            if id(storage) not in self.known:
                value = self._know(ARGUMENT, storage)
                value.index = len(self.arguments)
                self.arguments.append(value)

    # -- errors --------------------------------------------------------------------------------

    def failed_by(self, error):
        """Remembers an error, so that no `except` can swallow it, and returns it."""
        self.failure = self.failure or error
        return error

    def refuse(self, wanted, fix, got=None):
        """Raises a TraceError."""
        raise self.failed_by(TraceError(wanted, got, fix))

    def read(self, array):
        """Raises: the step needs the elements of an Array."""
        value = getattr(array.buffer, "value", None)
        raise self.failed_by(refusals.read_error(array, value, state.running))

    # -- copies in the place of views ---------------------------------------------------------

    def _copy(self, storage):
        """The Copy that a Storage is, or None."""
        copy = self.standing.get(id(storage))
        return copy if copy is not None and copy.storage() is storage else None

    def check_copies(self, base=None):
        """Raises if a copy of a view was changed, but not its base. base: None for any."""
        for copy in self.standing.values():
            if copy.is_changed and (base is None or copy.base() is base):
                self.refuse(*refusals.CHANGED_COPY)

    @block
    def paused(self):
        """A block in which this thread computes instead of recording."""
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
        """Appends an instruction on Arrays and numbers, unless it writes no element."""
        if any(out.size for out in outputs):
            self.append(op, inputs, outputs, attributes)

    def append(self, op, inputs, outputs, attributes):
        """Appends an instruction."""
        name, place = state.running
        if self.numbers is not None and self.numbers.kinds:
            attributes = {key: without_numbers(value) for key, value in attributes.items()}
            inputs = self._with_numbers(inputs, outputs, attributes)
        refs = tuple(map(self.ref, inputs)), tuple(map(self.ref, outputs))
        self.instructions.append(Instruction(op, *refs, attributes, name, place or user_place()))

    def _with_numbers(self, inputs, outputs, attributes):
        """The inputs, with memory that each run writes in the place of Numbers.

        Its dtype is the one in which the kernel computes, as for a literal in the kernel's text.
        """
        if not any(type(x) is Number for x in inputs):
            return inputs
        found, arrays = [], [x for x in (*inputs, *outputs) if isinstance(x, Array)]
        real = float64 if any(x.dtype is float64 for x in arrays) else float32
        is_narrow = any(x.dtype.kind == "i" and x.dtype is not int64 for x in outputs)
        for x in inputs:
            if type(x) is not Number:
                found.append(x)
            elif "program" not in attributes or is_narrow:  # such a kernel checks what it stores
                found.append(without_numbers(x))
            else:
                array = self.numbers.array(x, real)
                self.call(array, x._row.name())
                rank = len(attributes.get("shape", ()))
                found.append(array.view((1,) * rank, (0,) * rank))
        return found

    def stop(self, op, x, outputs, **attributes):
        """Appends a check that can end the step, with the error that it then raises."""
        name, place = state.running
        place = place or user_place()
        known = dict(attributes)  # a copy: the lambda in the dict itself would make a cycle
        attributes["error"] = lambda: refusals.stop_error(op, name, known, line_of(place))
        self.append(op, (x,), outputs, attributes)

    # -- values --------------------------------------------------------------------------------

    def _know(self, kind, storage, owner=None):
        value = Value(kind, storage.dtype, storage.size, storage=owner or storage)
        self.known[id(storage)] = value
        self.held.append(storage)
        return value

    def value_of(self, storage):
        """The Value of a Storage; a Storage that is new to the trace is captured."""
        if self.standing:
            copy = self._copy(storage)
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
        """Captures memory from outside; a program on another device may read the CPU's."""
        where = storage.buffer.pool.device
        if where not in (self.name, HOST):
            raise self.failed_by(refusals.OtherDevice(where, self.name))
        return self._know(CAPTURED, storage)

    def made_on(self, device):
        """Raises: the step makes an array on a device that is not the program's."""
        raise self.failed_by(refusals.OtherDevice(device, self.name))

    def ref(self, x):
        """The Ref of an Array; any other operand as a Python number."""
        if isinstance(x, Array):
            layout = without_numbers((x.shape, x.strides, x.offset))
            return Ref(self.value_of(x.storage), *layout)
        return x.item() if isinstance(x, np.generic) else x

    def nonzero(self, x):
        """The indices of the nonzero elements of a constant; refuses other values."""
        value = self.value_of(x.storage)
        if value.kind != CONSTANT:
            self.refuse(*refusals.MASK)
        with self.paused():
            places = np.flatnonzero(values(x))
        return self.from_numpy(places, int64)

    def call(self, array, name):
        """Names captured memory for messages, unless it has a name."""
        value = self.value_of(array.storage)
        value.name = value.name or name

    # -- memory --------------------------------------------------------------------------------

    def empty(self, shape, dtype):
        """A contiguous Array without memory."""
        shape = without_numbers(shape)
        value = self._temporary(dtype, size_of(shape))
        array = Array(TraceBuffer(value, self), shape, dtype)
        array.is_flat = False  # keeps ops off their fast paths, which compute at once
        self.made.append((weakref.ref(array), value))
        return array

    def _temporary(self, dtype, size):
        name, place = state.running
        return Value(TEMPORARY, dtype, size, name=name, place=place or user_place())

    def copy_buffer(self, old):
        """Never called: tracing un-shares no Buffer, as each run does that before it starts."""
        raise AssertionError("a trace un-shares no Buffer")

    def prepare_write(self, array, place=None):
        """Counts an in-place write during this trace; a constant is copied first."""
        storage = array.storage
        value = self.value_of(storage)
        if value.kind == CONSTANT:
            self._copy_constant(storage, value)
        elif value.kind != TEMPORARY and value not in self.written:
            written_at = getattr(storage, "written_at", None)
            self.written[value] = storage, storage.version, written_at
        storage.version += 1
        storage.written_at = place
        copy = self._copy(storage)
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
        """An Array with a copy of an ndarray: a constant of the program."""
        with self.paused():
            array = self.real.from_numpy(data, dtype)
            own = self.real.share(array)
        self._know(CONSTANT, array, own)
        return array

    def adopt(self, data, dtype):
        """An Array over the memory of an ndarray; the program reads a copy, as a constant."""
        with self.paused():
            array = self.real.adopt(data, dtype)
            own = self.real.share(array)
        self._know(CONSTANT, array, own)
        self.adopted.add(id(array))
        return array
