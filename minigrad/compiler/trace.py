"""The device that computes nothing: every call of its table becomes an instruction.

Arrays made while it is active have no memory: a `TraceBuffer` names the Value that they stand for.
All other arrays are the step's arguments or were captured; they are known by their Storage.
"""

import contextlib
import weakref

import numpy as np

from minigrad.array.array import Array, hooks
from minigrad.array.dtypes import int64
from minigrad.array.layout import size_of
from minigrad.compiler.program import (
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
from minigrad.compiler.refusals import outside_error, read_error, stop_error
from minigrad.errors import TraceError
from minigrad.graph.modes import state, watch
from minigrad.graph.node import user_place
from minigrad.kernels.backend import active
from minigrad.kernels.cpu import cpu
from minigrad.kernels.expression import IDENTITY, Program, symbol

SEED = 1 << 63  # of the default generator while tracing: no seed that a person can set
ADD = Program(["a", "b"], [symbol("a") + symbol("b")])


class _Nowhere:
    """The pool, and the bin, of buffers without memory: named as the CPU's, since ops compare."""

    device = "cpu"
    current_bytes = 0
    is_outside = False

    @property
    def pool(self):
        """The pool of the bin."""
        return self

    def append(self, buffer):
        """A buffer that is let go goes nowhere."""


NOWHERE = _Nowhere()


class TraceBuffer:
    """What an Array that a trace has made holds in the place of bytes: a Value of the program."""

    __slots__ = ("is_foreign", "nbytes", "owners", "pins", "requested", "trace", "value")
    home = pool = NOWHERE

    def __init__(self, value, trace):
        self.value, self.trace = value, trace
        self.owners, self.pins, self.nbytes, self.is_foreign = 1, 0, 0, False
        self.requested = value.nbytes

    @property
    def address(self):
        """There is none: raises TraceError."""
        raise self._error()

    @property
    def segment(self):
        """There is none: raises TraceError."""
        raise self._error()

    def _error(self):
        return self.trace.failed_by(outside_error(self.value))


class Trace:
    """A device table that records: see `kernels.backend.Device` for what its functions mean.

    Active between `start` and `stop`, for one thread. `begins` is called with each leaf whose
    `.grad` is about to be looked at or set.

    Args:
        arguments: Arrays that are passed in; those of one Storage are one Value.
    """

    name = "cpu"

    def __init__(self, arguments=()):
        self.instructions = []
        self.arguments = []  # Values
        self.known = {}  # id of a Storage with memory -> its Value
        self.held = []  # those Storages: an id must not be given away
        self.adopted = set()  # ids of Storages over memory of NumPy
        self.made = []  # (weak reference to an Array without memory, its Value)
        self.written = {}  # Value -> [Storage, version, written_at] as they were before
        self.grads = {}  # leaf -> its `.grad` before the step touched it
        self.actions = []  # (function, Array that it writes to, instructions before it, place)
        self.failure = None
        for array in arguments:
            storage = array.storage
            if id(storage) not in self.known:
                value = self._know(ARGUMENT, storage)
                value.index = len(self.arguments)
                self.arguments.append(value)

    # -- beginning and end ---------------------------------------------------------------------

    @contextlib.contextmanager
    def recording(self):
        """The block in which this thread's ops are written down; its end puts versions back."""
        device = active(self)
        spans = state.spans
        device.__enter__()
        hooks.reading, state.trace = self.refuse_reading, self
        watch(1)
        try:
            yield self
        finally:
            state.spans = spans
            watch(-1)
            hooks.reading = state.trace = None
            device.__exit__()
            for storage, version, place in self.written.values():
                storage.version = version
                if place is not None:
                    storage.written_at = place
            for leaf, grad in self.grads.items():
                leaf._grad = grad

    @contextlib.contextmanager
    def paused(self):
        """The block in which this thread computes for real."""
        before, hooks.reading, state.trace = hooks.reading, None, None
        watch(-1)
        try:
            with active(None):
                yield
        finally:
            watch(1)
            hooks.reading, state.trace = before, self

    # -- what a step cannot do -----------------------------------------------------------------

    def failed_by(self, error):
        """Remembers an error, so that nobody can swallow it, and gives it back."""
        self.failure = self.failure or error
        return error

    def refuse(self, wanted, fix, got=None):
        """Raises a TraceError."""
        raise self.failed_by(TraceError(wanted, got, fix))

    def refuse_reading(self, array):
        """Raises: the elements of an Array were asked for."""
        buffer = array.buffer
        raise self.failed_by(read_error(array, getattr(buffer, "value", None), state.running))

    def grad(self, leaf):
        """Notes the `.grad` of a leaf before it is looked at or set."""
        if leaf not in self.grads:
            self.grads[leaf] = leaf._grad

    def later(self, action, array):
        """Notes work of the host that writes to an Array: it is done around each run, not now."""
        self.actions.append((action, array, len(self.instructions), user_place()))

    # -- values --------------------------------------------------------------------------------

    def _know(self, kind, storage, owner=None):
        value = Value(kind, storage.dtype, storage.size, storage=owner or storage)
        self.known[id(storage)] = value
        self.held.append(storage)
        return value

    def value_of(self, storage):
        """The Value that a Storage is; one that is met for the first time is captured."""
        buffer = storage.buffer
        if type(buffer) is TraceBuffer:
            if buffer.trace is not self:
                raise self.failed_by(outside_error(buffer.value))
            return buffer.value
        return self.known.get(id(storage)) or self._know(CAPTURED, storage)

    def ref(self, array):
        """The Ref that an Array is now."""
        return Ref(self.value_of(array.storage), array.shape, array.strides, array.offset)

    def _operand(self, x):
        if isinstance(x, Array):
            return self.ref(x)
        return x.item() if isinstance(x, np.generic) else x

    def record(self, op, inputs, outputs, **attributes):
        """Appends an instruction over Arrays and numbers."""
        if not any(out.size for out in outputs):
            return
        name, place = state.running
        self.instructions.append(
            Instruction(
                op,
                tuple([self._operand(x) for x in inputs]),
                tuple([self.ref(x) for x in outputs]),
                attributes,
                name,
                place or user_place(),
            )
        )

    def _check(self, op, inputs, outputs, **attributes):
        """Appends what can stop the step, with the error that is then raised."""
        name, place = state.running
        place = place or user_place()
        attributes["error"] = lambda: stop_error(op, name, attributes, line_of(place))
        self.instructions.append(
            Instruction(
                op,
                tuple(map(self.ref, inputs)),
                tuple(map(self.ref, outputs)),
                attributes,
                name,
                place,
            )
        )

    # -- memory --------------------------------------------------------------------------------

    def empty(self, shape, dtype):
        """A contiguous Array without memory."""
        name, place = state.running
        value = Value(TEMPORARY, dtype, size_of(shape), name=name, place=place or user_place())
        array = Array(TraceBuffer(value, self), shape, dtype)
        array.is_flat = False  # the short ways of ops compute at once
        self.made.append((weakref.ref(array), value))
        return array

    def copy(self, source, out):
        """out[...] = source, broadcast and converted."""
        self.record("elementwise", (source,), (out,), program=IDENTITY)

    def fill(self, out, value):
        """out[...] = value, a number."""
        self.copy(value, out)

    def convert(self, x, dtype):
        """A contiguous copy in another dtype."""
        out = self.empty(x.shape, dtype)
        self.copy(x, out)
        return out

    def contiguous(self, x):
        """x itself if its elements lie in C order, else a copy that does."""
        return x if x.is_contiguous else self.convert(x, x.dtype)

    def share(self, x):
        """clone(): a copy here; if neither side is written, a pass removes it."""
        return self.convert(x, x.dtype)

    def copy_buffer(self, old):
        """No Buffer is un-shared while tracing."""
        raise AssertionError("a trace un-shares no Buffer")

    def prepare_write(self, array, place=None):
        """Before an in-place write: counts it, for this trace; a constant becomes a copy."""
        storage = array.storage
        value = self.value_of(storage)
        if value.kind == CONSTANT:
            if id(storage) in self.adopted:
                self.refuse(
                    "an in-place write to memory that from_numpy shares, inside a compiled step",
                    "call from_numpy outside the step, and pass it as an argument",
                )
            name, where = state.running
            own = Value(TEMPORARY, value.dtype, value.size, name=name, place=where or user_place())
            self.known[id(storage)] = own
            self.made.append((weakref.ref(storage), own))
            self.instructions.append(
                Instruction(
                    "elementwise",
                    (whole(value),),
                    (whole(own),),
                    {"program": IDENTITY},
                    name,
                    own.place,
                )
            )
        elif value.kind != TEMPORARY and value not in self.written:
            written_at = getattr(storage, "written_at", None)
            self.written[value] = [storage, storage.version, written_at]
        storage.version += 1
        storage.written_at = place

    def from_numpy(self, data, dtype):
        """An Array with a copy of an ndarray: a constant of the program."""
        with self.paused():
            array = cpu.from_numpy(data, dtype)
            own = cpu.share(array)
        self._know(CONSTANT, array, own)
        return array

    def adopt(self, data, dtype):
        """An Array over the memory of an ndarray; the program reads a copy of it."""
        with self.paused():
            array = cpu.adopt(data, dtype)
            own = cpu.share(array)
        self._know(CONSTANT, array, own)
        self.adopted.add(id(array))
        return array

    # -- work ----------------------------------------------------------------------------------

    def elementwise(self, program, inputs, outputs):
        """outputs = program(inputs), broadcast to the outputs' shape."""
        self.record("elementwise", inputs, outputs, program=program)

    def reduce(self, program, how, inputs, out, shape, axes):
        """out = how over axes of one formula."""
        self.record("reduce", inputs, (out,), program=program, how=how, shape=shape, axes=axes)

    def rows(self, program, modes, inputs, outputs, shape):
        """Formulas with row reductions."""
        self.record("rows", inputs, outputs, program=program, modes=modes, shape=shape)

    def matmul(self, a, b, out, bias=None, accumulate=False):
        """out = a @ b (+ bias); of ints in int64."""
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
        """out[o, i, :] = x[o, index[i], :]."""
        self.record("gather", (x, index), (out,))

    def scatter_add(self, source, index, out):
        """out[o, index[i], :] += source[o, i, :]."""
        self.record("scatter_add", (source, index), (out,))

    def put(self, source, index, out):
        """out[o, index[i], :] = source[o, i, :]."""
        self.record("put", (source, index), (out,))

    def wrap_index(self, index, n, out):
        """out = index counted from the front; the program stops if one lies outside."""
        self._check("wrap_index", (index,), (out,), n=n)
        return -1

    def all_within(self, x, low, high):
        """True: the program stops if an element lies outside."""
        if x.size:
            self._check("check", (x,), (), what="within", low=low, high=high)
        return True

    def check_finite(self, x, error):
        """The program stops with error() if an element is NaN or infinite."""
        name, place = state.running
        attributes = {"what": "finite", "low": None, "high": None, "error": error}
        self.instructions.append(
            Instruction("check", (self.ref(x),), (), attributes, name, place or user_place())
        )

    def nonzero(self, x):
        """Raises: how many there are depends on values."""
        self.refuse(
            "a mask as an index, or nonzero: the size of the result depends on values, and a "
            "compiled step has fixed shapes",
            "mg.where(mask, x, 0.0) keeps the shape; or compute the index outside the step and "
            "pass it as an argument",
        )

    def cumsum(self, x, out, axis):
        """out = running sums of x along an axis."""
        self.record("cumsum", (x,), (out,), axis=axis)

    def arg_reduce(self, x, out, axis, is_max):
        """out = the place of the largest or smallest element along an axis."""
        self.record("arg_reduce", (x,), (out,), axis=axis, is_max=is_max)

    def random(self, array, kind, seed, counter, low=0, high=0):
        """Fills an Array; the counter is the run's own plus this one."""
        if seed != SEED:
            self.refuse(
                "random numbers of a generator of one's own inside a compiled step: it would not "
                "move on",
                "use the default generator (mg.manual_seed outside the step), or draw outside and "
                "pass the numbers as an argument",
            )
        self.record("random", (), (array,), kind=kind, low=low, high=high, counter=counter)

    def unfold(self, x, out, window):
        """out = the windows of x as columns."""
        self.record("unfold", (x,), (out,), window=window)

    def fold(self, columns, out, window):
        """out = the sum of columns at the places they were unfolded from."""
        self.record("fold", (columns,), (out,), window=window)

    def largest(self, x, out, window):
        """out = where the first largest element of each window lies."""
        self.record("largest", (x,), (out,), window=window)

    def side_by_side(self, function, count, work):
        """function(0, 0, count): who runs it decides later how it is cut."""
        function(0, 0, count)

    def parts(self, count, work):
        """One range."""
        return 1

    def item(self, x):
        """Raises: no element is known."""
        self.refuse_reading(x)
