"""Tensor cores and asynchronous copies for Numba's CUDA target, from compute capability 8.0.

Kernels of one's own call these as `cuda.mma_f16`, ...; the simulator's own are in
`simt/machine/tensor.py` and `simt/language/copies.py`, and docs/simt.md says what they do. Memory
that they read or write 16 bytes at once must be aligned: the comments in the PTX name the
instruction that `compiler.link` looks for, and refuses without `alignment=16`.
"""

# pyright: reportUndefinedVariable=false

from numba.cuda import cgutils

from minigrad.devices.gpu.compiler import dispatcher

HALF, WORD, ADDRESS = ir.IntType(16), ir.IntType(32), ir.IntType(64)
WIDE = "// 16 bytes, as {}.shared.v4"


def check_capability(name):
    """Raise for GPUs that have none of these instructions: when compiling, as types are kept."""
    capability = dispatcher.get_current_device().compute_capability
    if capability < (8, 0):
        raise NumbaTypeError(
            f"{name}: wanted a GPU of compute capability 8.0 and above, got {capability}"
        )


def assembly(builder, result, arguments, text, constraints):
    """Call PTX text, which the compiler must not move over accesses to memory; return its result.

    arguments: IR values; constraints: LLVM's, those of the result first.
    """
    kind = ir.FunctionType(result, [x.type for x in arguments])
    asm = ir.InlineAsm(kind, text, ",".join([*constraints, "~{memory}"]), side_effect=True)
    return builder.call(asm, arguments)


def four(kind):
    """Return the type of PTX's results in four registers."""
    return ir.LiteralStructType([kind] * 4)


def packed(builder, values):
    """Return 32-bit registers, each with two elements of 16 bits, the first in the low half."""
    words = []
    for k in range(0, len(values), 2):
        pair = ir.Constant(ir.VectorType(HALF, 2), ir.Undefined)
        for e in (0, 1):
            pair = builder.insert_element(pair, values[k + e], ir.Constant(WORD, e))
        words.append(builder.bitcast(pair, WORD))
    return words


def unpacked(builder, registers):
    """Return the elements of 16 bits in registers: the inverse of `packed`."""
    pairs = [builder.bitcast(x, ir.VectorType(HALF, 2)) for x in registers]
    return [builder.extract_element(x, ir.Constant(WORD, e)) for x in pairs for e in (0, 1)]


def as_tf32(builder, values):
    """Return the bits of float32 numbers, rounded to TF32."""
    kind = ir.FunctionType(WORD, [ir.FloatType()])
    text = "cvt.rna.tf32.f32 $0, $1;"
    return [builder.call(ir.InlineAsm(kind, text, "=r,f"), [x]) for x in values]


def mma(name, shape, word, dtypes, counts, registers):
    """Make a product (a, b, c) -> a @ b + c of fragments: tuples of elements.

    Args:
        shape, word: of the PTX instruction: m16n8k16, f16.
        dtypes: Numba's, one of which a and b have; counts: how many elements a lane holds of each.
        registers: makes 32-bit registers of them.
    """

    def check(given, what, count, wanted):
        if not isinstance(given, types.UniTuple) or (
            given.count != count or given.dtype not in wanted
        ):
            raise NumbaTypeError(
                f"{name}: {what} is a tuple of {count} numbers of {wanted[0]}, got {given}"
            )

    def typed(typing, a, b, c):
        check(a, "a", counts[0], dtypes)
        check(b, "b", counts[1], dtypes)
        check(c, "c", 4, (types.float32,))

        def code(context, builder, signature, arguments):
            check_capability(name)
            left, right, total = (cgutils.unpack_tuple(builder, x) for x in arguments)
            left, right = registers(builder, left), registers(builder, right)
            places = [f"${k}" for k in range(4, 8 + len(left) + len(right))]
            lists = places[: len(left)], places[len(left) : -4], places[-4:]
            text = f"mma.sync.aligned.{shape}.row.col.f32.{word}.{word}.f32 {{$0, $1, $2, $3}}, "
            text += ", ".join(f"{{{', '.join(some)}}}" for some in lists) + ";"
            constraints = ["=f"] * 4 + ["r"] * (len(left) + len(right)) + ["f"] * 4
            given = [*left, *right, *total]
            result = assembly(builder, four(ir.FloatType()), given, text, constraints)
            return context.make_tuple(
                builder, signature.return_type, cgutils.unpack_tuple(builder, result)
            )

        return c(a, b, c), code

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


