"""Replays what a function of Arrays does for operands of known layouts: its route.

A function such as an operation's forward inspects shapes, finds kernels, allocates its output and
runs them. It does the same each time for the same layouts. So a `Recorder` stands in for the CPU
once, and records which memory the function takes and which kernels it runs on which operands.
`written` turns the recording into a short Python function. A function that cannot be recorded, for
example because it reads elements, has no route and takes the slow path each time.
"""

import functools
from ctypes import memmove
from typing import NamedTuple

from minigrad.array.array import Array, View, fresh
from minigrad.devices.backend import chosen
from minigrad.devices.cpu import blas
from minigrad.devices.cpu.device import cpu
from minigrad.devices.cpu.own_matmul import state as own_matmul
from minigrad.devices.cpu.programs import BoundKernel, Programs
from minigrad.devices.cpu.structural import StructuralKernels
from minigrad.devices.gemm_plan import readable
from minigrad.devices.narrow import computes_wide
from minigrad.devices.table import Device
from minigrad.devices.threads import SPLIT
from minigrad.formulas.expression import Program, symbol
from minigrad.memory.interrupts import WHOLE, uninterrupted
from minigrad.seams import Effects, seams

# functions that reach the recorder's own `run_small`, `run_check`, `copy` and `convert`
FOLLOWED = {
    "cumsum", "arg_reduce", "join", "gather", "scatter_add", "put", "wrap_index", "all_within",
    "run_kernel",
}  # fmt: skip
MOST_FIXED = 1024  # elements that a route keeps to copy them
FEW_PARTS = 6  # fewer are joined by a kernel each, as are parts that are not contiguous
MOST_PARTS = 32  # a route has lines for each
# stand in for a program, for kernels that are of none and write one Array, or none
OTHER, NOTHING = Program((), [symbol("other")]), Program((), [])


class Own(int):
    """A number that a kernel gets from the function's own numbers: it is no constant of a route.

    place: its position among the inputs.
    """

    place: int


