"""The trace: which memory a step touches, what it makes, and what it must not do.

Arrays made while it is active have no memory: a `TraceBuffer` names the Value that they stand for.
All other arrays are the step's arguments or were captured; they are known by their Storage.
"""

import weakref

import numpy as np

from minigrad.array.array import Array
from minigrad.array.dtypes import int64
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
from minigrad.compiler.trace.callbacks import Callbacks, Contexts, Notes
from minigrad.compiler.trace.numbers import without_numbers
from minigrad.compiler.trace.table import SEED, Table
from minigrad.compiler.trace.tracebuffer import TraceBuffer, nowhere
from minigrad.devices import backend
from minigrad.devices.backend import active, values
from minigrad.errors import TraceError
from minigrad.formulas.expression import IDENTITY
from minigrad.memory.interrupts import block
from minigrad.ops.creation import generator as default_generator
from minigrad.seams import Effects, seams
from minigrad.tape.modes import state, watch
from minigrad.tape.node import user_place

HOST = "cpu"


class Copy:
    """An Array in the place of a view: of x[i] with an i that only a run knows.

    Eager execution gives a view there. The copy may be used as long as nobody can tell: until x is
    written; and it may be changed if it is then put back, as x[i] += 1 does.
    """

    def __init__(self, storage, base):
        self.storage, self.base = weakref.ref(storage), weakref.ref(base)
        self.version, self.is_changed = base.version, False

    def is_stale(self):
        """Whether what it was picked from has been written since."""
        base = self.base()
        return base is not None and base.version != self.version


