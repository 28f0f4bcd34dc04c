"""Run a function with `numba.prange` as plain Python, and watch what the rounds of its loops share.

In a loop over `prange` nothing says which round comes first, so each round counts as a thread of
its own, and the detector of data races that watches kernels watches the loop. A variable, or a
whole array, that adds up is no race: Numba gives each thread one of its own and adds them at the
end. An element of an array that two rounds use, of which one writes, is one. Made for small inputs:
it is slow, and what it sees is this run, not a branch that no round took.
"""

import functools
import linecache
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from minigrad.errors import DataRaceError
from minigrad.simt.machine.lanes import Lanes
from minigrad.simt.watch.memory import Memory, Site

THREADS = 64  # what get_num_threads says: more than there are rounds in a small input
_WITHOUT_READING = {"shape", "size", "ndim", "empty_like", "zeros_like", "ones_like", "full_like"}


def run_rounds(function, *arguments):
    """Run a function on copies of its arguments; return (result, arguments afterwards, rounds).

    Args:
        function: a function, compiled by Numba or not, with loops over `prange`.
        arguments: numbers, and NumPy arrays of any layout.

    Returns:
        rounds: the most rounds that one loop over `prange` had, 0 without such a loop.

    Raises:
        DataRaceError: two rounds of a loop use one element, and one of them writes it. `thread` and
            `other_thread` begin with the numbers of the rounds, `where` names the line.
    """
    return _Rounds(function).run(arguments)


