"""Fuses pieces into a Loop over one domain, which computes each value once.

A value that one piece stores and another reads at the same element stays in a register. A Loop
accepts a piece if every value the piece reads was stored for the same element or can be loaded, and
if nothing the piece writes is read at another element in the same pass.
"""

import copy

from minigrad.array.dtypes import float32, real_of
from minigrad.array.layout import size_of
from minigrad.array.overlap import overlaps
from minigrad.compiler.fuse.piece import PieceOutput
from minigrad.compiler.program.domain import refine, rows_of, spread
from minigrad.compiler.program.identities import Rewrite
from minigrad.compiler.program.program import Ref
from minigrad.formulas.expression import Expression, substitute, symbol, symbols_of, walk
from minigrad.formulas.kinds import REAL_ONLY, Kinds

MOST_ARRAYS = 28  # per kernel: beyond that LLVM runs out of registers for addresses
MOST_NODES = 400


class Loop:
    """Pieces fused over one domain.

    dims, rows: the domain, and how many of its axes are rows (None: not decided). loads: (value,
    offset, strides) -> symbol; values: the same -> what was stored there; outputs: PieceOutputs; a
    later one replaces an earlier one to the same place. limit(loop): returns whether one kernel can
    run it; None: always.
    """

    def __init__(self, piece, limit=None):
        self.dims, self.rows, self.limit = piece.dims, piece.rows, limit
        self.loads, self.values, self.outputs, self.pieces = {}, {}, [], []
        self.kinds, self.real = Kinds(), float32
        self.is_integer = _real_of(piece) is None
        self.nodes = 0
        added = self.add(piece)
        assert added, f"a loop over {piece.instruction}"

    # -- what it touches -----------------------------------------------------------------------

    @property
    def reads(self):
        """Return Refs over the domain to the loaded places."""
        return [Ref(v, self.dims, s, o) for v, o, s in self.loads]

    @property
    def writes(self):
        """Return Refs over the domain to the written places."""
        return [Ref(o.value, self.dims, o.strides, o.offset) for o in self.outputs]

    @property
    def instructions(self):
        return [p.instruction for p in self.pieces]

    @property
    def size(self):
        return size_of(self.dims)

    def keep(self, outputs):
        """Drop all other outputs, and the loads that only they need."""
        if len(outputs) != len(self.outputs):
            self.outputs = outputs
            self.loads = self.used_loads()

    def simplify(self):
        """Apply the identities that hold only across several instructions."""
        rewrite = Rewrite(self.kinds)
        simpler = [o._replace(formula=rewrite(o.formula)) for o in self.outputs]
        if all(x.formula is y.formula for x, y in zip(simpler, self.outputs, strict=True)):
            return
        before, self.outputs = self.outputs, simpler
        loads = self.used_loads()
        if _real_of_values(loads, simpler) is _real_of_values(self.loads, before):
            self.loads = loads
        else:  # without a load the device would compute in another type
            self.outputs = before

    def used_loads(self):
        """Return the loads that the output formulas read."""
        used = set().union(*(symbols_of(o.formula) for o in self.outputs))
        return {key: e for key, e in self.loads.items() if e.args[0] in used}

    # -- adding a piece ------------------------------------------------------------------------

    def add(self, piece, connected=False):
        """Add a piece and return True, or change nothing and return False.

        connected: whether the piece must read something loaded or computed here; a load of few
        elements, such as a learning rate, does not count.
        """
        fit = self._fit(piece)
        if fit is None:
            return False
        loads, values, outputs = self._over(fit)
        mapping, new, is_connected = {}, {}, not connected
        for name, x in piece.inputs.items():
            if not isinstance(x, tuple):
                mapping[name] = Expression("constant", x)
                continue
            key = x[0].value, x[0].offset, fit.view(x[1])
            formula = values.get(key)
            if formula is None:
                if any(_meets(key, _place(o), fit.dims) for o in outputs):
                    return False
                formula = loads.get(key)
                shared = 0 if formula is None else shown(key, fit.dims)
                is_connected = is_connected or (shared and 4 * shared >= piece.size)
                formula = new.get(key) if formula is None else formula
            else:
                is_connected = True
            if formula is None:
                mark = "f" if key[0].dtype.is_float else "n"
                formula = new[key] = symbol(f"{mark}{len(loads) + len(new)}")
            mapping[name] = formula
        real = self._real_with(piece)
        if not is_connected or real is None:
            return False
        loads.update(new)
        fresh = []
        for o in piece.outputs:
            mode = fit.modes[o.mode]
            place = o.value, o.offset, fit.view(o.strides)
            if mode is None or not _may_write(place, mode, loads, outputs, fit.dims):
                return False
            fresh.append((o, place, mode))
        arrays = len(loads) + len(outputs) + len(fresh)
        if self.pieces and (arrays > MOST_ARRAYS or self.nodes > MOST_NODES):
            return False
        trial = self if self.limit is None or not self.pieces else self._copy()
        trial.dims, trial.rows, trial.loads, trial.real = fit.dims, fit.rows, loads, real
        trial._commit(piece, values, outputs, mapping, fresh)
        if trial is not self:
            if not self.limit(trial):  # pyright: ignore[reportOptionalCall] - there is one
                return False
            self.__dict__.update(trial.__dict__)
        return True

    def _copy(self):
        """Return a Loop to try a piece on: `_commit` changes nothing that the two share."""
        trial = copy.copy(self)
        trial.kinds, trial.pieces = self.kinds.copy(), list(self.pieces)
        return trial

    def _commit(self, piece, values, outputs, mapping, fresh):
        for (value, _, _), e in self.loads.items():
            self.kinds.declare(e, value.dtype)
        cache = {}
        for o, place, mode in fresh:
            e = substitute(o.formula, mapping, cache)
            outputs = [x for x in outputs if _place(x) != place]
            value, offset, strides = place
            outputs.append(PieceOutput(e, value, offset, strides, mode, o.how))
            if mode in ("store", "row"):
                values[place] = self.kinds.as_stored(e, o.value.dtype, self.real)
        self.nodes += len(cache)
        self.values, self.outputs = values, outputs
        self.is_integer &= _real_of(piece) is None
        self.pieces.append(piece)

    def _real_with(self, piece):
        """Return the float type in which loop and piece compute, or None if they differ."""
        real = _real_of(piece)
        if not self.pieces:
            return real or float32
        if real is None or real is self.real:
            return self.real
        return real if self.is_integer else None

    def _over(self, fit):
        """Return loads, values and outputs over the domain of a Fit."""
        if fit.mine is None:
            return dict(self.loads), dict(self.values), list(self.outputs)
        loads = {(v, o, fit.mine(s)): e for (v, o, s), e in self.loads.items()}
        values = {(v, o, fit.mine(s)): e for (v, o, s), e in self.values.items()}
        outputs = [
            o._replace(strides=fit.mine(o.strides), mode=fit.my_modes.get(o.mode, o.mode))
            for o in self.outputs
        ]
        return loads, values, outputs

    # -- domains -------------------------------------------------------------------------------

    def _fit(self, piece):
        if not self.pieces:
            return Fit(piece.dims, piece.rows, _spreader(piece.dims, piece.dims))
        if piece.size == self.size:
            return self._same_size(piece)
        if piece.rows is None and self.rows and size_of(self.dims[: self.rows]) == piece.size:
            return self._as_rows(piece)
        if self.rows is None and self.dims and self.size and piece.size % self.size == 0:
            return self._promoted(piece)
        return None

    def _same_size(self, piece):
        dims = refine(self.dims, piece.dims)
        if dims is None:
            return None
        splits = {
            rows_of(dims, size_of(x.dims[x.rows :])) for x in (self, piece) if x.rows is not None
        }
        if len(splits) > 1 or None in splits:
            return None
        mine = None if dims == self.dims else _spreader(self.dims, dims)
        return Fit(dims, next(iter(splits), None), _spreader(piece.dims, dims), mine=mine)

    def _as_rows(self, piece):
        """Return the Fit of a piece with one element per row of the Loop, or None."""
        head, tail = self.dims[: self.rows], self.dims[self.rows :]
        finer = refine(head, piece.dims)
        if finer is None:
            return None
        modes = {"store": "row", "all": "total", "row": None, "columns": None}
        old, n = _spreader(head, finer), len(head)
        mine = None if finer == head else lambda s: (*old(s[:n]), *s[n:])
        dims = (*finer, *tail)
        return Fit(dims, len(finer), _spreader(piece.dims, finer, len(tail)), modes, mine)

    def _promoted(self, piece):
        """Return the Fit of a piece with one row per element of the Loop, or None."""
        columns = piece.size // self.size
        rows = rows_of(piece.dims, columns)
        if rows is None or piece.rows not in (None, rows):
            return None
        if any(o.mode == "all" for o in (*self.outputs, *piece.outputs)):
            return None
        head, tail = piece.dims[:rows], piece.dims[rows:]
        finer = refine(self.dims, head)
        if finer is None:
            return None
        dims = (*finer, *tail)
        mine = _spreader(self.dims, finer, len(tail))
        view = _spreader(piece.dims, dims)
        return Fit(dims, len(finer), view, mine=mine, my_modes={"store": "row"})


