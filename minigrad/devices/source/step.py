"""The parts that a compiled step's kernels share: barriers, ranges, sums of threads' results.

Several threads run the same step side by side. Each takes its range of a kernel; where one reads
what another has written, all meet at a barrier. They spin, since the wait is short, and after a
while yield to other threads of the machine.
"""

# pyright: reportUndefinedVariable=false

YIELD = types.ExternalFunction("minigrad_yield", types.int32())
SPINS = 4000  # about 20 microseconds


def step_jit(function):
    """Compile a function that only a step calls; one code for all sizes."""
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": OfParts}
    return general(njit(error_model="numpy", fastmath=FLAGS, nogil=True, **options)(function))


@intrinsic
def choose(typing, condition, a, b):
    """Return a if condition, else b, without a branch: both are already computed."""
    common = typing.unify_types(a, b)

    def code(context, builder, signature, arguments):
        c, x, y = arguments
        x, y = (context.cast(builder, v, t, common) for v, t in ((x, a), (y, b)))
        return builder.select(c, x, y)

    return common(types.boolean, a, b), code


@intrinsic
def add(typing, address, amount):
    """Add to a counter that all threads see; return what it was."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], word.as_pointer())
        amount = context.cast(builder, arguments[1], signature.args[1], types.int64)
        return builder.atomic_rmw("add", pointer, amount, "seq_cst")

    return types.int64(types.int64, amount), code


@step_jit
def arrive(address):
    """Add one to a counter that all threads see; return what it was."""
    return add(address, 1)


@intrinsic
def look(typing, address):
    """Return the value of a counter that all threads see."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], word.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), code


def read(kinds):
    """Return (table, code, place) -> a call's arguments, which lie in the list `code`.

    kinds: a letter for each: n for a number; a for an address, the index of an entry of the table
    and what to add to that.
    """

    @intrinsic
    def function(typing, table, code, place):
        def build(context, builder, signature, arguments):
            table, code, place = arguments
            values, next_at = [], 0

            def load(pointer, index):
                return builder.load(builder.gep(pointer, [index]))

            def cell():
                nonlocal next_at
                next_at += 1
                return load(code, builder.add(place, ir.IntType(64)(next_at - 1)))

            for kind in kinds:
                if kind == "n":
                    values.append(cell())
                else:
                    base = load(table, cell())
                    values.append(builder.add(base, cell()))
            return context.make_tuple(builder, signature.return_type, values)

        return types.UniTuple(types.int64, len(kinds))(table, code, types.int64), build

    return function


@step_jit
def meet(sync, count):
    """Wait until the counter at the address `sync` has `count` arrivals, including this one."""
    arrive(sync)
    spins = 0
    while look(sync) < count:
        spins += 1
        if spins > SPINS:
            YIELD()


@step_jit
def first(extent, grain, t, T):
    """Return where the range of thread t of T begins: a multiple of grain, or the end."""
    cut = (extent * t // T + grain - 1) // grain * grain
    return extent if t == T or cut > extent else cut


@step_jit
def total(parts, T, count):
    """Return the sum of T partial sums (float64, a cache line apart) divided by a count."""
    result = F8(0)
    for t in range(T):
        result += f8_at(parts)[8 * t]
    return result / count


@step_jit
def add_columns(x, step, T, out, stride, n, count):
    """Set out[j * stride] to the sum of x[t * step + j] over threads t, over a count; j < n."""
    for j in range(n):
        value = x[j]
        for t in range(1, T):
            value += x[t * step + j]
        out[j * stride] = value / count


def _first_nonfinite(pointer_at):
    @step_jit
    def function(at, n):
        """Return the first place of a NaN or an infinity, or -1."""
        x = pointer_at(at)
        for j in range(n):
            rest = x[j] - x[j]
            if rest != rest:
                return j
        return I8(-1)

    return function


first_nonfinite_f4, first_nonfinite_f8 = map(_first_nonfinite, (f4_at, f8_at))