class Recorder(StructuralKernels, Programs):
    """A CPU device that records the calls it receives.

    names: the inputs of programs whose scalars are the function's own scalars, matched by position;
    scalars of all other programs are constants. None: the function's own are floats that are no
    other objects, and kernels get them as they are.
    """

    name = "cpu"
    pool = cpu.pool

    def __init__(self, inputs, names):
        self.inputs, self.names = inputs, names
        self.made, self.steps = [], []  # Arrays; and, in order, allocations and launches
        self.filled = set()  # numbers of the made Arrays that a kernel has written
        self.checks = []  # launches of kernels that return whether something is wrong
        self.is_lost = self.has_product = False

    def empty(self, shape, dtype):
        out = cpu.empty(shape, dtype)
        self.made.append(out)
        self.steps.append(out)
        return out

    def launch(self, program, bound, operands):
        self.note(program, bound, operands)
        super().launch(program, bound, operands)

    def note(self, program, bound, operands):
        """Record a launch."""
        are_ours = program.inputs == self.names
        places = [self.place(x, k, are_ours) for k, x in enumerate(operands)]
        count = len(operands) - len(program.outputs)
        for kind, number, _ in places[:count]:
            if kind == "made" and number not in self.filled:
                self.is_lost = True  # the write to it was not recorded
        self.filled.update(number for kind, number, _ in places[count:] if kind == "made")
        self.steps.append((bound, places))

    def matmul(self, a, b, out, bias=None, accumulate=False):
        bound = None
        if not accumulate and not own_matmul.is_used:
            if len(out.shape) == 2:  # as in `blas.matmul`
                a, b = (x if readable(x.shape, x.strides) else self.contiguous(x) for x in (a, b))
            bound = blas.bound_product(a, b, out, bias is not None)
        if bound is None:
            self.is_lost = True
            cpu.matmul(a, b, out, bias, accumulate)
            return
        self.has_product = True
        operands = (a, b, out) if bias is None else (a, b, bias, out)
        self.launch(OTHER, BoundKernel(*bound, 0, None), operands)

    def run_small(self, function, arrays, numbers):
        self.launch(OTHER, BoundKernel(function, numbers, 0, None), arrays)

    def run_check(self, function, arrays, numbers):
        bound = BoundKernel(function, numbers, 0, None)
        self.checks.append(bound)
        self.note(OTHER if arrays[1:] else NOTHING, bound, arrays)
        bad = super().run_check(function, arrays, numbers)
        self.is_lost |= bad >= 0  # what follows may depend on the values
        return bad

    def join(self, parts, out, axis):
        self.is_lost |= len(parts) > MOST_PARTS
        (Device.join if len(parts) < FEW_PARTS else StructuralKernels.join)(self, parts, out, axis)

    def argsort(self, x, out, descending=False):
        self.filled.update(self.owners(out))  # its kernel writes two Arrays
        super().argsort(x, out, descending)

    def random(self, array, kind, seed, counter, low=0, high=0):
        seed, counter = self.own("seed", seed), self.own("counter", counter)
        super().random(array, kind, seed, counter, low, high)

    def own(self, name, value):
        """Return a number that the function must pass on from its input of this name."""
        own, names = Own(value), self.names or ()
        own.place = names.index(name) if name in names else -1
        self.is_lost |= own.place < 0 or self.inputs[own.place] is not value
        return own

    def share(self, x):
        out = cpu.share(x)
        self.filled.add(len(self.made))
        self.made.append(out)
        self.steps.append(Call("share", (x,), out))
        return out

    def fixed(self, data, dtype):
        self.is_lost |= data.size > MOST_FIXED
        out, content = self.empty(data.shape, dtype), data.astype(dtype.memory).tobytes()
        self.run_small(lambda address: memmove(address, content, len(content)), (out,), ())
        return out

    def place(self, x, k, are_ours):
        """Return (kind, number of the input or made Array, or value; byte offset) of x."""
        if not isinstance(x, Array):
            if are_ours and k < len(self.inputs) and not isinstance(self.inputs[k], Array):
                return "float" if isinstance(x, float) else "int", k, 0
            if self.names is None:
                for number, other in enumerate(self.inputs):
                    if x is other:
                        return "float", number, 0
            return "constant", x, 0
        storage, size = x.storage, x.dtype.itemsize
        for number, other in enumerate(self.made):
            if storage is other:
                return "made", number, x.offset * size
        for number, other in enumerate(self.inputs):
            if isinstance(other, Array) and storage is other.storage:
                return "input", number, (x.offset - other.offset) * size
        self.is_lost = True  # it comes from elsewhere
        return "constant", 0, 0

    def used_numbers(self):
        """Return how many of the function's own numbers kernels have got."""
        launches = [step for step in self.steps if type(step) is tuple]
        return len({k for _, places in launches for kind, k, _ in places if kind == "float"})

    def used_by(self, step):
        """Return the numbers of the made Arrays that a step uses."""
        if isinstance(step, Call):
            return [n for x in step.arguments if isinstance(x, Array) for n in self.owners(x)]
        if isinstance(step, Array):
            return []
        return [number for kind, number, _ in step[1] if kind == "made"]

    def owners(self, x):
        """Return a list with the number of the made Array that owns x's memory, if any."""
        return [number for number, made in enumerate(self.made) if x.storage is made]


class Call(NamedTuple):
    """A recorded call of a device table function, and the Array it made."""

    name: str
    arguments: tuple
    out: Array


def _beyond(name):
    """Return a device table function that cannot be recorded: calling it loses the route."""

    def function(self, *arguments, **named):
        self.is_lost = True
        return getattr(cpu, name)(*arguments, **named)

    return function


def _is_stated(name):
    """Return whether `Device` only declares a function, without implementing it."""
    code = getattr(vars(Device).get(name), "__code__", None)
    return code is None or "NotImplementedError" in code.co_names


for _name in {*dir(type(cpu)), "prepare_write"} - {
    *vars(Programs),
    *vars(Recorder),
    *FOLLOWED,
    "name",
    "pool",
}:
    if not _name.startswith("_") and (_is_stated(_name) or _name == "prepare_write"):
        setattr(Recorder, _name, _beyond(_name))
computes_wide(Recorder)


class Reading(Effects):
    """Marks the recording lost when NumPy reads elements, since results may depend on them."""

    def __init__(self, recorder):
        self.recorder = recorder

    def read(self, array):
        self.recorder.is_lost = True


def recorded(function, operands, names, *arguments):
    """Return function(*operands, *arguments) and its Recorder, or None if it is lost.

    operands: CPU Arrays and numbers. The result is an Array or a list of Arrays and None.
    """
    inputs = _apart(operands)
    recorder = Recorder(inputs, names)
    before = chosen.device, seams.effects
    try:
        chosen.device, seams.effects = recorder, Reading(recorder)
        result = function(*inputs, *arguments)
    finally:
        chosen.device, seams.effects = before
    second = [x.storage for x, y in zip(inputs, operands, strict=True) if x is not y]
    if any(x is not None and x.storage in second for x in arrays_of(result)):
        return function(*operands, *arguments), None
    return result, None if recorder.is_lost else recorder


