"""Compiles a kernel's function to one GPU's machine code; only this file knows a CUDA compiler.

Numba (the package numba-cuda) turns the function into PTX, nvJitLink turns that into a *cubin*:
code for one compute capability, such as (9, 0), that a driver loads without compiling. Neither
needs a GPU or a driver. The names that `source/gpu_cuda.py` takes from here (`cuda`, `types`, ...)
are imported at their first use, which takes half a second.
"""

import functools
import importlib.util
import re
import threading
import types as python_types
from dataclasses import dataclass

from minigrad.array.dtypes import WORDS
from minigrad.devices.loader import LONGEST_COMPILATION, hold_over_forks
from minigrad.devices.numba_errors import explained
from minigrad.errors import KernelError, MissingLibraryError
from minigrad.memory.forks import Held, hold
from minigrad.memory.interrupts import block

INSTALL = 'pip install "minigrad[cuda]" (CUDA 13), or "minigrad[cuda12]" for an older driver'
COMPILES = (
    "loops, numbers, arrays and device functions compile; lists, dicts, strings and most "
    "libraries do not"
)
PACKAGES = {"numba_cuda": "numba-cuda", "cuda": "cuda-core"}  # by what is imported

_lock = threading.RLock()  # held while Numba is patched to compile a kernel
hold_over_forks()
hold(Held(_lock, LONGEST_COMPILATION))


