"""Plans run by NumPy, call by call: formulas as they were fused, memory as it was given out.

Nothing is compiled, so that hundreds of random recordings can be tried. The calls of a region run
in a random order, as threads may run them; a product with an epilogue runs block by block.
"""

import numpy as np

from minigrad.compiler.cpu.schedule import regions_of
from minigrad.compiler.fuse.arena import Arena
from minigrad.compiler.fuse.fuse import fuse
from minigrad.compiler.fuse.fused_loop import Loop
from minigrad.compiler.fuse.inplace import Sharing, rooted
from minigrad.compiler.program.domain import rows_of
from minigrad.compiler.program.items import MatMul, touch
from minigrad.compiler.program.traffic import lives_of
from tests.compiler.formulas import Formula, stored
from tests.compiler.interpreter import Step, view

GARBAGE, MARK = 0xFF, 0x5A  # bytes: of memory that nobody has written, of parts of sums
BLOCK = 16  # rows of a product


class LoopFormula(Formula):
    """Adds what Loops have beside programs: other row reductions, and stores that round."""

    def function(self, op, args):
        """An op on values of one kind."""
        if op.startswith("as_"):
            kind = np.dtype({"as_bool": "?"}.get(op, op[3:]))
            value = stored(args[0], kind)
            return value if kind.kind == "b" else self.as_kind(value, _letter(kind))
        if op in ("row_min", "row_prod", "row_any", "row_all"):
            return getattr(np, op[4:])(args[0], axis=-1, keepdims=True)
        return super().function(op, args)


def _letter(kind):
    return "f" if kind.kind == "f" else "i"


class Simulation:
    """run(): the results of a recording as its plan for so many threads computes them.

    memory: {Value: flat ndarray} of arguments, captured memory and constants; it is changed.
    random: decides the order within regions.
    """

    def __init__(self, recording, memory, n_threads, random):
        self.results, self.memory, self.random = recording.results, dict(memory), random
        self.items = fuse(recording)
        sharing = Sharing(self.items, recording.results, recording.donated)
        self.owner = sharing.owner
        self.regions, self.threads = regions_of(self.items, self.owner, n_threads)
        outside = {r.value for r in recording.results}
        self.arena = Arena(lives_of(self.regions, outside))
        data = np.full(self.arena.size, GARBAGE, np.uint8)
        for value, at in self.arena.offsets.items():
            self.memory[value] = data[at : at + value.nbytes].view(value.dtype.numpy)
        for value in outside:
            if value.is_temporary and value not in self.owner:
                empty = np.full(value.nbytes, GARBAGE, np.uint8)
                self.memory[value] = empty.view(value.dtype.numpy)
        self.late = {}  # Loop -> what its sums are, stored when all threads have met

    def run(self):
        """Copies of the results."""
        with np.errstate(all="ignore"):
            for region in self.regions:
                order = list(region)
                self.random.shuffle(order)
                for call in order:
                    self._call(call)
        return [view(rooted(r, self.owner), self.memory).copy() for r in self.results]

    def _call(self, call):
        for value in [*call.partials, *([call.scratch] if call.scratch else [])]:
            if call.kind != "finish":
                self._bytes(value)[:] = MARK
            assert (self._bytes(value) == MARK).all(), "somebody has written over parts of sums"
        if call.kind == "finish":
            for write in self.late.pop(call.item):
                write()
        elif call.kind == "product":
            self._product(call)
        elif call.kind == "loop":
            late = {k for _, k, _, _ in call.kernel.partial}
            self.late[call.item] = self._loop(call.item, late=late)
        else:
            i = call.item.instruction.with_refs(lambda r: rooted(r, self.owner))
            Step(i, self.memory, 0, 0).run()

    def _bytes(self, value):
        return self.memory[value].view(np.uint8)

    # -- products ------------------------------------------------------------------------------

    def _product(self, call):
        item = call.item
        i = item.instruction.with_refs(lambda r: rooted(r, self.owner))
        a, b, out = (rooted(r, self.owner) for r in (item.a, item.b, item.out))
        i.inputs, i.outputs = (a, b), (out,)
        if call.kernel is None:
            Step(i, self.memory, 0, 0).run()
            return
        writes = [rooted(r, self.owner) for r in item.epilogue.writes]
        assert not touch(writes, (a, b)), "an epilogue overwrites what its product reads"
        for begin in range(0, out.shape[0], BLOCK):
            end = min(begin + BLOCK, out.shape[0])
            some = _some_rows(a, begin, end), b
            i.inputs, i.outputs = some, (_some_rows(out, begin, end),)
            Step(i, self.memory, 0, 0).run()
            self._loop(item.epilogue, range(begin, end), out.shape[1])

    # -- loops ---------------------------------------------------------------------------------

    def _loop(self, loop, block=None, columns=None, late=()):
        """Runs a Loop, or a block of its rows; returns functions that store its late outputs."""
        rows = loop.rows if columns is None else rows_of(loop.dims, columns)
        shape = _two(loop.dims, rows)
        chosen = slice(None) if block is None else slice(block.start, block.stop)
        real = np.float64 if loop.real == "float64" else np.float32
        symbols = {}
        for (value, offset, strides), e in loop.loads.items():
            data = self.memory[self.owner.get(value, value)]
            symbols[e.args[0]] = data[_places(loop.dims, offset, strides).reshape(shape)[chosen]]
        self._check_order(loop)
        formula = LoopFormula(symbols, real, np.empty(shape)[chosen].shape)
        writes, waiting = [], []
        for k, o in enumerate(loop.outputs):
            data = self.memory[self.owner.get(o.value, o.value)]
            places = _places(loop.dims, o.offset, o.strides).reshape(shape)[chosen]
            value = stored(*_reduced(o, formula(o.formula), data.dtype))
            where = {"store": places, "row": places[:, :1], "columns": places[:1]}
            place = where.get(o.mode, places[:1, :1])
            (waiting if k in late else writes).append(_writer(data, place, value))
        for write in writes:
            write()
        return waiting

    def _check_order(self, loop):
        """What is read and written in one pass is so element for element, or apart."""
        seen = []
        for o in loop.outputs:
            root, places = self.owner.get(o.value, o.value), _places(loop.dims, o.offset, o.strides)
            own = (o.offset, o.strides) if o.mode in ("store", "row") else None
            for value, offset, strides in loop.loads:
                if self.owner.get(value, value) is root and (offset, strides) != own:
                    others = _places(loop.dims, offset, strides)
                    assert not np.isin(places, others).any(), f"{o} overwrites what is read"
            for other, others in seen:
                assert other is not root or not np.isin(places, others).any(), f"{o} meets another"
            seen.append((root, places))