def arrays_of(result):
    """Return a result as a list."""
    return result if isinstance(result, list) else [result]


def _apart(operands):
    """Give each operand its own Storage, so that a recording can tell two operands apart."""
    apart, storages = [], set()
    for x in operands:
        if isinstance(x, Array):
            if x.storage in storages:
                storage = _second(x.storage)
                x = storage if x is x.storage else storage.view(*x.layout())
            storages.add(x.storage)
        apart.append(x)
    return apart


@uninterrupted
def _second(storage):
    """Return another Storage over the same Buffer, for reading only."""
    storage.buffer.owners += 1
    other = fresh(storage.buffer, storage.shape, storage.dtype, storage.size)
    other.is_flat = storage.is_flat
    return other


class Lines(NamedTuple):
    """A recording as text: lines over operands x0, x1, ..., and the expression of the result.

    constants: the values of c0, c1, ..., which differ between calls of the same structure.
    """

    lines: tuple
    result: str
    constants: list

    def function(self, count):
        """Return a function of `count` operands; its text is compiled once per structure."""
        inputs = ", ".join(f"x{k}" for k in range(count))
        return _maker(self.lines, self.result, inputs, len(self.constants))(*self.constants)


@functools.lru_cache(4096)
def _maker(lines, result, inputs, count):
    constants = ", ".join(f"c{k}" for k in range(count))
    body = "".join(f"        {line}\n" for line in (*lines, f"return {result}"))
    text = f"def make({constants}):\n    def route({inputs}):\n{body}    return route\n"
    scope = {**SCOPE, WHOLE: True}
    exec(text, scope)
    return scope["make"]


SCOPE = {
    "new": object.__new__, "Array": Array, "View": View, "pool": cpu.pool, "empty": cpu.empty,
}  # fmt: skip


def written(recorder, result, otherwise=None):
    """Return the Lines of a recording, or None if the result comes from elsewhere.

    otherwise: the text of what the function returns if a check fails that did not fail while it was
    recorded. None: a recording with checks has no Lines.
    """
    if recorder.checks and otherwise is None:
        return None
    text = _Text(recorder, otherwise)
    results = arrays_of(result)
    kept = {number for x in results if x is not None for number in recorder.owners(x)}
    last = {}  # the last step that uses each made Array
    for k, step in enumerate(recorder.steps):
        last.update((number, k) for number in recorder.used_by(step))
    for k, step in enumerate(recorder.steps):
        text.add(step)
        done = [n for n, end in last.items() if end == k and n not in kept]
        if done:
            text.lines.append(f"del {', '.join(f't{n}' for n in done)}")
    shown = [text.result(x) for x in results]
    if recorder.is_lost:
        return None
    whole = f"[{', '.join(shown)}]" if isinstance(result, list) else shown[0]
    return Lines(tuple(text.lines), whole, text.constants)


def taken(name, buffer, home, requested, layout, otherwise):
    """Return lines that make a flat Array inline, as `Pool.take` and `fresh` do.

    layout: the names of shape, strides, dtype and size. otherwise: the expression that makes the
    Array if its memory bin is empty. The lines use the name `n`.
    """
    shape, strides, dtype, size = layout
    return [
        f"if {home}:",
        f"    {buffer} = {home}.pop()",
        f"    {buffer}.owners, {buffer}.requested = 1, {requested}",
        f"    n = {buffer}.nbytes",
        "    pool.takes += 1",
        "    pool.allocated_bytes += n",
        "    n = pool.current_bytes = pool.current_bytes + n",
        "    if n > pool.peak_bytes:",
        "        pool.peak_bytes = n",
        f"    {name} = new(Array)",
        f"    {name}.buffer, {name}.version, {name}.offset, {name}.is_flat = {buffer}, 0, 0, True",
        f"    {name}.shape, {name}.strides = {shape}, {strides}",
        f"    {name}.dtype, {name}.size = {dtype}, {size}",
        "else:",
        f"    {name} = {otherwise}",
        f"    {buffer} = {name}.buffer",
    ]


