"""bfloat16 in memory, float32 in registers; see storage.py, and rounding.py for the formulas."""

# pyright: reportUndefinedVariable=false


class Brain(Narrow):
    """A pointer to bfloat16."""

    @staticmethod
    def load(context, builder, word):
        return context.compile_internal(
            builder, f4_of_b2.py_func, types.float32(types.uint16), [word]
        )

    @staticmethod
    def store(context, builder, value):
        signature = types.uint32(types.float32)
        bits = context.compile_internal(builder, b2_of_f4.py_func, signature, [value])
        return builder.trunc(bits, WORD)


b2_at = narrow_at(Brain)
B2 = rounded_by(Brain, to_odd)
