"""Tiles: sums of products that stay in vector registers, as LLVM instructions.

LLVM only vectorizes the innermost loop, but the sums of a whole tile must stay in registers across
several loops. So these functions build the instructions themselves. They use vectors of eight
floats, which LLVM splits for processors with shorter ones.
"""

# pyright: reportUndefinedVariable=false

from llvmlite import ir
from numba.core import cgutils

LANES = 8
BLOCK = 4  # channels of a tile
WIDE = 2  # vectors of a tile of `sums_of_windows`
TAPS = 3  # kernel places in a tile of `sums_of_pixels`
_F32, _I32, _I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_F32, LANES)


class Tile:
    """Helpers that build the instructions of a tile."""

    def __init__(self, builder):
        self.builder = builder

    def at(self, pointer, index):
        """Return the address of an element."""
        index = ir.Constant(_I64, index) if isinstance(index, int) else index
        return self.builder.gep(pointer, [index])

    def vector_at(self, pointer):
        """Return the address of an element as a vector pointer."""
        return self.builder.bitcast(pointer, _VECTOR.as_pointer())

    def load(self, pointer):
        """Load LANES neighbouring elements."""
        return self.builder.load(self.vector_at(pointer), align=4)

    def everywhere(self, pointer):
        """Broadcast one element to every lane."""
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = self.builder.load(pointer)
        one = self.builder.insert_element(undefined, one, ir.Constant(_I32, 0))
        first = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, undefined, first)

    def plus(self, total, a, b):
        """Return total + a * b, fused where the processor can."""
        product = self.builder.fmul(a, b, flags=["contract"])
        return self.builder.fadd(total, product, flags=["contract"])

    def store(self, vectors, pointers):
        """Store vectors."""
        for v, p in zip(vectors, pointers, strict=True):
            self.builder.store(v, self.vector_at(p), align=4)

    def lane_sums(self, vectors):
        """Return the lane sums of eight vectors as one vector, by adding pairs three times."""
        width = LANES // 2
        while len(vectors) > 1:
            low = [k for k in range(2 * LANES) if k % (2 * width) < width]
            halves = [
                ir.Constant(ir.VectorType(_I32, LANES), m) for m in (low, [k + width for k in low])
            ]
            vectors = [
                self.builder.fadd(*(self.builder.shuffle_vector(a, b, m) for m in halves))
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            width //= 2
        return vectors[0]

    def loop(self, count, values, body):
        """Repeat values = body(index, values) for each index below count, which is at least 1."""
        builder, before = self.builder, self.builder.block
        head, done = builder.append_basic_block("head"), builder.append_basic_block("done")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_I64)
        index.add_incoming(ir.Constant(_I64, 0), before)
        inside = [builder.phi(v.type) for v in values]
        results = body(index, inside)
        last, following = builder.block, builder.add(index, ir.Constant(_I64, 1))
        index.add_incoming(following, last)
        for p, v, result in zip(inside, values, results, strict=True):
            p.add_incoming(v, before)
            p.add_incoming(result, last)
        builder.cbranch(builder.icmp_signed("<", following, count), head, done)
        builder.position_at_end(done)
        return results


@intrinsic
def sums_of_windows(typing, x, taps, w, out, count, pitch):
    """Set out[o * pitch + j] to bias o + the sum over taps t of x[taps[t] + j] * w[t, o].

    Covers 4 channels o and 16 neighbours j. w: 4 biases, then (count, 4).
    """

    def code(context, builder, signature, arguments):
        x, taps, w, out, count, pitch = arguments
        tile, kernels = Tile(builder), builder.gep(w, [ir.Constant(_I64, BLOCK)])

        def over_taps(t, sums):
            here = tile.at(x, builder.load(tile.at(taps, t)))
            there = tile.at(kernels, builder.mul(t, ir.Constant(_I64, BLOCK)))
            values = [tile.load(tile.at(here, LANES * v)) for v in range(WIDE)]
            weights = [tile.everywhere(tile.at(there, o)) for o in range(BLOCK)]
            pairs = [(a, b) for a in weights for b in values]
            return [tile.plus(s, a, b) for s, (a, b) in zip(sums, pairs, strict=True)]

        biases = [tile.everywhere(tile.at(w, o)) for o in range(BLOCK)]
        sums = tile.loop(count, [b for b in biases for _ in range(WIDE)], over_taps)
        rows = [tile.at(out, builder.mul(pitch, ir.Constant(_I64, o))) for o in range(BLOCK)]
        tile.store(sums, [tile.at(r, LANES * v) for r in rows for v in range(WIDE)])
        return context.get_dummy_value()

    floats, places = types.CPointer(types.float32), types.CPointer(types.int64)
    return types.void(floats, places, floats, floats, types.int64, types.int64), code


@intrinsic
def sums_of_pixels(typing, g, x, out, g_plane, a, b, c, images, g_image, x_image, vectors):
    """Set out[o, t] to the sum of g[o] * x[t] over images and pixels; (4, 3) and 4 unused.

    The four channels o of g lie `g_plane` apart; the three x[t] begin at places a, b and c of x.
    """

    def code(context, builder, signature, arguments):
        g, x, out, g_plane, *places, images, g_image, x_image, vectors = arguments
        tile, lanes = Tile(builder), ir.Constant(_I64, LANES)
        rising = [tile.at(g, builder.mul(g_plane, ir.Constant(_I64, o))) for o in range(BLOCK)]
        seen = [tile.at(x, place) for place in places]

        def over_images(k, sums):
            of_g, of_x = builder.mul(k, g_image), builder.mul(k, x_image)

            def over_pixels(q, sums):
                start = builder.mul(q, lanes)
                in_g, in_x = builder.add(of_g, start), builder.add(of_x, start)
                left = [tile.load(tile.at(p, in_g)) for p in rising]
                right = [tile.load(tile.at(p, in_x)) for p in seen]
                pairs = [(u, v) for u in left for v in right]
                return [tile.plus(s, u, v) for s, (u, v) in zip(sums, pairs, strict=True)]

            return tile.loop(vectors, sums, over_pixels)

        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = tile.loop(images, [zero] * (BLOCK * TAPS), over_images)
        sums += [zero] * (2 * LANES - len(sums))
        totals = [tile.lane_sums(sums[k : k + LANES]) for k in (0, LANES)]
        tile.store(totals, [tile.at(out, 0), tile.at(out, LANES)])
        return context.get_dummy_value()

    pointers = [types.CPointer(types.float32)] * 3
    return types.void(*pointers, *[types.int64] * 8), code


@intrinsic
def moved(typing, pointer, count):
    """Return the pointer advanced by `count` elements."""

    def code(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), code


@intrinsic
def copied(typing, out, source, count):
    """Copy count elements to out by memcpy: a loop is as fast but slower to compile."""

    def code(context, builder, signature, arguments):
        size = context.get_abi_sizeof(arguments[0].type.pointee)
        cgutils.raw_memcpy(builder, *arguments, size)
        return context.get_dummy_value()

    return types.void(out, out, types.int64), code


@intrinsic
def zeroed(typing, out, count):
    """Set count elements of out to 0."""

    def code(context, builder, signature, arguments):
        size = context.get_abi_sizeof(arguments[0].type.pointee)
        nbytes = builder.mul(arguments[1], ir.Constant(_I64, size))
        cgutils.memset(builder, arguments[0], nbytes, 0)
        return context.get_dummy_value()

    return types.void(out, types.int64), code
