"""Kernels bound to layouts: how they are launched, and how layouts decide their form."""

from typing import Any, NamedTuple

from minigrad.array.array import Array
from minigrad.array.layout import contiguous_strides, size_of
from minigrad.devices.cpu.binding import stride_class
from minigrad.devices.gpu.kernel import GpuKernel
from minigrad.devices.gpu.text import IN_ORDER, LANES, SMALL

MOST_BLOCKS = 1 << 20
ALIGNED = 16  # bytes: of an address, for vector accesses


class BoundLaunch(NamedTuple):
    """How a kernel is launched for some layouts; numbers: its arguments after the operands."""

    kernel: GpuKernel
    blocks: Any
    threads: int
    numbers: tuple

    def run(self, device, operands):
        """Runs it on Arrays and scalars."""
        device.launch(self.kernel, self.blocks, self.threads, (*operands, *self.numbers))


def up(count, step):
    """How many steps make up a count."""
    return -(-count // step)


def power_above(n):
    """The smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def layout_key(x):
    """What a binding depends on in an operand."""
    if isinstance(x, Array):
        return x.shape, x.strides, x.dtype, x.address % ALIGNED == 0
    return type(x)


def fits(dims, layouts):
    """Whether 32 bits are enough for indices and strides."""
    return size_of(dims) < SMALL and all(abs(s) < SMALL for x in layouts for s in x)


def numbered(layouts):
    """(the different layouts, per operand the number of its layout)."""
    found = {}
    numbers = tuple([found.setdefault(tuple(x), len(found)) for x in layouts])
    return list(found), numbers


def classes_of(dims, layouts):
    """Per layout its stride class: see `text.Space`."""
    order = contiguous_strides(tuple(dims)) if len(dims) > 1 else None
    return tuple(
        [
            IN_ORDER if x == order else stride_class(x[-1]) if any(x) else None
            for x in map(tuple, layouts)
        ]
    )


def steps_allow_vectors(dims, layouts):
    """Whether four neighbours along the last dimension can be one access in every layout."""
    if len(dims) > 1 and dims[-1] % LANES:
        return False
    for x in layouts:
        if x[-1] not in (0, 1) or (x[-1] == 1 and any(s % LANES for s in x[:-1])):
            return False
    return any(x[-1] == 1 for x in layouts)


def is_aligned(arrays):
    """Whether every Array begins where a vector access may."""
    return all(x.address % ALIGNED == 0 for x in arrays)


def shares_memory(inputs, outputs):
    """Whether an output begins where an input does."""
    places = {x.address for x in inputs if isinstance(x, Array)}
    return any(out.address in places for out in outputs)


def kernel_of(program, key, writer):
    """The kernel of a program's form, written once."""
    found = program.kernels.get(key)
    if found is None:
        found = program.kernels[key] = writer(program, *key[1:])
    return found
