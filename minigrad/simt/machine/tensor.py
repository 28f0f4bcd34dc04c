"""Functions of a whole warp on small matrices: `mma`, a tensor core's product, and `ldmatrix`.

A lane holds a few elements of each matrix, its *fragment*: a tuple in the order of the PTX manual,
whose groupID is `_GROUP` here and whose threadID_in_group is `_WITHIN`.
"""

import numpy as np

from minigrad.array.bits import widened
from minigrad.errors import InactiveLaneError, SimulationError
from minigrad.simt.machine.arrays import ArrayView, PointerView, whole
from minigrad.simt.machine.barriers import elsewhere
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.lanes import WARP
from minigrad.simt.machine.masks import NUMBERS, Misuse, describe

WIDE = 16  # bytes: a row of a matrix of ldmatrix, what one thread copies by cp_async
_GROUP, _WITHIN = np.divmod(np.arange(WARP), 4)


def _places(count, row, column):
    """Return (rows, columns) of the elements that lanes hold, each (32, count)."""
    group, within, i = _GROUP[:, None], _WITHIN[:, None], np.arange(count)
    return tuple(np.broadcast_to(p(group, within, i), (WARP, count)) for p in (row, column))


_OUT = _places(4, lambda g, t, i: g + 8 * (i >> 1), lambda g, t, i: 2 * t + (i & 1))  # (16, 8)
_HALVES = (  # a (16, 16) and b (16, 8), of two bytes an element
    _places(
        8, lambda g, t, i: g + 8 * (i >> 1 & 1), lambda g, t, i: 2 * t + (i & 1) + 8 * (i >> 2)
    ),
    _places(4, lambda g, t, i: 2 * t + (i & 1) + 8 * (i >> 1), lambda g, t, i: g),
)
_WORDS = (  # a (16, 8) and b (8, 8), of four bytes an element
    _places(4, lambda g, t, i: g + 8 * (i & 1), lambda g, t, i: t + 4 * (i >> 1)),
    _places(2, lambda g, t, i: t + 4 * i, lambda g, t, i: g),
)


def _to_tf32(x):
    """Round to 10 bits of fraction, to nearest, ties away from zero, as cvt.rna.tf32.f32 does."""
    bits = (x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), bits.view(np.float32), x)


def whole_warps(call, f, m):
    """Raise unless all 32 lanes of every warp that calls are here."""
    lanes, fix = f.wave.lanes, "launch blocks of a multiple of 32 threads"
    if lanes.threads % WARP == 0:
        if m is None:
            return
        here = np.bincount(lanes.warp[m], minlength=lanes.warps)[lanes.warp]
        lane = offender(lanes, m, here < WARP)
        if lane is None:
            return
        missing = int(np.flatnonzero(~m & (lanes.warp == lanes.warp[lane]))[0])
        got, details = f"{here[lane]} of them", elsewhere(f.wave, missing)
        fix = "call it where the whole warp passes, with zeros for elements beyond an edge"
    else:
        lane, got, details = offender(lanes, m, True), f"blocks of {lanes.threads} threads", ()
    raise fault(
        InactiveLaneError,
        f"{call.site.text} needs all 32 lanes of a warp",
        call.site,
        lanes,
        lane,
        got=got,
        fix=fix,
        details=details,
    )


def _matrix(call, f, values, what, places, shape, dtypes):
    """Return the matrices, float32 or bits (warps, *shape), whose fragments the lanes hold."""
    rows, columns = places
    count = rows.shape[1]
    if (
        not isinstance(values, tuple)
        or len(values) != count
        or not all(isinstance(v, NUMBERS) and v.dtype.name in dtypes for v in values)
        or len({v.dtype for v in values}) > 1
    ):
        kinds = ", ".join(map(describe, values)) if isinstance(values, tuple) else describe(values)
        raise Misuse(
            f"{call.site.text}: {what} is a tuple of {count} numbers of {dtypes[0]}, not {kinds}",
            "the lane's elements in the order of PTX: docs/simt.md says which",
        )
    lanes = f.wave.lanes
    each = np.stack([np.broadcast_to(v, (lanes.count,)) for v in values], 1)
    matrix = np.empty((lanes.warps, *shape), each.dtype)
    matrix[:, rows, columns] = each.reshape(lanes.warps, WARP, count)
    return matrix


