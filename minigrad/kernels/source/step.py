"""What the kernels of a compiled step share: barriers, ranges, products in parts, denormals.

Several threads run the same step side by side. Each takes its range of a kernel; where one reads
what another has written, all meet at a barrier. They spin, since the wait is short, and after a
while let other threads of the machine go first.
"""

# pyright: reportUndefinedVariable=false

import llvmlite.ir as ir
from numba.core import cgutils

YIELD = types.ExternalFunction("minigrad_yield", types.int32())
SPINS = 4000  # about 20 microseconds


def step_jit(function):
    """For functions that only a step calls; one code for all sizes."""
    wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return general(njit(error_model="numpy", fastmath=FLAGS, nogil=True, **wrappers)(function))


def _of_two(name):
    """A floating point intrinsic of two arguments; NaN wins, and LLVM makes vectors of it."""

    @intrinsic
    def function(typing, a, b):
        def code(context, builder, signature, arguments):
            t = arguments[0].type
            kind = ir.FunctionType(t, [t, t])
            return builder.call(builder.module.declare_intrinsic(name, [t], kind), arguments)

        return a(a, b), code

    return function


largest_of, smallest_of = _of_two("llvm.maximum"), _of_two("llvm.minimum")


@intrinsic
def choose(typing, condition, a, b):
    """a if condition, else b: both are there already, so no branch is wanted."""
    common = typing.unify_types(a, b)

    def code(context, builder, signature, arguments):
        c, x, y = arguments
        x, y = (context.cast(builder, v, t, common) for v, t in ((x, a), (y, b)))
        return builder.select(c, x, y)

    return common(types.boolean, a, b), code


def _control_register(name):
    """Access to the processor's floating point modes."""

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


read_modes = _control_register("llvm.x86.sse.stmxcsr")
write_modes = _control_register("llvm.x86.sse.ldmxcsr")


@intrinsic
def arrive(typing, address):
    """Adds one to a counter that all threads see."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], word.as_pointer())
        return builder.atomic_rmw("add", pointer, word(1), "seq_cst")

    return types.int64(types.int64), code


@intrinsic
def look(typing, address):
    """What a counter that all threads see holds now."""

    def code(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = builder.inttoptr(arguments[0], word.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), code


@step_jit
def meet(sync, count):
    """Waits until `count` arrivals were counted at the address `sync`, this one included."""
    arrive(sync)
    spins = 0
    while look(sync) < count:
        spins += 1
        if spins > SPINS:
            YIELD()


@step_jit
def first(extent, grain, t, T):
    """Where the range of thread t of T begins: a multiple of grain, or the end."""
    cut = (extent * t // T + grain - 1) // grain * grain
    return extent if t == T or cut > extent else cut


@step_jit
def product_f4(t, T, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, more, batch, sa, sb, sc):
    """The part of thread t in a float32 product: batches, or rows, or columns of C.

    more: -1 to add to what C holds, else 0. Without a step of its own in C, a batch is added up:
    then it is not cut.
    """
    if batch >= T and sc != 0:
        low, high = batch * t // T, batch * (t + 1) // T
        if high > low:
            gemm_f4(a + 4 * low * sa, b + 4 * low * sb, c + 4 * low * sc, m, n, k, lda, ldb, ldc,
                    ta, tb, more, high - low, sa, sb, sc)  # fmt: skip
    elif m >= n:
        low, high = first(m, 16, t, T), first(m, 16, t + 1, T)
        if high > low:
            gemm_f4(a + 4 * low * (1 if ta else lda), b, c + 4 * low * ldc, high - low, n, k, lda,
                    ldb, ldc, ta, tb, more, batch, sa, sb, sc)  # fmt: skip
    else:
        low, high = first(n, 16, t, T), first(n, 16, t + 1, T)
        if high > low:
            gemm_f4(a, b + 4 * low * (ldb if tb else 1), c + 4 * low, m, high - low, k, lda, ldb,
                    ldc, ta, tb, more, batch, sa, sb, sc)  # fmt: skip


@step_jit
def product_f8(t, T, a, b, c, m, n, k, lda, ldb, ldc, ta, tb, more, batch, sa, sb, sc):
    """As product_f4, in float64."""
    if batch >= T and sc != 0:
        low, high = batch * t // T, batch * (t + 1) // T
        if high > low:
            gemm_f8(a + 8 * low * sa, b + 8 * low * sb, c + 8 * low * sc, m, n, k, lda, ldb, ldc,
                    ta, tb, more, high - low, sa, sb, sc)  # fmt: skip
    elif m >= n:
        low, high = first(m, 16, t, T), first(m, 16, t + 1, T)
        if high > low:
            gemm_f8(a + 8 * low * (1 if ta else lda), b, c + 8 * low * ldc, high - low, n, k, lda,
                    ldb, ldc, ta, tb, more, batch, sa, sb, sc)  # fmt: skip
    else:
        low, high = first(n, 16, t, T), first(n, 16, t + 1, T)
        if high > low:
            gemm_f8(a, b + 8 * low * (ldb if tb else 1), c + 8 * low, m, high - low, k, lda, ldb,
                    ldc, ta, tb, more, batch, sa, sb, sc)  # fmt: skip


@step_jit
def total(parts, T, count):
    """The sum of T partial sums (float64, a cache line apart), over a count."""
    result = F8(0)
    for t in range(T):
        result += f8_at(parts)[8 * t]
    return result / count


@step_jit
def add_columns_f4(scratch, step, T, out, stride, n, count):
    """out[j] = the sum over T threads of scratch, `step` elements apart, over a count."""
    x, y = f4_at(scratch), f4_at(out)
    for j in range(n):
        value = F4(0)
        for t in range(T):
            value += x[t * step + j]
        y[j * stride] = value / F4(count)


@step_jit
def add_columns_f8(scratch, step, T, out, stride, n, count):
    """As add_columns_f4, in float64."""
    x, y = f8_at(scratch), f8_at(out)
    for j in range(n):
        value = F8(0)
        for t in range(T):
            value += x[t * step + j]
        y[j * stride] = value / F8(count)


@step_jit
def first_nonfinite_f4(at, n):
    """The first place of a NaN or an infinity, or -1."""
    x = f4_at(at)
    for j in range(n):
        if x[j] - x[j] != F4(0):
            return j
    return I8(-1)


@step_jit
def first_nonfinite_f8(at, n):
    """As first_nonfinite_f4, in float64."""
    x = f8_at(at)
    for j in range(n):
        if x[j] - x[j] != F8(0):
            return j
    return I8(-1)
