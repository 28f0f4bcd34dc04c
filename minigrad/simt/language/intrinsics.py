"""`cuda.*` in a kernel, and the pointer helpers: places in the grid, barriers, atomics, bits."""

from typing import Any

import numpy as np

from minigrad.errors import SimulationError
from minigrad.simt.language import copies
from minigrad.simt.language.functions import floating
from minigrad.simt.machine import barriers, half, tensor, warps
from minigrad.simt.machine.arrays import ArrayView, PointerView, Triple
from minigrad.simt.machine.faults import fault, offender
from minigrad.simt.machine.masks import Misuse, describe, merge
from minigrad.simt.machine.promotion import truth

_PLACES = {
    "threadIdx": lambda f: f.wave.lanes.thread_index,
    "blockIdx": lambda f: f.wave.lanes.block_index,
    "blockDim": lambda f: f.wave.block_dim,
    "gridDim": lambda f: f.wave.grid_dim,
}
VALUES = {
    "laneid": lambda f, m: f.wave.lanes.position.astype(np.int32),
    "warpsize": lambda f, m: np.int32(32),
}
for _name, _get in _PLACES.items():
    VALUES[_name] = lambda f, m, get=_get: Triple(*get(f))
    for _axis, _letter in enumerate("xyz"):
        VALUES[f"{_name}.{_letter}"] = lambda f, m, get=_get, axis=_axis: get(f)[axis]


def grid(path, axes):
    """Return the closure of cuda.grid(axes) or cuda.gridsize(axes): an int64, or a tuple."""

    def place(f, m):
        index = f.wave.lanes.grid_index
        return index[0] if axes == 1 else index[:axes]

    def size(f, m):
        pairs = zip(f.wave.grid_dim, f.wave.block_dim, strict=True)
        whole = tuple(np.int64(a) * np.int64(b) for a, b in pairs)
        return whole[0] if axes == 1 else whole[:axes]

    return place if path == "grid" else size


# ---- atomic operations ---------------------------------------------------------------------------


_INTEGERS = ("int32", "int64", "uint32", "uint64")
_TAKES = {  # what Numba compiles; pointers, which only minigrad's own kernels use, take any
    **dict.fromkeys(("and", "or", "xor", "exch", "cas"), _INTEGERS),
    **dict.fromkeys(("inc", "dec"), ("uint32", "uint64")),
}


def _atomic(operation) -> Any:
    """Return cuda.atomic.add(array, index, value) or the like, which returns the old element."""
    takes = _TAKES.get(operation, (*_INTEGERS, "float32", "float64"))

    def update(call, f, m, array, index, *value):
        if isinstance(array, ArrayView) and array.dtype.name not in takes:
            raise Misuse(
                f"{call.site.text} does not take elements of {array.dtype}",
                f"the array may have {', '.join(takes)}",
            )
        if not hasattr(array, "element"):
            raise Misuse(f"atomic operations need an array or a pointer, not {describe(array)}")
        if not isinstance(index, tuple):
            index = (index,)
        region, dtype, at = array.element(index, f.wave.lanes, m, call.site)
        given = value if operation == "cas" else value[0]
        return region.atomic(dtype, operation, at, given, m, call.site, call.wanted)

    if operation == "cas":
        return lambda call, f, m, array, index, old, value: update(
            call, f, m, array, index, old, value
        )
    return lambda call, f, m, array, index, value: update(call, f, m, array, index, value)


def _compare_and_swap(call, f, m, array, old, value):
    return _atomic("cas")(call, f, m, array, np.int64(0), old, value)


# ---- four elements at once -----------------------------------------------------------------------