def _product(places, depth, dtypes, number):
    """Return mma: d = a @ b + c, for a (16, depth), b (depth, 8), c and d (16, 8).

    d begins as c; then the products, exact in float32, are added in the order of k, each sum
    rounded to float32.
    """

    def run(call, f, m, a, b, c):
        whole_warps(call, f, m)
        if f.wave.counts is not None:
            f.wave.counts.matrix(call.site, m)
        left = number(_matrix(call, f, a, "a", places[0], (16, depth), dtypes))
        right = number(_matrix(call, f, b, "b", places[1], (depth, 8), dtypes))
        total = _matrix(call, f, c, "c", _OUT, (16, 8), ("float32",))
        for k in range(depth):
            total += left[:, :, k, None] * right[:, k, None, :]
        rows, columns = _OUT
        return tuple(total[:, rows[:, i], columns[:, i]].reshape(-1) for i in range(4))

    return run


def wide_place(call, f, m, array, index):
    """Return (region, dtype, first element) of 16 bytes in a row; raise if they do not fit."""
    if not isinstance(array, ArrayView | PointerView):
        raise Misuse(f"{call.site.text} needs arrays, not {describe(array)}")
    lanes, site, index = f.wave.lanes, call.site, index if isinstance(index, tuple) else (index,)
    size = array.dtype.itemsize
    region, dtype, at = array.element(index, lanes, m, site)
    more = whole(index[-1], site) + np.int64(WIDE // size - 1)
    _, _, last = array.element((*index[:-1], more), lanes, m, site)
    for wrong, what in (
        (last - at != WIDE // size - 1, "16 bytes must lie side by side, in one row"),
        (at * size % WIDE != 0, "16 bytes at once must begin at a multiple of 16 bytes"),
    ):
        lane = offender(lanes, m, wrong) if wrong.any() else None
        if lane is not None:
            raise fault(
                SimulationError,
                f"{site.text}: {what}",
                site,
                lanes,
                lane,
                got=f"element {at if at.ndim == 0 else at[lane]} of {dtype}",
            )
    return region, dtype, at


def _load_matrices(is_transposed):
    """Return ldmatrix: four 8 x 8 matrices; lane 8 q + r gives the place of row r of matrix q."""

    def run(call, f, m, array, index):
        whole_warps(call, f, m)
        region, dtype, at = wide_place(call, f, m, array, index)
        if region.space != "shared" or dtype.itemsize != 2:
            raise Misuse(
                f"{call.site.text} reads elements of two bytes in shared memory, not {dtype} in"
                f" {region.space} memory",
                "copy the tile to cuda.shared.array(shape, np.float16, 16) first",
            )
        rows, values = np.broadcast_to(at, (f.wave.lanes.count,)).reshape(-1, WARP), []
        for q in range(4):
            mine = (rows[:, 8 * q + _GROUP] + 2 * _WITHIN).reshape(-1)
            pair = region.load(dtype, mine, m, call.site, width=2)
            if is_transposed:  # element (r, c) is with lane 4 r + c // 2, as number c % 2
                both = np.stack(pair, 1).reshape(-1, WARP, 2)
                pair = [
                    both[:, 8 * _WITHIN + 4 * e + _GROUP // 2, _GROUP % 2].reshape(-1)
                    for e in (0, 1)
                ]
            values += pair
        return tuple(values)

    return run


FUNCTIONS = {
    "mma_f16": _product(_HALVES, 16, ("float16",), lambda x: x.astype(np.float32)),
    "mma_bf16": _product(_HALVES, 16, ("uint16", "int16"), lambda x: widened(x.view(np.uint16))),
    "mma_tf32": _product(_WORDS, 8, ("float32",), _to_tf32),
    "ldmatrix": _load_matrices(False),
    "ldmatrix_trans": _load_matrices(True),
}