class _Text:
    """Writes the text of a route; whatever differs between layouts becomes a constant."""

    def __init__(self, recorder, otherwise):
        self.recorder, self.otherwise = recorder, otherwise
        self.lines, self.constants = [], []
        self.count = 0  # of Arrays made so far
        self.addresses = set()

    def constant(self, value):
        """Add a constant and return its name."""
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    def add(self, step):
        """Add a step: an allocation, a call or a launch."""
        if isinstance(step, Array):
            self.make(step)
            return
        if isinstance(step, Call):
            self.call(step)
            return
        bound, places = step
        operands = ", ".join(map(self.operand, places))
        if bound in self.recorder.checks:
            test = f"if {self.constant(bound.entry)}({operands}{self.extra(bound)}) >= 0:"
            self.lines += [test, f"    return {self.otherwise}"]
        elif bound.work < SPLIT or bound.steps is None:
            self.lines.append(f"{self.constant(bound.entry)}({operands}{self.extra(bound)})")
        else:
            self.lines.append(f"{self.constant(bound.run)}([{operands}])")

    def extra(self, bound):
        """Return the text of what a kernel gets after its operands."""
        if not any(type(x) is Own for x in bound.extra):
            return f", *{self.constant(bound.extra)}" if bound.extra else ""
        names = [f"x{x.place}" if type(x) is Own else self.constant(x) for x in bound.extra]
        return f", {', '.join(names)}"

    def make(self, array):
        """Add lines that allocate an Array."""
        k, dtype = self.count, array.dtype
        self.count += 1
        requested = array.size * dtype.itemsize
        home, count = self.constant(cpu.pool.home_of(requested)), self.constant(requested)
        layout = [self.constant(x) for x in (array.shape, array.strides, dtype, array.size)]
        otherwise = f"empty({layout[0]}, {layout[2]})"
        self.lines += taken(f"t{k}", f"b{k}", home, count, layout, otherwise)

    def call(self, step):
        """Add a line that calls a device table function."""
        arguments = ", ".join(
            self.shown(x) if isinstance(x, Array) else self.constant(x) for x in step.arguments
        )
        k, function = self.count, self.constant(getattr(cpu, step.name))
        self.count += 1
        self.lines.append(f"t{k} = {function}({arguments}); b{k} = t{k}.buffer")

    def operand(self, place):
        """Return the text of an operand as a kernel argument: an address or a number."""
        kind, k, offset = place
        if kind == "constant":
            return self.constant(k)
        if kind in ("float", "int"):
            return f"x{k}" if type(self.recorder.inputs[k]).__name__ == kind else f"{kind}(x{k})"
        more = f" + {self.constant(offset)}" if offset else ""
        if kind == "made":
            return f"b{k}.address{more}"
        if k not in self.addresses:
            self.addresses.add(k)
            size = self.recorder.inputs[k].dtype.itemsize
            self.lines.append(f"p{k} = x{k}.buffer.address + x{k}.offset * {size}")
        return f"p{k}{more}"

    def result(self, array):
        """Return the name of a result; the route is lost if no recorded kernel has written it."""
        if array is None:
            return "None"
        owners = self.recorder.owners(array)
        self.recorder.is_lost |= array.size > 0 and not self.recorder.filled.issuperset(owners)
        return self.shown(array)

    def shown(self, array):
        """Return the name of an Array: an input, a made Array, or a new view of either."""
        for k, x in enumerate(self.recorder.inputs):
            if array is x:
                return f"x{k}"
        for k, made in enumerate(self.recorder.made):
            if array is made:
                return f"t{k}"
        kind, k, offset = self.recorder.place(array, -1, False)
        if kind == "constant" or type(array) is not View:
            self.recorder.is_lost = True
            return "None"
        base = f"x{k}" if kind == "input" else f"t{k}"
        begin = offset // array.dtype.itemsize
        more = f" + {self.constant(begin)}" if begin else ""
        name = f"v{len(self.lines)}"
        shape, strides = self.constant(array.shape), self.constant(array.strides)
        self.lines += [
            f"{name} = new(View)",
            f"{name}.base = {base}.base if type({base}) is View else {base}",
            f"{name}.made_at, {name}.is_flat = None, False",
            f"{name}.shape, {name}.strides = {shape}, {strides}",
            f"{name}.offset, {name}.dtype, {name}.size = "
            f"{base}.offset{more}, {self.constant(array.dtype)}, {self.constant(array.size)}",
        ]
        return name