class _Rounds:
    """One run: which loop and which round is going on, and the memory that it uses."""

    def __init__(self, function):
        self.function: Any = getattr(function, "py_func", function)
        self.file, self.name = self.function.__code__.co_filename, self.function.__name__
        self.most, self.round = 0, 0
        self.memory: Any = None  # of the loop that is running
        self.lanes: Any = None
        self.regions, self.sites, self.made = {}, {}, {}

    def run(self, arguments):
        code = self.function.__code__
        names = code.co_varnames[: code.co_argcount]
        given = [
            self.watched(np.array(one, order="C"), names[k] if k < len(names) else f"argument {k}")
            if isinstance(one, np.ndarray)
            else one
            for k, one in enumerate(arguments)
        ]
        result = self.in_python(self.function)(*given)
        return self.bare(result), [self.bare(one) for one in given], self.most

    # ---- what the function finds under its names ----------------------------------------------

    def in_python(self, function):
        """Return a function whose globals lead to watched loops and arrays."""
        if function in self.made:
            return self.made[function]
        names = dict(function.__globals__)
        new = self.made[function] = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        new.__kwdefaults__ = function.__kwdefaults__
        for name in _names_in(function.__code__) & names.keys():
            names[name] = self.stand_in(names[name])
        return new

    def stand_in(self, value):
        """Return what stands for a global's value."""
        numba = sys.modules.get("numba")
        if numba is not None:
            if value is numba.prange:
                return self.prange
            if value is numba.get_thread_id:
                return lambda: self.round
            if value is numba.get_num_threads:
                return lambda: THREADS
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("numpy", "numba"):
            return _Module(self, value)
        if isinstance(getattr(value, "py_func", None), FunctionType):
            return self.in_python(value.py_func)
        if isinstance(value, np.ndarray):
            return self.watched(value, "a global array")
        if callable(value) and str(getattr(value, "__module__", "")).startswith("numpy"):
            return self.of_numpy(value)
        return value

    def of_numpy(self, function):
        """Return a function of NumPy's that takes watched arrays and gives them."""
        if isinstance(function, type):
            return function
        reads = getattr(function, "__name__", "") not in _WITHOUT_READING

        @functools.wraps(function)
        def call(*arguments, **named):
            out = named.pop("out", None)
            plain = [self.bare(one, reads) for one in arguments]
            named = {key: self.bare(one, reads) for key, one in named.items()}
            result = function(*plain, **named)
            if out is None:
                return self.watched(result) if isinstance(result, np.ndarray) else result
            out[...] = result
            return out

        return call

    # ---- loops ------------------------------------------------------------------------------

    def prange(self, *bounds):
        """Yield the numbers of `range`; in a round of another such loop, as a plain loop."""
        rounds = range(*bounds)
        if self.memory is not None:
            yield from rounds
            return
        self.most = max(self.most, len(rounds))
        if not rounds:
            return
        self.lanes = Lanes((1, 1, 1), (len(rounds), 1, 1), 0, 1)
        self.memory = Memory(self.name)
        self.memory.begin(self.lanes)
        try:
            for self.round, number in enumerate(rounds):
                yield number
        finally:
            self.memory = self.lanes = None
            self.regions, self.round = {}, 0

    # ---- accesses -----------------------------------------------------------------------------

    def watched(self, array, name=None):
        """Return an array as the function sees it."""
        if array.ndim == 0:
            return array[()]
        cells = np.arange(array.size).reshape(array.shape)
        if name is None:
            name = f"the array made in line {self.site().line}"
        return _Watched(self, array, cells, array, name)

    def bare(self, value, reads=False):
        """Return a value as NumPy knows it; with `reads`, note that a round reads it."""
        if isinstance(value, tuple | list):
            return type(value)(self.bare(one, reads) for one in value)
        if not isinstance(value, _Watched):
            return value
        if reads:
            self.note(value, value.cells, False)
        return value.array

    def site(self):
        """Return the place in the function's file that is being run."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        line = 0 if frame is None else frame.f_lineno
        if line not in self.sites:
            text = linecache.getline(self.file, line).partition("#")[0].strip()
            self.sites[line] = Site(self.file, line, 0, text, self.name)
        return self.sites[line]

    def note(self, of, cells, writes):
        """Note that this round reads or writes elements; raise where another round has used one."""
        if self.memory is None:
            return
        base = of.base
        if id(base) not in self.regions:
            flat = base.reshape(-1) if base.flags.c_contiguous else np.ascontiguousarray(base)
            shape = base.shape if base.ndim > 1 else None
            region = self.memory.buffer(flat.view(np.uint8).reshape(-1), of.name, shape=shape)
            self.regions[id(base)] = region, flat  # which keeps the memory alive
        region, flat = self.regions[id(base)]
        active = np.arange(self.lanes.count) == self.round
        site = self.site()
        for cell in np.ravel(cells):
            index = np.full(self.lanes.count, cell)
            try:
                if writes:
                    region.store(flat.dtype, index, flat.reshape(-1)[cell], active, site)
                else:
                    region.load(flat.dtype, index, active, site)
            except DataRaceError as error:
                raise self.told(error, region, int(cell), flat.itemsize, site) from None

    def told(self, error, region, cell, itemsize, site):
        """Return a race of threads as one of rounds."""
        details = dict(error.details)
        other = error.other_thread[0]
        did = details["other"].partition(") has ")[2].rpartition(") has ")[2]
        new: Any = DataRaceError(
            f"{site.text}: two rounds of the loop use one element, and nothing says who is first",
            got=f"{region.element(cell * itemsize, itemsize, site)}",
            fix="give each round an element of its own, and combine them after the loop; a "
            "variable that adds up, such as `total += …`, is a reduction, and no race",
            where=site.where,
            details=(
                ("round", f"{self.round} {details['does']}"),
                ("other", f"{other} has {did}"),
                ("at", details["at"]),
            ),
        )
        new.kernel, new.thread, new.other_thread = self.name, (self.round, 0, 0), (other, 0, 0)
        new.other_line = error.other_line
        return new


class _Watched(np.lib.mixins.NDArrayOperatorsMixin):
    """An array, or a view of one, whose elements are noted when they are used.

    Attributes:
        array: its elements.
        cells: of the same shape, the numbers of these elements in `base`.
        base: the array that it is a view of.
        name: what messages call `base`.
    """

    def __init__(self, rounds, array, cells, base, name):
        self.rounds, self.array, self.cells, self.base, self.name = rounds, array, cells, base, name

    def view(self, array, cells):
        """Return elements of this array under another shape."""
        return _Watched(self.rounds, array, cells, self.base, self.name)

    def __getitem__(self, key):
        key = self.rounds.bare(key, reads=True)
        values, cells = self.array[key], self.cells[key]
        if isinstance(values, np.ndarray) and np.may_share_memory(values, self.array):
            return self.view(values, cells)
        self.rounds.note(self, cells, False)
        return self.rounds.watched(values) if isinstance(values, np.ndarray) else values

    def __setitem__(self, key, value):
        key, value = self.rounds.bare(key, reads=True), self.rounds.bare(value, reads=True)
        self.array[key] = value
        self.rounds.note(self, self.cells[key], True)

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rounds.bare(self, reads=True), dtype=dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **named):
        if not out:
            result = getattr(ufunc, method)(*self.rounds.bare(inputs, reads=True), **named)
            return self.rounds.watched(result) if isinstance(result, np.ndarray) else result
        (target,) = out
        # `total += …` on a whole array: a reduction, for which each thread has an array of its own
        if target is inputs[0] and target.array is target.base:
            plain = [target.array, *self.rounds.bare(inputs[1:], reads=True)]
            target.array[...] = getattr(ufunc, method)(*plain, **named)
        else:
            plain = self.rounds.bare(inputs, reads=True)
            target[...] = getattr(ufunc, method)(*plain, **named)
        return target

    @property
    def T(self):
        """Return the transpose, a view."""
        return self.view(self.array.T, self.cells.T)

    def reshape(self, *shape):
        """Return the elements under another shape: a view, where it can be one."""
        return self.view(self.array.reshape(*shape), self.cells.reshape(*shape))

    def ravel(self):
        """Return the elements in one row."""
        return self.reshape(-1)

    def fill(self, value):
        """Write one value into all elements."""
        self[...] = value

    def __getattr__(self, name):
        value = getattr(self.array, name)
        return self.rounds.of_numpy(_reading(self, name)) if callable(value) else value


class _Module:
    """NumPy, Numba or a module of theirs, as a function in a watched run sees it."""

    def __init__(self, rounds, module):
        self._rounds, self._module = rounds, module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if isinstance(value, np.ufunc):
            return self._rounds.of_numpy(value)
        return self._rounds.stand_in(value)


def _reading(of, name):
    """Return a method of an array, which reads all of its elements."""

    def method(*arguments, **named):
        return getattr(of.rounds.bare(of, reads=True), name)(*arguments, **named)

    return method


def _names_in(code):
    """Return the names that a function's code uses, with those of functions inside it."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))
