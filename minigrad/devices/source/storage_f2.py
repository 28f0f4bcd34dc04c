"""float16 in memory, float32 in registers: a pointer that converts at each load and store.

Numba's CPU has no float16. A kernel therefore sees float32: `p[i]` of an `f2_at` pointer widens two
bytes, `p[i] = x` rounds to the nearest, to even between two. Both are one instruction where the
processor has it (F16C of x86-64, all of ARM's 64 bits); LLVM would elsewhere call a function that
nobody links. There, integers do the same to the last bit.
"""

# pyright: reportUndefinedVariable=false

import operator

from numba.core.datamodel import PrimitiveModel
from numba.core.imputils import lower_builtin
from numba.core.registry import cpu_target
from numba.extending import register_model

I2 = np.int16
i2_at = pointer_to(types.int16)

_WORD, _HALF, _FLOAT = ir.IntType(16), ir.HalfType(), ir.FloatType()


def _has_instructions():
    """Return whether the processor that Numba compiles for converts half-precision numbers."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return "+f16c" in features or triple.startswith(("aarch64", "arm64"))


def _widened(bits):
    """Return the float32 of a half's bits, by integers."""
    sign, exponent, fraction = U4((bits & U4(0x8000)) << U4(16)), bits >> U4(10), bits & U4(0x3FF)
    exponent &= U4(31)
    if exponent == U4(31):
        quiet = U4(0x400000) if fraction != U4(0) else U4(0)
        found = U4(0x7F800000) | U4(fraction << U4(13)) | quiet
    elif exponent == U4(0):  # subnormal: a multiple of 2^-24, exact in float32
        found = U4(F4(F4(I4(fraction)) * F4(2.0**-24)).view(I4))
    else:
        found = U4((exponent + U4(112)) << U4(23)) | U4(fraction << U4(13))
    return I4(U4(sign | found)).view(F4)


def _narrowed(x):
    """Return the bits of the half nearest to a float32, by integers."""
    word = U4(F4(x).view(I4))
    sign, size = U4(U4(word >> U4(16)) & U4(0x8000)), U4(word & U4(0x7FFFFFFF))
    if size > U4(0x7F800000):
        found = U4(0x7E00) | U4(U4(size >> U4(13)) & U4(0x3FF))
    elif size >= U4(0x47800000):  # 65536; what lies below may still round to infinity
        found = U4(0x7C00)
    elif size < U4(0x38800000):  # 2^-14: beside 0.5, float32 has the steps of subnormal halves
        found = U4(F4(I4(size).view(F4) + F4(0.5)).view(I4)) - U4(0x3F000000)
    else:
        even = U4(U4(size >> U4(13)) & U4(1))
        found = U4(U4(size - U4(112 << 23)) + U4(0xFFF) + even) >> U4(13)
    return U4(sign | found)


def _odd(x):
    """Return a float64 as float32, its last bit 1 if it is inexact: then a half rounds once."""
    near = F4(x)
    if F8(near) == x or x != x:
        return near
    word = near.view(I4)
    if abs(F8(near)) > abs(x):
        word -= I4(1)
    return I4(word | I4(1)).view(F4)


if _has_instructions():

    def _load(context, builder, word):
        return builder.fpext(builder.bitcast(word, _HALF), _FLOAT)

    def _store(context, builder, value):
        return builder.bitcast(builder.fptrunc(value, _HALF), _WORD)

else:

    def _load(context, builder, word):
        bits = builder.zext(word, ir.IntType(32))
        signature = types.float32(types.uint32)
        return context.compile_internal(builder, _widened, signature, [bits])

    def _store(context, builder, value):
        signature = types.uint32(types.float32)
        return builder.trunc(
            context.compile_internal(builder, _narrowed, signature, [value]), _WORD
        )


class Halves(types.CPointer):
    """A pointer to halves, whose elements are float32 to a kernel."""

    def __init__(self):
        self.dtype, self.addrspace = types.float32, None
        types.Type.__init__(self, "float16*")


@register_model(Halves)
class _Model(PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, _WORD.as_pointer())


@lower_builtin(operator.getitem, Halves, types.Integer)
def _getitem(context, builder, signature, arguments):
    pointer, index = arguments
    return _load(context, builder, builder.load(builder.gep(pointer, [index])))


@lower_builtin(operator.setitem, Halves, types.Integer, types.float32)
def _setitem(context, builder, signature, arguments):
    pointer, index, value = arguments
    builder.store(_store(context, builder, value), builder.gep(pointer, [index]))
    return context.get_dummy_value()


@intrinsic
def f2_at(typing, address):
    """Return the pointer at an address."""

    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], _WORD.as_pointer())

    return Halves()(types.int64), code


@intrinsic
def F2(typing, x):
    """Return a number rounded to a half, as float32."""

    def code(context, builder, signature, arguments):
        (value,), (kind,) = arguments, signature.args
        if kind == types.float64:
            signature = types.float32(kind)
            value = context.compile_internal(builder, _odd, signature, arguments)
        else:
            value = context.cast(builder, value, kind, types.float32)
        return _load(context, builder, _store(context, builder, value))

    return types.float32(types.unliteral(x)), code