class Trace(Table, Callbacks, Effects):
    """A device that records a step of this thread, and what the engine tells it on the way.

    Args:
        arguments: Arrays that are passed in; those of one Storage are one Value.
        device: the name of the device that the program will run on.
        numbers: those among the arguments that each run reads; see `numbers`.
        notes: what custom Functions returned when they ran as usual: `callbacks.Notes`.
    """

    LASTING = (refusals.OtherDevice,)
    is_tracing = True

    def __init__(self, arguments=(), device="cpu", numbers=None, notes=None):
        self.numbers = numbers  # Numbers
        self.name, self.nowhere = device, nowhere(device)
        self.real = backend.device_named(device)
        self.instructions = []
        self.arguments = []  # Values
        self.known = {}  # id of a Storage with memory -> its Value
        self.held = []  # those Storages, and Modules made by the step: an id must stay theirs
        self.adopted, self.owned = set(), set()  # ids of Storages over NumPy's memory; of Modules
        self.made = []  # (weak reference to an Array without memory, its Value)
        self.written = {}  # Value -> (Storage, version, written_at) as they were before
        self.grads = {}  # id of a leaf -> (weak reference to it, its `.grad` before, is_set)
        self.changed = []  # (weak reference to a Variable, node, requires_grad before, error)
        self.actions = []  # (function, Arrays that it writes to, instructions before it, place)
        self.random_count = 0
        self.standing = {}  # id of a Storage -> the Copy of a view that it stands for
        self.callbacks, self.contexts, self.notes = 0, Contexts(), notes or Notes()
        self.failure = None
        for array in arguments:
            storage = array.storage
            if id(storage) not in self.known:
                value = self._know(ARGUMENT, storage)
                value.index = len(self.arguments)
                self.arguments.append(value)

    # -- beginning and end ---------------------------------------------------------------------

    def run(self, function, *arguments):
        """function(*arguments), whose ops are written down; what it changed is put back."""
        alone = seams.effects
        before = state.path, state.watchers, state.spans, state.is_inference, state.recording
        device = backend._active.device
        try:
            seams.effects, backend._active.device = self, self
            watch(1)
            out = function(*arguments)
        finally:  # without a call in it: at calls comes Ctrl-C
            seams.effects = alone
            backend._active.device = device
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
        """The block in which this thread computes for real."""
        seams.effects = Effects()
        watch(-1)
        try:
            with active(None):
                yield
        finally:
            watch(1)
            seams.effects = self

    # -- what the engine tells -------------------------------------------------------------------

    def failed_by(self, error):
        """Remembers an error, so that nobody can swallow it, and gives it back."""
        self.failure = self.failure or error
        return error

    def refuse(self, wanted, fix, got=None):
        """Raises a TraceError."""
        raise self.failed_by(TraceError(wanted, got, fix))

    def read(self, array):
        """Raises: the elements of an Array were asked for."""
        value = getattr(array.buffer, "value", None)
        raise self.failed_by(refusals.read_error(array, value, state.running))

    def grad(self, *leaves, is_set=False):
        """Notes the `.grad` of leaves before it is looked at, or set whatever it was."""
        for leaf in leaves:
            found = self.grads.get(id(leaf))
            if found is None or found[0]() is not leaf:
                self.grads[id(leaf)] = weakref.ref(leaf), leaf._grad, is_set

    def change(self, variable, what):
        """Notes that a Variable gets another node or flag: an error, if it outlives the step."""
        error = refusals.change_error(variable, what)
        before = variable.node, variable._requires_grad
        self.changed.append((weakref.ref(variable), *before, error))

    def write(self, owner, what):
        """Refuses that an attribute is set, unless the step itself made its owner."""
        if id(owner) not in self.owned:
            self.refuse(*refusals.of_write(owner, what))
        return True

    def own(self, module):
        """Notes that the step itself makes a module."""
        self.owned.add(id(module))
        self.held.append(module)

    def later(self, action, arrays):
        """Notes work of the host that writes to Arrays: it is done around each run, not now."""
        self.actions.append((action, arrays, len(self.instructions), user_place()))

    def call(self, array, name):
        """Gives captured memory a name for people, unless it has one."""
        value = self.value_of(array.storage)
        value.name = value.name or name

    def stand_in(self, array, base):
        """Notes that an Array, picked at a place that a run knows, stands for a view of another."""
        self.standing[id(array.storage)] = Copy(array.storage, base.storage)

    def put_back(self, array, target):
        """Notes that an Array is about to be written to where it was picked: x[i] += 1."""
        copy = self._copy(array.storage)
        if copy is not None and copy.base() is target.storage:
            copy.is_changed, copy.version = False, target.storage.version + 1

    def _copy(self, storage):
        """The Copy that a Storage is, or None."""
        copy = self.standing.get(id(storage))
        return copy if copy is not None and copy.storage() is storage else None

    def check_copies(self, base=None):
        """Raises if the copy of a view (of `base`, or of any Storage) was changed, but not it."""
        for copy in self.standing.values():
            if copy.is_changed and (base is None or copy.base() is base):
                self.refuse(*refusals.CHANGED_COPY)

    def draw(self, generator, count):
        """(seed, counter) of the next numbers of a generator."""
        if generator is not default_generator:
            self.refuse_generator()
        counter = self.random_count
        self.random_count += count
        return SEED, counter

    # -- values --------------------------------------------------------------------------------

    def _know(self, kind, storage, owner=None):
        value = Value(kind, storage.dtype, storage.size, storage=owner or storage)
        self.known[id(storage)] = value
        self.held.append(storage)
        return value

    def value_of(self, storage):
        """The Value that a Storage is; one that is met for the first time is captured."""
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
        """The Value of memory from outside; numbers of the host may serve a program elsewhere."""
        where = storage.buffer.pool.device
        if where not in (self.name, HOST):
            raise self.failed_by(refusals.OtherDevice(where, self.name))
        return self._know(CAPTURED, storage)

    def made_on(self, device):
        """Raises: the step makes an array on another device than the program's."""
        raise self.failed_by(refusals.OtherDevice(device, self.name))

    def ref(self, x):
        """The Ref that an Array is now; a number as Python's own."""
        if isinstance(x, Array):
            layout = without_numbers((x.shape, x.strides, x.offset))
            return Ref(self.value_of(x.storage), *layout)
        return x.item() if isinstance(x, np.generic) else x

    def stop(self, op, x, outputs, **attributes):
        """Appends what can end the step, with the error that is then raised."""
        name, place = state.running
        place = place or user_place()
        known = dict(attributes)  # not the dict that the function itself is in: a cycle
        attributes["error"] = lambda: refusals.stop_error(op, name, known, line_of(place))
        self.append(op, (x,), outputs, attributes)

    def nonzero(self, x):
        """The places of the elements that are not 0, of data that is the program's own."""
        value = self.value_of(x.storage)
        if value.kind != CONSTANT:
            self.refuse(*refusals.MASK)
        with self.paused():
            places = np.flatnonzero(values(x))
        return self.from_numpy(places, int64)

    # -- memory --------------------------------------------------------------------------------

    def empty(self, shape, dtype):
        """A contiguous Array without memory."""
        shape = without_numbers(shape)
        value = self._temporary(dtype, size_of(shape))
        array = Array(TraceBuffer(value, self), shape, dtype)
        array.is_flat = False  # the short ways of ops compute at once
        self.made.append((weakref.ref(array), value))
        return array

    def _temporary(self, dtype, size):
        name, place = state.running
        return Value(TEMPORARY, dtype, size, name=name, place=place or user_place())

    def copy_buffer(self, old):
        """No Buffer is un-shared while tracing: the runtime does so before each run."""
        raise AssertionError("a trace un-shares no Buffer")

    def prepare_write(self, array, place=None):
        """Before an in-place write: counts it, for this trace; a constant becomes a copy."""
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
        """An Array over the memory of an ndarray; the program reads a copy of it."""
        with self.paused():
            array = self.real.adopt(data, dtype)
            own = self.real.share(array)
        self._know(CONSTANT, array, own)
        self.adopted.add(id(array))
        return array