def _writer(data, place, value):
    def write():
        data[place] = value

    return write


def _some_rows(r, begin, end):
    return r._replace(shape=(end - begin, r.shape[1]), offset=r.offset + begin * r.strides[0])


def _two(dims, rows):
    """A domain as (rows, columns)."""
    rows = rows or 0
    return int(np.prod(dims[:rows], dtype=int)), int(np.prod(dims[rows:], dtype=int))


def _places(dims, offset, strides):
    """Which element each place of a domain shows."""
    found = np.full(dims, offset)
    for axis, (n, s) in enumerate(zip(dims, strides, strict=True)):
        found += (np.arange(n) * s).reshape(-1, *[1] * (len(dims) - axis - 1))
    return found


def _reduced(o, value, dtype):
    """(value, dtype): what an Output stores of the formula's value over (rows, columns)."""
    if o.mode == "store":
        return value, dtype
    if o.mode == "row":
        return value[:, :1], dtype
    axes = {"columns": (0,), "all": (0, 1), "total": (0,)}[o.mode]
    value = value[:, :1] if o.mode == "total" else value
    wide = {}
    if o.how in ("sum", "mean", "prod"):
        wide = {"dtype": np.float64 if value.dtype.kind == "f" or o.how == "mean" else np.int64}
    return getattr(np, o.how)(value, axis=axes, keepdims=True, **wide), dtype


def is_fused(simulation):
    """Whether something was fused at all: a Loop of several pieces, or an epilogue."""
    return any(
        (type(x) is Loop and len(x.pieces) > 1) or (type(x) is MatMul and x.epilogue)
        for x in simulation.items
    )
