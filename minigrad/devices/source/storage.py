"""Narrow floats in memory, float32 in registers: pointers that convert at each load and store.

Numba's CPU has no such types. A kernel therefore sees float32: `p[i]` of a pointer made by
`narrow_at` widens two bytes, `p[i] = x` rounds to the nearest, to even between two.
"""

# pyright: reportUndefinedVariable=false

import operator

from numba.core.datamodel import PrimitiveModel
from numba.core.imputils import lower_builtin
from numba.extending import register_model

I2 = np.int16
i2_at = pointer_to(types.int16)
WORD = ir.IntType(16)


class Narrow(types.CPointer):
    """A pointer to narrow floats, which are float32 to a kernel.

    A subclass has the functions that widen a word of memory, and round a float32 or float64 to one:
    load(context, builder, word), store(context, builder, value, its type).
    """

    def __init__(self):
        self.dtype, self.addrspace = types.float32, None
        types.Type.__init__(self, f"{type(self).__name__}*")


@lower_builtin(operator.getitem, Narrow, types.Integer)
def _getitem(context, builder, signature, arguments):
    pointer, index = arguments
    return signature.args[0].load(context, builder, builder.load(builder.gep(pointer, [index])))


@lower_builtin(operator.setitem, Narrow, types.Integer, types.float32)
def _setitem(context, builder, signature, arguments):
    pointer, index, value = arguments
    word = signature.args[0].store(context, builder, value)
    builder.store(word, builder.gep(pointer, [index]))
    return context.get_dummy_value()


def narrow_at(kind):
    """Return address -> pointer of a subclass of Narrow."""

    @register_model(kind)
    class Model(PrimitiveModel):
        def __init__(self, manager, fe_type):
            super().__init__(manager, fe_type, WORD.as_pointer())

    @intrinsic
    def at(typing, address):
        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], WORD.as_pointer())

        return kind()(types.int64), code

    return at


def rounded_by(kind, to_odd):
    """Return the function that rounds a number to a narrow float, as float32."""

    @intrinsic
    def rounded(typing, x):
        def code(context, builder, signature, arguments):
            (value,), (own,) = arguments, signature.args
            if own == types.float64:
                value = context.compile_internal(
                    builder, to_odd.py_func, types.float32(own), arguments
                )
            else:
                value = context.cast(builder, value, own, types.float32)
            return kind.load(context, builder, kind.store(context, builder, value))

        return types.float32(types.unliteral(x)), code

    return rounded
