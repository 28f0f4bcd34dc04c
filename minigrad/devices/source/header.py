"""The beginning of every generated kernel file: pointers, types, flags."""

import math  # noqa: F401 - for the kernels that follow this text

import llvmlite.ir as ir  # noqa: F401 - as above
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from minigrad.devices.called_by_symbol import CalledBySymbol  # noqa: F401
from minigrad.devices.numba_pipelines import OfBodies, OfParts, kept_jit

F4, F8 = np.float32, np.float64
I4, I8, U1, U4, U8 = np.int32, np.int64, np.uint8, np.uint32, np.uint64
# Kernels compute what their text says, so that a fused kernel gives NaN, infinities and zeros where
# the kernels that it replaces give them. LLVM may only skip the rounding of a product to which
# something is added (`contract`). It must not regroup products and sums (`reassoc`: 0 * x * x
# would be NaN for a large x), estimate quotients (`arcp`: 1 / 0 would be NaN), or forget the sign
# of a zero (`nsz`). Sums over an array use `plus`: in the text's order they are no vector code.
FLAGS = {"contract"}


def jit(signature):
    """Compile at once for one signature, without the GIL; keep the code beside this file."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": FLAGS, "no_cfunc_wrapper": True}
    return kept_jit(signature, **options)


def general(function):
    """Make callers of a function use its int64 code where they pass a constant.

    Numba would compile it again for each constant: its types tell 2 from 3.
    """
    template = function.get_call_template

    def get_call_template(args, kws):
        names = {name: types.unliteral(a) for name, a in kws.items()}
        return template([types.unliteral(a) for a in args], names)

    function.get_call_template = get_call_template
    return function


inline_jit = njit(inline="always", error_model="numpy", fastmath=FLAGS)
# For functions whose accuracy depends on the order of their operations. LLVM inlines them, and each
# instruction keeps these flags; with no flags stated Numba would hand them those of the caller.
exact_jit = njit(
    error_model="numpy",
    fastmath={"contract"},
    forceinline=True,
    nogil=True,
    no_cfunc_wrapper=True,  # only compiled code calls these: without wrappers they compile faster
    no_cpython_wrapper=True,
    pipeline_class=OfParts,
)

# For the body of a kernel: a function of typed pointers that a kernel made by `jit` calls with
# f4_at(address) and so on. LLVM would else compare all the arrays at run time before it takes the
# vector loop, and does not even write that loop when they are many. An array that is read and
# written has to be one argument.
restrict_jit = njit(
    error_model="numpy",
    fastmath=FLAGS,
    nogil=True,
    no_cfunc_wrapper=True,
    no_cpython_wrapper=True,
    pipeline_class=OfBodies,
)


def pointer_to(element):
    """Return address -> typed pointer; p[i] is one load or store, without bounds or wrap-around."""

    @intrinsic
    def at(typing, address):
        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), code

    return at


f4_at, f8_at = pointer_to(types.float32), pointer_to(types.float64)
i4_at, i8_at = pointer_to(types.int32), pointer_to(types.int64)
u1_at, u4_at = pointer_to(types.uint8), pointer_to(types.uint32)


def _reordered(instruction):
    """Return an operation of floats that LLVM may reorder with others like it: for reductions."""

    @intrinsic
    def function(typing, a, b):
        def code(context, builder, signature, arguments):
            x, y = (
                context.cast(builder, v, t, signature.return_type)
                for v, t in zip(arguments, signature.args, strict=True)
            )
            return getattr(builder, instruction)(x, y, flags=("contract", "reassoc"))

        common = typing.unify_types(a, b)
        return common(a, b), code

    return function


plus, times = _reordered("fadd"), _reordered("fmul")
