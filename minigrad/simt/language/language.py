"""The names that kernels use: `cuda.grid`, `atomic_add`, `load4` and so on.

The simulator or Numba's compiler gives them their meaning inside a kernel; outside they raise.
Kernels may also use the names of `from numba import cuda`.
"""

import difflib
from typing import Any

from minigrad.errors import SimulationError

_WORDS = """
grid gridsize threadIdx.x threadIdx.y threadIdx.z blockIdx.x blockIdx.y blockIdx.z
blockDim.x blockDim.y blockDim.z gridDim.x gridDim.y gridDim.z laneid warpsize
shared.array local.array const.array_like
syncthreads syncthreads_count syncthreads_and syncthreads_or syncwarp
shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync
ballot_sync any_sync all_sync eq_sync match_any_sync match_all_sync activemask lanemask_lt
threadfence threadfence_block threadfence_system nanosleep
atomic.add atomic.sub atomic.max atomic.min atomic.nanmax atomic.nanmin atomic.and_ atomic.or_
atomic.xor atomic.exch atomic.cas atomic.compare_and_swap atomic.inc atomic.dec
popc clz ffs brev fma selp cbrt
fp16.hadd fp16.hsub fp16.hmul fp16.hdiv fp16.hfma fp16.hneg fp16.habs fp16.hmax fp16.hmin
fp16.heq fp16.hne fp16.hgt fp16.hge fp16.hlt fp16.hle fp16.hexp fp16.hexp2 fp16.hexp10
fp16.hlog fp16.hlog2 fp16.hlog10 fp16.hsin fp16.hcos fp16.hsqrt fp16.hrsqrt fp16.hrcp
fp16.hfloor fp16.hceil fp16.htrunc fp16.hrint
atomic_add atomic_max atomic_min load4 store4
mma_f16 mma_bf16 mma_tf32 ldmatrix ldmatrix_trans cp_async cp_async_commit cp_async_wait
"""
PATHS = tuple(_WORDS.split())
_TAKES_NOTHING = ("syncthreads", "syncwarp", "activemask", "threadfence", "cp_async_commit")


def _plain(path):
    """Return a path without what CUDA C and common typing errors spell differently."""
    return path.replace(".", "").replace("_", "").lower()


def nearest(path):
    """Return the known paths most like an unknown one, best first: `atomicAdd` -> `atomic.add`."""
    known: dict[str, str] = {}
    for one in PATHS:
        known.setdefault(_plain(one), one)  # atomic.add, before the helper atomic_add
    return [known[k] for k in difflib.get_close_matches(_plain(path), known, n=3)]


def call_of(intrinsic):
    """Return a function's call as text, for advice."""
    path = intrinsic.path
    given = "1" if path.startswith("grid") else "" if path in _TAKES_NOTHING else "..."
    return f"cuda.{path}({given})"


class UnknownIntrinsicError(SimulationError, AttributeError):
    """An unknown name under `cuda`."""


class Intrinsic:
    """A name that only kernels can use; `path` is the part after `cuda.`."""

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return f"<cuda.{self.path}>" if self.path else "<the names of CUDA kernels>"

    def __call__(self, *args, **kwargs) -> Any:
        raise SimulationError(
            f"{self.path} was called outside of a kernel",
            fix="call it in a function that is launched: kernel[blocks, threads](...)",
        )

    def __getattr__(self, name) -> Any:
        if name.startswith("_"):  # what Python and notebooks look for
            raise AttributeError(name)
        raise UnknownIntrinsicError(
            f"the simulator has no cuda.{self.path}{'.' if self.path else ''}{name}",
            fix=f"there are: {', '.join(k for k in vars(self) if k != 'path') or 'no names in it'}",
        )

    def __getitem__(self, index) -> Any:
        return self()

    __setitem__ = __len__ = __iter__ = __getitem__
    __int__ = __index__ = __float__ = __bool__ = __call__


def _tree():
    root = Intrinsic("")
    for leaf in PATHS:
        here = root
        for part in leaf.split("."):
            path = f"{here.path}.{part}" if here.path else part
            here = here.__dict__.setdefault(part, Intrinsic(path))
    return root


cuda = _tree()
atomic_add, atomic_max, atomic_min = cuda.atomic_add, cuda.atomic_max, cuda.atomic_min
load4, store4 = cuda.load4, cuda.store4
mma_f16, mma_bf16 = cuda.mma_f16, cuda.mma_bf16
ldmatrix, ldmatrix_trans = cuda.ldmatrix, cuda.ldmatrix_trans
cp_async, cp_async_commit, cp_async_wait = cuda.cp_async, cuda.cp_async_commit, cuda.cp_async_wait
