"""Represents a traced step: values in memory, and instructions that read and write them.

The names are standard compiler terms. A **Value** is one piece of memory, a Storage of the engine;
a **Ref** is a layout over it, like an Array; an **Instruction** is one call of the device table. An
in-place write is an instruction whose output is a Ref to a Value that existed before.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from minigrad.array.array import Array
from minigrad.array.dtypes import DType
from minigrad.array.layout import contiguous_strides, is_contiguous, size_of
from minigrad.array.overlap import overlaps
from minigrad.tape.node import place_line

TEMPORARY, CAPTURED, ARGUMENT, CONSTANT = "temporary", "captured", "argument", "constant"


def line_of(place):
    """Return `file:line  text` of a place: (code, instruction), that text itself, or nothing."""
    return place if isinstance(place, str) else place_line(place)


class Value:
    """One piece of memory. Values are compared by identity.

    kind: 'temporary' (made by the step), 'captured' (exists outside: parameters, state, running
    statistics), 'argument' (number `index` of the arrays passed in), or 'constant' (made of Python
    data while tracing; the program owns its bytes). storage: the Storage of the last three. name
    and line: for messages; place: the line as text, or as (code, instruction).
    """

    __slots__ = ("dtype", "index", "kind", "name", "place", "size", "storage")

    def __init__(
        self, kind, dtype: DType, size, *, storage=None, index=0, name="", place: Any = ""
    ):
        self.kind, self.dtype, self.size = kind, dtype, size
        self.storage: Array | None = storage
        self.index, self.name, self.place = index, name, place

    @property
    def line(self):
        """Return `file:line  text` of the user's call that made it, or an empty string."""
        return line_of(self.place)

    @property
    def is_temporary(self):
        """Return whether the Value exists only inside the step."""
        return self.kind == TEMPORARY

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    def __repr__(self):
        return f"%{self.name or hex(id(self))[-4:]}:{self.dtype}[{self.size}]"


class Ref(NamedTuple):
    """A layout over a Value: strides and offset count elements."""

    value: Value
    shape: tuple
    strides: tuple
    offset: int = 0

    @property
    def dtype(self):
        return self.value.dtype

    @property
    def size(self):
        return size_of(self.shape)

    @property
    def nbytes(self):
        """Return the bytes of its elements."""
        return self.size * self.value.dtype.itemsize

    @property
    def is_contiguous(self):
        """Return whether the elements are contiguous in C order."""
        return is_contiguous(self.shape, self.strides)

    def layout(self):
        return self.shape, self.strides, self.offset

    def covers(self):
        """Return whether it covers every element of its Value, in C order."""
        return not self.offset and self.size == self.value.size and self.is_contiguous

    def overlaps(self, other):
        """Return whether both may share an element; False is certain. See `overlaps`."""
        return self.value is other.value and overlaps(self[1:], other[1:])

    def __repr__(self):
        return f"{self.value!r}{list(self.shape)}"


def whole(value, shape=None):
    """Return the contiguous Ref of a whole Value."""
    shape = (value.size,) if shape is None else shape
    return Ref(value, shape, contiguous_strides(shape))


@dataclass(eq=False)
class Instruction:
    """One call of the device table.

    op and attributes:
        'elementwise': program. Inputs broadcast to the shape of the outputs.
        'rows': program, modes, shape. See `Device.rows`.
        'reduce': program, how, shape, axes. One output without the reduced axes.
        'matmul': accumulate (False, or True: the output is added to, summed over its batch axes of
            stride 0). A bias is an elementwise instruction of its own.
        'gather', 'scatter_add', 'put': none.
        'wrap_index': n; stops the step if an index is out of range.
        'cumsum': axis. 'arg_reduce': axis, is_max.
        'argsort': descending; on the CPU its second output is scratch memory.
        'solve': none; its second and third outputs are scratch memory. 'cholesky': none.
        'random': kind, low, high, counter (added to the run's own).
        'unfold', 'fold', 'largest': window.
        'pack': none. Kernels (o, c, kh, kw) in blocks of four for 'convolve': (blocks, 4 + 4 c kh
            kw), the first four of a block zeros.
        'convolve': window. Images with packed kernels, without a bias.
        'correlate': window. The kernel gradient, from g (n, o, oh, ow) and images.
        'callback': call. Runs Python, which also sees memory outside the step; see `callbacks`.
        'check': what ('within' or 'finite'), low, high; stops the step if it does not hold.

    inputs: Refs and Python numbers; outputs: Refs. name: the operation that the user called; line:
    where; place: that line as text, or as (code, instruction), which costs nothing to keep. An op
    that can stop the step has the attribute error: a function that returns the exception.
    """

    op: str
    inputs: tuple
    outputs: tuple
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    place: Any = ""

    @property
    def line(self):
        """Return `file:line  text` of the user's call, or an empty string."""
        return line_of(self.place)

    @property
    def reads(self):
        """Return the Refs that it reads, including those that it adds to."""
        refs = tuple(x for x in self.inputs if isinstance(x, Ref))
        adds = self.op == "scatter_add" or self.attributes.get("accumulate")
        return refs + self.outputs if adds else refs

    @property
    def writes(self):
        return self.outputs

    @property
    def stops(self):
        """Return whether the instruction can end the step early."""
        return self.op in ("wrap_index", "check", "callback")

    def with_refs(self, function):
        """Return a copy of the instruction with each Ref replaced by function(ref)."""
        return Instruction(
            self.op,
            tuple(function(x) if isinstance(x, Ref) else x for x in self.inputs),
            tuple(map(function, self.outputs)),
            self.attributes,
            self.name,
            self.place,
        )

    def __repr__(self):
        what = self.attributes.get("program") or self.name
        return f"{', '.join(map(repr, self.outputs))} = {self.op} {what}({self.inputs})"


@dataclass(eq=False)
class Recording:
    """A traced step.

    instructions: in the order of the calls.
    arguments: a Value per distinct Storage among the arrays passed in, by index.
    results: Refs to the memory that the step makes and returns, or leaves in `.grad`.
    donated: the arguments whose memory the step may take over.
    """

    instructions: list
    arguments: list
    results: list
    donated: frozenset = frozenset()

    def values(self, kind):
        """Return the Values of a kind that the program touches, in order of appearance."""
        touched = {}
        for i in self.instructions:
            for r in (*i.reads, *i.writes):
                if r.value.kind == kind:
                    touched[r.value] = None
        for r in self.results:
            if r.value.kind == kind:
                touched[r.value] = None
        return list(touched)
