"""Runs learners' kernels for lesson 11 and counts what they cost: accesses, lines, temporaries.

The lesson's notebook imports it, too. A kernel runs twice: as plain Python over arrays that count
each access, and compiled, for its values and for what Numba's allocator says.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import types
import weakref
from collections import OrderedDict

import numpy as np
from numba.core import event
from numba.core.registry import CPUDispatcher
from numba.core.runtime import _nrt_python, rtsys  # pyright: ignore

LINE = 64  # bytes that memory and a cache exchange at once
LINES = 64  # lines that the model of a cache holds: 4 KiB
count_allocations = rtsys.get_allocation_stats  # bound before a learner's code runs
PRODUCTS = (np.matmul, np.vecdot) if hasattr(np, "vecdot") else (np.matmul,)
MORE_PRODUCTS = (np.dot, np.vdot, np.inner, np.tensordot, np.einsum)  # no ufuncs


class NotCompiledError(Exception):
    """What should be a kernel is a plain Python function, or something else."""


class ProductError(Exception):
    """NumPy was asked for a product of whole arrays."""


def bounds(array):
    """Return the address of an array's first byte, and one past its last."""
    first = array.__array_interface__["data"][0]
    if not array.size:
        return first, first
    ways = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low, high = (sum(way for way in ways if (way > 0) == up) for up in (False, True))
    return first + low, first + high + array.itemsize


