"""The larger and the smaller of two numbers, for reductions: instructions that LLVM vectorizes."""

# pyright: reportUndefinedVariable=false


def _of_two(of_floats, of_ints):
    """Return an intrinsic of two numbers of one type.

    NaN wins. Between 0 and -0 either may win (`nsz`): telling them apart takes twice the time.
    Where one of the two comes from memory and the result goes there, it stands second: LLVM would
    else write only what changes, by masked stores, which many processors are slow at.
    """

    @intrinsic
    def function(typing, a, b):
        def code(context, builder, signature, arguments):
            t, is_int = arguments[0].type, isinstance(a, types.Integer)
            name, flags = (of_ints, ()) if is_int else (of_floats, ("nsz",))
            kind = ir.FunctionType(t, [t, t])
            intrinsic_of = builder.module.declare_intrinsic(name, [t], kind)
            return builder.call(intrinsic_of, arguments, fastmath=flags)

        return a(a, b), code

    return function


largest_of = _of_two("llvm.maximum", "llvm.smax")
smallest_of = _of_two("llvm.minimum", "llvm.smin")
