"""float16 in memory, float32 in registers; see storage.py.

Each conversion is one instruction where the processor has it (F16C of x86-64, all of ARM's 64
bits); LLVM would elsewhere call a function that nobody links. There, integers do the same to the
last bit.
"""

# pyright: reportUndefinedVariable=false

from numba.core.registry import cpu_target

_HALF, _FLOAT = ir.HalfType(), ir.FloatType()


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
        size = U4(0x7F800000) | U4(fraction << U4(13)) | quiet
    elif exponent == U4(0):  # subnormal: a multiple of 2^-24, exact in float32
        size = U4(F4(F4(I4(fraction)) * F4(2.0**-24)).view(I4))
    else:
        size = U4((exponent + U4(112)) << U4(23)) | U4(fraction << U4(13))
    return I4(U4(sign | size)).view(F4)


def _narrowed(x):
    """Return the bits of the half nearest to a float32, by integers."""
    word = U4(F4(x).view(I4))
    sign, size = U4(U4(word >> U4(16)) & U4(0x8000)), U4(word & U4(0x7FFFFFFF))
    if size > U4(0x7F800000):
        half = U4(0x7E00) | U4(U4(size >> U4(13)) & U4(0x3FF))
    elif size >= U4(0x47800000):  # 65536; what lies below may still round to infinity
        half = U4(0x7C00)
    elif size < U4(0x38800000):  # 2^-14: beside 0.5, float32 has the steps of subnormal halves
        half = U4(F4(I4(size).view(F4) + F4(0.5)).view(I4)) - U4(0x3F000000)
    else:
        even = U4(U4(size >> U4(13)) & U4(1))
        half = U4(U4(size - U4(112 << 23)) + U4(0xFFF) + even) >> U4(13)
    return U4(sign | half)


if _has_instructions():

    def _load(context, builder, word):
        return builder.fpext(builder.bitcast(word, _HALF), _FLOAT)

    def _store(context, builder, value):
        return builder.bitcast(builder.fptrunc(value, _HALF), WORD)

else:

    def _load(context, builder, word):
        bits = builder.zext(word, ir.IntType(32))
        signature = types.float32(types.uint32)
        return context.compile_internal(builder, _widened, signature, [bits])

    def _store(context, builder, value):
        signature = types.uint32(types.float32)
        return builder.trunc(context.compile_internal(builder, _narrowed, signature, [value]), WORD)


class Half(Narrow):
    """A pointer to float16."""

    load, store = staticmethod(_load), staticmethod(_store)


f2_at = narrow_at(Half)
F2 = rounded_by(Half, to_odd)