class Memory:
    """Arrays that lie one after the other, and a model of a cache in front of them.

    The cache holds so many lines of LINE bytes. What is not there is fetched, and the line that was
    used least recently goes.

    Attributes:
        reads, writes: accesses of single elements, per array.
        fetched: lines fetched, per array.
        trace: of the first accesses, as many as are to be kept: the array, the place in bytes,
            whether its line was fetched, and the lines in the cache.
        left: the kernel's arguments after its run.
    """

    def __init__(self, keep=0, lines=LINES):
        self.lines = lines
        self.arrays, self.end = [], 0  # (first byte, one past the last, name, where it begins)
        self.reads, self.writes, self.fetched, self.trace = {}, {}, {}, []
        self.keep, self.cache = keep, OrderedDict()
        self.left = []

    def watch(self, array, name):
        """Return a view of an array whose accesses are counted under a name."""
        self.place(array, name)
        view = array.view(Watched)
        view.memory = self
        return view

    def place(self, array, name):
        """Give an array its place: at the beginning of a line, behind all others."""
        low, high = bounds(array)
        self.arrays.append((low, high, name, self.end - low))
        self.end += -(-(high - low) // LINE) * LINE + LINE
        for counts in (self.reads, self.writes, self.fetched):
            counts.setdefault(name, 0)

    def touch(self, address, writes):
        """Count one access of the element at an address."""
        places = (p for p in self.arrays if p[0] <= address < p[1])
        if (place := next(places, None)) is None:
            place = 0, 0, "temporary", 1 << 40
            for counts in (self.reads, self.writes, self.fetched):
                counts.setdefault("temporary", 0)
        _, _, name, shift = place
        (self.writes if writes else self.reads)[name] += 1
        line = (address + shift) // LINE
        is_there = line in self.cache
        self.cache[line] = name
        self.cache.move_to_end(line)
        self.fetched[name] += not is_there
        if len(self.cache) > self.lines:
            self.cache.popitem(last=False)
        if len(self.trace) < self.keep:
            self.trace.append((name, address + shift, not is_there, set(self.cache)))


class Watched(np.ndarray):
    """An array whose accesses are counted, by index or by NumPy's functions."""

    memory: Memory | None = None

    def __array_finalize__(self, other):
        if self.memory is None:
            self.memory = getattr(other, "memory", None)

    def touch(self, writes):
        """Count an access of each element."""
        if self.memory is None or not self.size:
            return
        start = self.__array_interface__["data"][0]
        offsets = np.zeros((), np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            offsets = np.add.outer(offsets, np.arange(size) * stride)
        for offset in offsets.reshape(-1).tolist():
            self.memory.touch(start + offset, writes)

    def one(self, index):
        """Return the address of one element, None if the index asks for more."""
        index = index if type(index) is tuple else (index,)
        if len(index) != self.ndim or self.memory is None:
            return None
        address = self.__array_interface__["data"][0]
        for k, size, stride in zip(index, self.shape, self.strides, strict=True):
            if not isinstance(k, (int, np.integer)):
                return None
            if not -size <= k < size:
                raise IndexError(f"index {k} is out of bounds for an axis of size {size}")
            address += (k + size if k < 0 else k) * stride
        return int(address)

    def __getitem__(self, index):
        address = self.one(index)
        got = super().__getitem__(index)
        if address is not None and self.memory is not None:
            self.memory.touch(address, False)
        elif isinstance(got, Watched) and not np.may_share_memory(got, self):
            got.touch(False)
        return got

    def __setitem__(self, index, value):
        address = self.one(index)
        if isinstance(value, Watched):
            value.touch(False)
            value = value.view(np.ndarray)
        np.ndarray.__setitem__(self.view(np.ndarray), index, value)
        if address is not None and self.memory is not None:
            self.memory.touch(address, True)
        elif isinstance(part := self.view(np.ndarray)[index], np.ndarray):
            part = part.view(Watched)
            part.memory = self.memory
            part.touch(True)

    @property
    def flat(self):
        """Yield the elements row by row, each read as x[i, j] reads it."""
        return (self[place] for place in np.ndindex(self.shape))

    def dot(self, *args):
        """Refuse a product."""
        raise ProductError

    def __array_function__(self, function, kinds, args, kwargs):
        if function in MORE_PRODUCTS:
            raise ProductError
        return super().__array_function__(function, kinds, args, kwargs)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **more):
        if ufunc in PRODUCTS:
            raise ProductError
        memory = self.memory
        for x in inputs:
            if isinstance(x, Watched):
                x.touch(False)
        inputs = [x.view(np.ndarray) if isinstance(x, Watched) else x for x in inputs]
        if out is not None:
            more["out"] = tuple(o.view(np.ndarray) if isinstance(o, Watched) else o for o in out)
        got = getattr(ufunc, method)(*inputs, **more)
        for o in out or ():
            if isinstance(o, Watched):
                o.touch(True)
        if out is not None and len(out) == 1:
            return out[0]
        if isinstance(got, np.ndarray) and got.ndim:
            got = got.view(Watched)
            got.memory = memory
            got.touch(True)
        return got


def kernel_of(mine, name):
    """Return a learner's compiled function; raise if it is untouched, or not compiled."""
    kernel = getattr(mine, name)
    plain = getattr(kernel, "py_func", kernel)
    if getattr(getattr(plain, "__code__", None), "co_names", ()) == ("NotImplementedError",):
        raise NotImplementedError(f"{name} is yours to write")
    return compiled(kernel)


def compiled(kernel):
    """Return a kernel; raise if Numba has not compiled it."""
    if not isinstance(kernel, CPUDispatcher):
        raise NotCompiledError(f"a {type(kernel).__name__}")
    return kernel


def as_compiled(function):
    """Return a function of math that gives inf and nan, as in compiled code, and no error."""
    in_numpy = getattr(np, function.__name__, None)

    def safe(*args):
        try:
            return function(*args)
        except (OverflowError, ValueError) as error:
            if isinstance(in_numpy, np.ufunc) and len(args) == in_numpy.nin:
                return float(in_numpy(*args))  # log(0) is -inf
            return math.inf if isinstance(error, OverflowError) else math.nan

    return safe


FUNCTIONS = {name: as_compiled(f) for name, f in vars(math).items() if callable(f)}
MATH = types.SimpleNamespace(**{**vars(math), **FUNCTIONS})


def numbered(array):
    """Yield places and elements, each read as x[i, j] reads it: np.ndenumerate is not counted."""
    return ((place, array[place]) for place in np.ndindex(array.shape))


NUMPY = types.SimpleNamespace(**{**vars(np), "ndenumerate": numbered})


def in_place_of(value):
    """Return what stands for a global of a kernel that runs as plain Python, None for itself."""
    if isinstance(value, CPUDispatcher):
        return value.py_func
    if value is math:
        return MATH
    if value is np:
        return NUMPY
    if isinstance(value, types.BuiltinFunctionType) and vars(math).get(value.__name__) is value:
        return FUNCTIONS[value.__name__]
    return None


def names_in(code):
    """Yield the names that a function's code uses, also in the functions inside it."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from names_in(one)


@contextlib.contextmanager
def in_python(kernel):
    """Let what a kernel calls be plain Python, too, inside the block; yield its function."""
    put_back, waiting, seen = [], [kernel.py_func], set()
    while waiting:
        function = waiting.pop()
        if id(function) in seen or not isinstance(function, types.FunctionType):
            continue
        if function in FUNCTIONS.values():  # it calls the function of math that it stands for
            continue
        seen.add(id(function))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for _, cell in cells:
            with contextlib.suppress(ValueError):
                if (other := in_place_of(cell.cell_contents)) is not None:
                    put_back.append((cell, None, cell.cell_contents))
                    cell.cell_contents = other
                    waiting.append(other)
        for name in names_in(function.__code__):
            value = function.__globals__.get(name)
            if (other := in_place_of(value)) is not None:
                put_back.append((function.__globals__, name, value))
                function.__globals__[name] = other
                waiting.append(other)
    try:
        yield kernel.py_func
    finally:
        for place, name, value in reversed(put_back):
            if name is None:
                place.cell_contents = value
            else:
                place[name] = value


def like(array):
    """Return a copy of an array that lies in memory in the same way."""
    if not array.size:
        return array.copy()
    low, high = bounds(array)
    memory = np.empty(high - low + LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % LINE
    start = array.__array_interface__["data"][0] - low
    copy = np.ndarray(array.shape, array.dtype, memory, first + start, array.strides)
    copy[...] = array
    return copy


def watched(kernel, names, arguments, keep=0, lines=LINES):
    """Run a kernel as plain Python over arrays that count; return the Memory, with the counts."""
    memory = Memory(keep, lines)
    given = [
        memory.watch(like(a), name) if isinstance(a, np.ndarray) else a
        for name, a in zip(names, arguments, strict=True)
    ]
    with in_python(kernel) as function, np.errstate(all="ignore"):
        function(*given)
    memory.left = [a.view(np.ndarray) if isinstance(a, np.ndarray) else a for a in given]
    return memory


def temporaries(kernel, arguments):
    """Run a compiled kernel; return how many arrays it asked Numba's allocator for.

    Numba's runtime also keeps one record for each array that is passed in.
    """
    kernel(*[like(a) if isinstance(a, np.ndarray) else a for a in arguments])
    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    before = count_allocations().alloc
    kernel(*arguments)
    asked = count_allocations().alloc - before
    if not was_on:
        _nrt_python.memsys_disable_stats()
    if len(kernel.nopython_signatures) < len(kernel.signatures):
        raise NotCompiledError("a function in object mode, which is Python at Python's speed")
    return asked - sum(isinstance(a, np.ndarray) for a in arguments)


def run(kernel, names, arguments, compiled=True):
    """Run a kernel both ways; return its arguments afterwards, and the counts, as plain data.

    Where compiled code divides by 0, and raises, the arguments are those of plain Python.
    """
    if kernel.targetoptions.get("parallel"):
        return {"parallel": True}
    try:
        memory = watched(kernel, names, arguments)
    except ProductError:
        return {"product": True}
    given = [like(a) if isinstance(a, np.ndarray) else a for a in arguments]
    count, divided = 0, False
    try:
        count = temporaries(kernel, given) if compiled else 0
    except ZeroDivisionError:
        given, divided = memory.left, True
    return {
        "arguments": given,
        "in_python": memory.left,
        "divided": divided,
        "temporaries": count,
        "reads": [memory.reads.get(name, 0) for name in names],
        "writes": [memory.writes.get(name, 0) for name in names],
        "fetched": [memory.fetched.get(name, 0) for name in names],
        "elsewhere": memory.reads.get("temporary", 0) + memory.writes.get("temporary", 0),
    }


def launched(mine, name, names, arguments):
    """Run a learner's kernel; see run."""
    try:
        return run(kernel_of(mine, name), names, arguments)
    except NotCompiledError as error:
        return {"not_compiled": str(error)}


def only_watched(mine, name, names, arguments):
    """Count what a learner's kernel costs as plain Python; see run."""
    try:
        return run(kernel_of(mine, name), names, arguments, compiled=False)
    except NotCompiledError as error:
        return {"not_compiled": str(error)}


def asked_for(mine, ops):
    """Return the kernel of a chain; what went wrong in a text that exec got, as `broke`."""
    try:
        return mine.fuse(ops)
    except TypeError as error:
        if "unhashable" in str(error):
            return {"broke": ["unhashable", str(error)]}
        raise
    except SyntaxError as error:
        if error.filename == "<string>":
            return {"broke": ["SyntaxError", str(error.msg)]}
        raise


def fused(mine, ops, arguments):
    """Fuse a list of operations and run the kernel; see run.

    What goes wrong in a kernel that exec made has no line in the learner's file: it is told as
    `broke`, the error's kind and its text.
    """
    given = list(ops)
    kernel = asked_for(mine, given)
    if isinstance(kernel, dict):
        return kernel
    if given != list(ops):
        return {"changed": [str(op) for op in given]}
    try:
        return run(compiled(kernel), ("x", "out"), arguments)
    except NotCompiledError as error:
        return {"not_compiled": str(error)}
    except (AttributeError, NameError, TypeError) as error:
        said = str(error).replace("'types.SimpleNamespace' object", "math")  # see MATH
        return {"broke": [type(error).__name__, said]}


def fused_again(mine, lists, order):
    """Fuse lists of operations, some of them again, and change each list afterwards.

    Returns, for each, the `first` call that gave this kernel, whether the next call with this list
    gave it `again`, and how many bytes of `code` it has; or what `broke`. Of the last one, too,
    whether it was `kept` while nobody here held it.
    """
    kernels, answers = [], []
    for k in order:
        ops = [*lists[k]]
        kernels.append(one := asked_for(mine, ops))
        if isinstance(one, dict):
            return [*answers, one]
        first = next(i for i, other in enumerate(kernels) if other is one)
        again, plain = asked_for(mine, ops) is one, getattr(one, "py_func", None)
        code = len(plain.__code__.co_code) if isinstance(plain, types.FunctionType) else 0
        answers.append({"first": first, "again": again, "code": code})
        ops[:] = ["x", *ops]
    if isinstance(kernels[-1], CPUDispatcher):
        held = weakref.ref(kernels.pop())
        kernels.clear()
        del one, plain
        gc.collect()
        answers[-1]["kept"] = held() is not None and asked_for(mine, [*lists[order[-1]]]) is held()
    return answers


COMPILED: list[list[str]] = []  # the types of arguments, each time that a kernel was compiled


class Compilations(event.Listener):
    """Notes when one kernel is compiled: its signatures can be thrown away."""

    def __init__(self, kernel):
        self.kernel = kernel

    def on_start(self, event):
        """Note the types of the arguments."""
        if event.data["dispatcher"] is self.kernel:
            COMPILED.append([str(t) for t in event.data["args"]])

    def on_end(self, event):
        """Do nothing."""


def smoothed(mine, signals, weights):
    """Run the bug hunt; return its results, and the types for which its kernel was compiled."""
    kernel = mine.k_smooth
    if not isinstance(kernel, CPUDispatcher):
        return {"not_compiled": f"a {type(kernel).__name__}"}
    given = [*map(list, weights)]
    with event.install_listener("numba:compile", Compilations(kernel)):
        results = mine.smooth_all(signals, given)
    types = [[str(t) for t in types] for types in kernel.signatures]
    compiled, changed = [*COMPILED], given != weights
    arrays = results if isinstance(results, list) else []
    arrays = [one for one in arrays if isinstance(one, np.ndarray)]
    pairs = itertools.combinations(arrays, 2)
    shared = any(np.shares_memory(one, other) for one, other in pairs)
    kept = [one.copy() for one in arrays]
    mine.smooth_all([np.full(x.size, 7.25) for x in signals], [[1.0] for _ in weights])
    pairs = zip(kept, arrays, strict=True)
    return {
        "results": results,
        "types": types,
        "compiled": compiled,
        "changed": changed,
        "shared": shared,
        "overwritten": not all(np.array_equal(*pair, equal_nan=True) for pair in pairs),
    }


def picked_as_it_grows(mine, n, measured, name, point):
    """Pick a kernel, append a point to the list of one of them, and pick again."""
    first = mine.pick_kernel(n, measured)
    measured[name].append(point)
    return [first, mine.pick_kernel(n, measured)]
