"""The calling thread's mode for subnormal numbers: bits of the processor's control register.

Only for x86-64. Flush-to-zero affects results, denormals-are-zero affects operands.
"""

# pyright: reportUndefinedVariable=false

from numba.core import cgutils

FLUSH = I8(0x8040)


def _control_register(name):
    """Return an intrinsic that accesses the SSE register through a word in memory."""

    @intrinsic
    def access(typing, word):
        def code(context, builder, signature, arguments):
            cell = cgutils.alloca_once_value(builder, arguments[0])
            pointer = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [pointer])
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [builder.bitcast(cell, pointer)])
            return builder.load(cell)

        return types.int32(types.int32), code

    return access


read = _control_register("llvm.x86.sse.stmxcsr")
write = _control_register("llvm.x86.sse.ldmxcsr")


@jit("i8()")
def get_mode():
    """Return the two bits."""
    return I8(read(I4(0))) & FLUSH


@jit("void(i8)")
def set_mode(bits):
    """Set the two bits and no others."""
    write(I4((I8(read(I4(0))) & ~FLUSH) | (bits & FLUSH)))