class Fit:
    """How a piece fits a loop: the common domain, and how strides and modes map to it.

    view, modes: for the piece; mine, my_modes: for what the loop already has (None: unchanged).
    """

    def __init__(self, dims, rows, view, modes=None, mine=None, my_modes=None):
        self.dims, self.rows, self.view, self.mine = dims, rows, view, mine
        self.modes = modes or {m: m for m in ("store", "row", "columns", "all")}
        self.my_modes = my_modes or {}


def _spreader(dims, finer, tail=0):
    """Return a map from strides over `dims` to strides over `finer`, with `tail` zeros appended."""
    zeros = (0,) * tail
    if dims == finer:
        return (lambda s: (*s, *zeros)) if tail else (lambda s: s)
    return lambda s: (*spread(dims, s, finer), *zeros)


def shown(place, dims):
    """Return the number of distinct elements that a place shows."""
    return size_of(n for n, s in zip(dims, place[2], strict=True) if s)


def _place(output):
    """Return (value, offset, strides) of an output."""
    return output.value, output.offset, output.strides


def _may_write(place, mode, loads, outputs, dims):
    """Return whether an output meets other loads and writes of the pass only elementwise."""
    exact = mode in ("store", "row")
    for key in loads:
        if not (exact and key == place) and _meets(key, place, dims):
            return False
    for other in outputs:
        at = _place(other)
        if at == place:
            if not exact or other.mode != mode:
                return False
        elif _meets(at, place, dims):
            return False
    return True


def _meets(a, b, dims):
    """Return whether two (value, offset, strides) over a domain may share an element."""
    return a[0] is b[0] and overlaps((dims, a[2], a[1]), (dims, b[2], b[1]))


def _real_of_values(loads, outputs):
    """Return the dtype in which a kernel over these operands computes floats."""
    return real_of([*(value.dtype for value, _, _ in loads), *(o.value.dtype for o in outputs)])


def _real_of(piece):
    """Return the dtype in which a piece computes floats on its own, or None if it has none."""
    values = [x[0].value for x in piece.inputs.values() if isinstance(x, tuple)]
    dtypes = [v.dtype for v in (*values, *(o.value for o in piece.outputs))]
    if any(d.is_float for d in dtypes):
        return real_of(dtypes)
    numbers = [x for x in piece.inputs.values() if not isinstance(x, tuple)]
    formulas = walk([o.formula for o in piece.outputs])
    numbers += [e.args[0] for e in formulas if e.op == "constant"]
    is_real = any(isinstance(x, float) for x in numbers) or any(e.op in REAL_ONLY for e in formulas)
    return float32 if is_real else None