def _quad(call, f, m, pointer, index):
    if not isinstance(pointer, (PointerView, ArrayView)):
        raise Misuse(f"load4 and store4 need a pointer or an array, not {describe(pointer)}")
    region, dtype, at = pointer.element((index,), f.wave.lanes, m, call.site)
    crooked = at & (min(4, max(1, 16 // dtype.itemsize)) - 1)  # one access, two of 8-byte elements
    if crooked.any() and (lane := offender(f.wave.lanes, m, crooked != 0)) is not None:
        raise fault(
            SimulationError,
            "four elements at once must begin at a multiple of 4",
            call.site,
            f.wave.lanes,
            lane,
            got=f"element {at if at.ndim == 0 else at[lane]}",
        )
    return region, dtype, at


def _load4(call, f, m, pointer, index):
    region, dtype, at = _quad(call, f, m, pointer, index)
    return tuple(region.load(dtype, at, m, call.site, width=4))


def _store4(call, f, m, pointer, index, a, b, c, d):
    region, dtype, at = _quad(call, f, m, pointer, index)
    region.store(
        dtype, at, [v.astype(dtype, copy=False) for v in (a, b, c, d)], m, call.site, width=4
    )


# ---- bits and numbers ----------------------------------------------------------------------------


def plain(function):
    """Wrap a function that needs only values, and mark it as such."""

    def run(call, f, m, *values):
        return function(*values)

    run.plain = function
    return run


def _unsigned(x):
    return x.astype(x.dtype.str.replace("i", "u")) if x.dtype.kind == "i" else x


def _clz(x):
    bits = x.dtype.itemsize * 8
    smeared = _unsigned(x)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            smeared = smeared | (smeared >> smeared.dtype.type(shift))
    return np.int32(bits) - np.bitwise_count(smeared).astype(np.int32)


def _ffs(x):
    u = _unsigned(x)
    lowest = u & (~u + u.dtype.type(1))
    position = np.bitwise_count(lowest - u.dtype.type(1)).astype(np.int32) + np.int32(1)
    return np.where(u == 0, np.int32(0), position)[()]


def _brev(x):
    size = x.dtype.itemsize
    octets = np.ascontiguousarray(np.atleast_1d(x)).view(np.uint8).reshape(-1, size)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, ::-1]
    out = np.packbits(bits, axis=1, bitorder="little").view(x.dtype).reshape(-1)
    return out if x.ndim else out[0]


def _fma(a, b, c):
    """Compute a * b + c, rounded once: through double precision for float32."""
    a, b, c = floating(a), floating(b), floating(c)
    dtype = np.result_type(a, b, c)
    if dtype.itemsize > 4:
        return (a.astype(np.longdouble) * b.astype(np.longdouble) + c).astype(dtype)
    return (a.astype(np.float64) * b.astype(np.float64) + c).astype(dtype)


def _selp(condition, a, b):
    condition = truth(condition)
    if condition.ndim == 0:
        return a if condition else b
    return merge(condition, a, b)


def _fence(call, f, m):
    f.wave.memory.fence(m)


FUNCTIONS = {
    **{
        f"atomic.{name}": _atomic(name.rstrip("_"))
        for name in ("add", "sub", "max", "min", "nanmax", "nanmin", "and_", "or_", "xor")
    },
    **{f"atomic.{name}": _atomic(name) for name in ("exch", "cas", "inc", "dec")},
    "atomic.compare_and_swap": _compare_and_swap,
    "atomic_add": _atomic("add"),
    "atomic_max": _atomic("max"),
    "atomic_min": _atomic("min"),
    "load4": _load4,
    "store4": _store4,
    "threadfence": _fence,
    "threadfence_block": _fence,
    "threadfence_system": _fence,
    "nanosleep": plain(lambda nanoseconds: None),
    "popc": plain(lambda x: np.bitwise_count(_unsigned(x)).astype(np.int32)),
    "clz": plain(_clz),
    "ffs": plain(_ffs),
    "brev": plain(_brev),
    "fma": plain(_fma),
    "selp": plain(_selp),
    "cbrt": plain(lambda x: np.cbrt(floating(x))),
    **barriers.FUNCTIONS,
    **warps.FUNCTIONS,
    **tensor.FUNCTIONS,
    **copies.FUNCTIONS,
    **{name: plain(function) for name, function in half.FUNCTIONS.items()},
}