mma_f16 = mma("mma_f16", "m16n8k16", "f16", (types.float16,), (8, 4), packed)
mma_bf16 = mma("mma_bf16", "m16n8k16", "bf16", (types.uint16, types.int16), (8, 4), packed)
mma_tf32 = mma("mma_tf32", "m16n8k8", "tf32", (types.float32,), (4, 2), as_tf32)


def whole_index(array, index, what):
    """Return the type of an index as the intrinsics take it: int64, or a tuple of them."""
    axes = array.ndim if isinstance(array, types.Array) else 1
    count = len(index) if isinstance(index, types.BaseTuple) else 1
    if count != axes:
        raise NumbaTypeError(f"{what}: wanted one index for each of {axes} axes, got {count}")
    return types.UniTuple(types.int64, count) if isinstance(index, types.BaseTuple) else types.int64


def place(context, builder, kind, value, index):
    """Return the address of an element of an array or pointer. kind: its type; index: IR value."""
    if not isinstance(kind, types.Array):
        return builder.gep(value, [index])
    array = context.make_array(kind)(context, builder, value)
    is_tuple = not isinstance(index.type, ir.IntType)
    indices = cgutils.unpack_tuple(builder, index) if is_tuple else [index]
    return cgutils.get_item_pointer(context, builder, kind, array, indices, wraparound=True)


def shared_address(builder, address):
    """Return the 32-bit address in shared memory, as PTX wants it."""
    octet = ir.IntType(8)
    here = builder.bitcast(address, octet.as_pointer())
    return builder.ptrtoint(builder.addrspacecast(here, octet.as_pointer(3)), WORD)


def matrices(name, more):
    """Make ldmatrix (shared array, index) -> 8 elements, of four 8 x 8 matrices."""

    def typed(typing, tile, index):
        if pointee(tile, name).bitwidth != 16:
            raise NumbaTypeError(f"{name}: wanted elements of two bytes, got {tile.dtype}")

        def code(context, builder, signature, arguments):
            check_capability(name)
            address = place(context, builder, signature.args[0], *arguments)
            text = f"ldmatrix.sync.aligned.m8n8.x4{more}.shared.b16 {{$0, $1, $2, $3}}, [$4]; "
            given = [shared_address(builder, address)]
            text += WIDE.format("ld")
            result = assembly(builder, four(WORD), given, text, ["=r"] * 4 + ["r"])
            elements = unpacked(builder, cgutils.unpack_tuple(builder, result))
            return context.make_tuple(builder, signature.return_type, elements)

        return types.UniTuple(tile.dtype, 8)(tile, whole_index(tile, index, name)), code

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


ldmatrix, ldmatrix_trans = matrices("ldmatrix", ""), matrices("ldmatrix_trans", ".trans")


@intrinsic
def cp_async(typing, tile, index, source, at):
    """Begin to copy 16 bytes from source[at] on to tile[index] on, in shared memory."""
    if pointee(tile, "cp_async") != pointee(source, "cp_async"):
        raise NumbaTypeError(f"cp_async: wanted elements of one type, got {source} and {tile}")

    def code(context, builder, signature, arguments):
        check_capability("cp_async")
        to = place(context, builder, signature.args[0], *arguments[:2])
        start = place(context, builder, signature.args[2], *arguments[2:])
        given = [shared_address(builder, to), builder.ptrtoint(start, ADDRESS)]
        text = "cp.async.cg.shared.global [$0], [$1], 16; " + WIDE.format("st")
        assembly(builder, ir.VoidType(), given, text, ["r", "l"])
        return context.get_dummy_value()

    indices = whole_index(tile, index, "cp_async"), whole_index(source, at, "cp_async")
    return types.void(tile, indices[0], source, indices[1]), code


@intrinsic
def cp_async_commit(typing):
    """Close a group of this thread's copies."""

    def code(context, builder, signature, arguments):
        assembly(builder, ir.VoidType(), [], "cp.async.commit_group;", [])
        return context.get_dummy_value()

    return types.void(), code


@intrinsic
def cp_async_wait(typing, groups):
    """Wait until at most `groups` groups of this thread's copies are on their way."""
    if not isinstance(groups, types.IntegerLiteral):
        raise NumbaTypeError("cp_async_wait: wanted a number that is known when compiling")

    def code(context, builder, signature, arguments):
        text = f"cp.async.wait_group {groups.literal_value};"
        assembly(builder, ir.VoidType(), [], text, [])
        return context.get_dummy_value()

    return types.void(groups), code
