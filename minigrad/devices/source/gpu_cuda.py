"""The beginning of every GPU kernel file for Numba's CUDA target: names, types, wide accesses.

No fastmath: it would make divisions and roots inexact and flush denormals, and LLVM must not assume
NaN and infinities away. Products and sums still contract to fused multiply-adds, as on the CPU.
"""

import math  # noqa: F401 - for the kernels that follow this text

import numpy as np

from minigrad.devices.gpu.compiler import (
    NumbaTypeError,
    cuda,
    intrinsic,
    ir,
    nvvmutils,
    types,
)

F2, F4, F8 = np.float16, np.float32, np.float64
B2 = np.uint16  # the bits of a bfloat16: see rounding.py
I2, I4, I8, U1, U4, U8 = np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64

# Marks a device function, which kernels may call. Inlined, so that tuples stay in registers.
exact_jit = cuda.jit(device=True, forceinline=True)
device = exact_jit


def pointee(pointer, what):
    """Return the element type of a pointer or shared array. what: the function that needs it."""
    if not isinstance(pointer, (types.CPointer, types.Array)):
        raise NumbaTypeError(f"{what}: wanted a pointer first, got {pointer}")
    return pointer.dtype


def element_at(context, builder, pointer, value, index):
    """Return the address of an element. pointer: its type, as in pointee; value: its IR value."""
    if isinstance(pointer, types.Array):
        value = context.make_array(pointer)(context, builder, value).data
    return builder.gep(value, [index])


def atomic(name, float_calls, signed, unsigned):
    """Make an atomic function (pointer, index, value) -> the old value."""

    def typed(typing, pointer, index, value):
        element = pointee(pointer, name)
        if element not in (*float_calls, types.int32, types.int64, types.uint32, types.uint64):
            raise NumbaTypeError(f"{name}: no atomic operation on {element}")

        def code(context, builder, signature, arguments):
            at = element_at(context, builder, signature.args[0], *arguments[:2])
            if element in float_calls:
                return builder.call(float_calls[element](builder.module), (at, arguments[2]))
            word = signed if element.signed else unsigned
            return builder.atomic_rmw(word, at, arguments[2], "monotonic")

        return element(pointer, types.int64, element), code

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


atomic_add = atomic(
    "atomic_add",
    {
        types.float32: nvvmutils.declare_atomic_add_float32,
        types.float64: nvvmutils.declare_atomic_add_float64,
    },
    "add",
    "add",
)
atomic_max = atomic(
    "atomic_max",
    {
        types.float32: nvvmutils.declare_atomic_max_float32,
        types.float64: nvvmutils.declare_atomic_max_float64,
    },
    "max",
    "umax",
)
atomic_min = atomic(
    "atomic_min",
    {
        types.float32: nvvmutils.declare_atomic_min_float32,
        types.float64: nvvmutils.declare_atomic_min_float64,
    },
    "min",
    "umin",
)


def vectors(context, builder, element, address):
    """Return (pointer to vectors, their type, elements per vector) for 16-byte accesses."""
    each = min(4, 16 * 8 // element.bitwidth)
    vector = ir.VectorType(context.get_value_type(element), each)
    return builder.bitcast(address, vector.as_pointer()), vector, each


@intrinsic
def load4(typing, pointer, index):
    """Load elements index to index + 3 in one access (8-byte types: two); index % 4 is 0."""
    element = pointee(pointer, "load4")

    def code(context, builder, signature, arguments):
        start = element_at(context, builder, signature.args[0], *arguments[:2])
        start, _, each = vectors(context, builder, element, start)
        values = []
        for k in range(4 // each):
            loaded = builder.load(builder.gep(start, [ir.Constant(ir.IntType(64), k)]))
            loaded.align = each * element.bitwidth // 8
            for lane in range(each):
                place = ir.Constant(ir.IntType(32), lane)
                values.append(builder.extract_element(loaded, place))
        return context.make_tuple(builder, signature.return_type, values)

    return types.UniTuple(element, 4)(pointer, types.int64), code


@intrinsic
def store4(typing, pointer, index, a, b, c, d):
    """Store four values from element index on; index is a multiple of 4."""
    element = pointee(pointer, "store4")

    def code(context, builder, signature, arguments):
        start = element_at(context, builder, signature.args[0], *arguments[:2])
        start, vector, each = vectors(context, builder, element, start)
        for k in range(4 // each):
            whole = ir.Constant(vector, ir.Undefined)
            for lane in range(each):
                place = ir.Constant(ir.IntType(32), lane)
                whole = builder.insert_element(whole, arguments[2 + k * each + lane], place)
            stored = builder.store(whole, builder.gep(start, [ir.Constant(ir.IntType(64), k)]))
            stored.align = each * element.bitwidth // 8
        return context.get_dummy_value()

    return types.void(pointer, types.int64, element, element, element, element), code