@dataclass(frozen=True)
class Cubin:
    """A kernel's machine code for one compute capability, with the assembler's facts about it.

    Attributes:
        code: the cubin, an ELF file.
        name: the name of the kernel in it.
        capability: (major, minor) of the GPUs that run it.
        registers: per thread; a multiprocessor has 65,536.
        spills: bytes stored and loaded for lack of registers.
        stack: bytes of local memory per thread: spills, local arrays.
        shared: bytes of static shared memory per block.
        barriers: number of distinct barriers used.
        doubles: how often `.f64` occurs in the PTX: float64 arithmetic, loads, stores.
    """

    code: bytes
    name: str
    capability: tuple
    registers: int
    spills: int
    stack: int
    shared: int
    barriers: int
    doubles: int

    @property
    def most_threads(self):
        """Return the largest block, in whole warps, that a multiprocessor's registers allow."""
        each_warp = 32 * -(-self.registers // 8) * 8  # a warp gets registers in units of 256
        return min(1024, 65536 // max(each_warp, 1) * 32)


def missing():
    """Return the first package of the CUDA compiler that is not installed, or None."""
    for module, package in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            return package
    return None


@functools.cache
def names():
    """Return the compiler's modules and classes, imported once."""
    absent = missing()
    if absent is not None:
        raise MissingLibraryError(
            "compiling CUDA kernels: a package is missing", absent, f"{INSTALL}; or device='simt'"
        )
    import numpy as np

    if not hasattr(np, "row_stack"):  # NumPy 2.5 dropped it; numba-cuda asks for it by name
        np.__dict__["row_stack"] = np.vstack
    from llvmlite import ir
    from numba import config, cuda, types

    if vars(config)["ENABLE_CUDASIM"]:
        raise MissingLibraryError(
            "compiling CUDA kernels: Numba's own simulator is switched on instead of its compiler",
            "NUMBA_ENABLE_CUDASIM=1",
            "unset that variable and start Python again; minigrad's simulator is device='simt'",
        )
    from numba.cuda import compiler, dispatcher, nvvmutils
    from numba.cuda.core.errors import NumbaTypeError  # pyright: ignore[reportMissingImports] - an extra
    from numba.cuda.extending import intrinsic  # pyright: ignore[reportMissingImports] - an extra

    return {
        "NumbaTypeError": NumbaTypeError,
        "compiler": compiler,
        "cuda": cuda,
        "dispatcher": dispatcher,
        "intrinsic": intrinsic,
        "ir": ir,
        "nvvmutils": nvvmutils,
        "types": types,
    }


LAZY = ("NumbaTypeError", "compiler", "cuda", "dispatcher", "intrinsic", "ir", "nvvmutils", "types")


def __getattr__(name):
    if name in LAZY:
        return names()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@block
def _target(capability):
    """Tell Numba which GPU to compile device functions for; it would ask the driver."""
    with _lock:
        dispatcher = names()["dispatcher"]
        asked = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: python_types.SimpleNamespace(
            compute_capability=capability
        )
        try:
            yield
        finally:
            dispatcher.get_current_device = asked


def numba_types(signature):
    """Return the argument types of a signature: one word each, `f4*` for a pointer."""
    types = names()["types"]
    elements = {word: getattr(types, kind.__name__) for word, kind in WORDS.items()}
    pointers = {f"{word}*": types.CPointer(element) for word, element in elements.items()}
    return [(elements | pointers)[word] for word in signature.split()]


def array_type(dtype, ndim, is_contiguous):
    """Return Numba's type of an array argument; dtype: NumPy's."""
    from numba.np.numpy_support import from_dtype  # imported late, as in `names`

    types = names()["types"]
    return types.Array(from_dtype(dtype), ndim, "C" if is_contiguous else "A")


def compile_function(function, arguments, capabilities, bounds=None):
    """Compile a kernel's function and return its Cubins, one for each kind of GPU.

    Args:
        function: a Python function that uses the names of `source/gpu_cuda.py` or `numba.cuda`.
        arguments: Numba types, one per argument.
        capabilities: (major, minor) of each kind.
        bounds: the largest number of threads per block, or None.

    Raises:
        KernelError: if Numba or the assembler cannot compile it; names the kernel's line.
    """
    known = names()
    try:
        with _target(capabilities[0]):
            # cuda.compile in two steps: the first (type inference, LLVM code) is most of the work
            # and the same for all GPUs
            library, _ = known["compiler"]._compile_pyfunc_with_fixup(
                function,
                known["types"].void(*arguments),
                device=False,
                cc=capabilities[0],
                abi="numba",
                launch_bounds=bounds,
            )
            texts = [library.get_asm_str(cc=capability) for capability in capabilities]
    except MissingLibraryError:
        raise
    except Exception as error:  # Numba's own errors, and others that it lets through
        raise explained(error, function, arguments, COMPILES, " for a GPU") from None
    name = function.__name__
    return [
        link(ptx, capability, name) for ptx, capability in zip(texts, capabilities, strict=True)
    ]


def link(ptx, capability, called="kernel"):
    """Link PTX text that contains one kernel and return its Cubin."""
    core = importlib.import_module("cuda.core")  # its names depend on the CUDA that is installed
    entry = re.search(r"\.entry\s+([\w$]+)", ptx)
    assert entry is not None, "PTX of a kernel has an entry"
    _check_alignment(ptx, called)
    options = core.LinkerOptions(arch="sm_{}{}".format(*capability), ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=options)
    try:
        code = bytes(linker.link("cubin").code)
    except Exception as error:  # an error of nvJitLink's
        log = linker.get_error_log().strip() or str(error)
        raise KernelError(f"kernel {called}: the assembler refused it", log) from None
    log = linker.get_info_log()
    return Cubin(
        code=code,
        name=entry.group(1),
        capability=tuple(capability),
        registers=_number(r"Used (\d+) registers", log),
        spills=sum(map(int, re.findall(r"(\d+) bytes spill", log))),
        stack=_number(r"(\d+) bytes stack frame", log),
        shared=sum(map(int, re.findall(r"\.shared .*\[(\d+)\];", ptx))),
        barriers=_number(r"used (\d+) barriers", log),
        doubles=ptx.count(".f64"),
    )


def _check_alignment(ptx, called):
    """Check that shared arrays with vector accesses are aligned to 16 bytes, or a GPU faults."""
    alignments = [int(n) for n in re.findall(r"\.shared \.align (\d+)", ptx)]
    if re.search(r"(ld|st)\.shared\.v[24]", ptx) and min(alignments, default=16) < 16:
        raise KernelError(
            f"kernel {called}: shared memory is read or written four elements at once, and an "
            f"array of it lies on a multiple of {min(alignments)} bytes only",
            fix="cuda.shared.array(shape, dtype, alignment=16), of every shared array",
        )


def _number(pattern, log):
    match = re.search(pattern, log)
    if match is None:
        raise KernelError(f"the assembler's report lacks {pattern!r}", log)
    return int(match.group(1))
