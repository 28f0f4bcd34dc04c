"""Space for the sums of a few columns on the stack, and float64 sums within scratch memory.

A sum of many rows runs in blocks (`formulas/sums.py`): within a block in the kernel's type, over
all blocks in float64. On the stack LLVM knows that nobody else has a pointer to them.
"""

# pyright: reportUndefinedVariable=false

from numba.core import cgutils

SUMMED, COLUMNS = 512, 1024  # as BLOCK and COLUMNS of formulas/sums.py


def _on_stack(element):
    """Return () -> pointer to COLUMNS elements, the same at every call within a function."""

    @intrinsic
    def columns(typing):
        def code(context, builder, signature, arguments):
            kind = context.get_value_type(element)
            place = cgutils.alloca_once(builder, kind, size=COLUMNS)
            place.align = 64  # a cache line: no vector lies across two
            return place

        return types.CPointer(element)(), code

    return columns


columns_f4, columns_f8 = _on_stack(types.float32), _on_stack(types.float64)
columns_i4, columns_i8 = _on_stack(types.int32), _on_stack(types.int64)


@intrinsic
def doubles_at(typing, pointer, place):
    """Return a pointer to the float64 that begin at an element of a float pointer."""

    def code(context, builder, signature, arguments):
        at = builder.gep(arguments[0], [arguments[1]])
        return builder.bitcast(at, context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(pointer, types.int64), code


@intrinsic
def address_of(typing, pointer):
    """Return the address that a pointer holds."""

    def code(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], context.get_value_type(types.int64))

    return types.int64(pointer), code
