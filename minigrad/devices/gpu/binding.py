"""Binds kernels to layouts: how to launch them, and how layouts decide their form."""

from typing import Any, NamedTuple

from minigrad.array.array import Array
from minigrad.array.layout import contiguous_strides, size_of
from minigrad.devices.call_layout import stride_class
from minigrad.devices.gpu.kernel import GpuKernel
from minigrad.devices.gpu.kernel_text import IN_ORDER, LANES, SMALL

MOST_BLOCKS = 1 << 20
ALIGNED = 16  # bytes to which vector accesses align addresses


class BoundLaunch(NamedTuple):
    """The launch of a kernel for some layouts; numbers: its arguments after the operands."""

    kernel: GpuKernel
    blocks: Any
    threads: int
    numbers: tuple

    def run(self, device, operands):
        """Launch the kernel on Arrays and scalars."""
        device.launch(self.kernel, self.blocks, self.threads, (*operands, *self.numbers))


def up(count, step):
    """Return how many steps cover a count."""
    return -(-count // step)


def power_above(n):
    """Return the smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def layout_key(x):
    """Return the facts about an operand that a binding depends on."""
    if isinstance(x, Array):
        return x.shape, x.strides, x.dtype, x.address % ALIGNED == 0
    return type(x)


def fits(dims, layouts):
    """Return whether 32 bits are enough for indices and strides."""
    return size_of(dims) < SMALL and all(abs(s) < SMALL for x in layouts for s in x)


def numbered(layouts):
    """Return (the different layouts, the number of each operand's layout)."""
    number_of = {}
    numbers = tuple([number_of.setdefault(tuple(x), len(number_of)) for x in layouts])
    return list(number_of), numbers


def classes_of(dims, layouts):
    """Return the stride class of each layout: see `kernel_text.Space`."""
    order = contiguous_strides(tuple(dims)) if len(dims) > 1 else None
    return tuple(
        [
            IN_ORDER if x == order else stride_class(x[-1]) if any(x) else None
            for x in map(tuple, layouts)
        ]
    )


def steps_allow_vectors(dims, layouts):
    """Return whether in every layout one access can take four neighbours of the last dimension."""
    if len(dims) > 1 and dims[-1] % LANES:
        return False
    for x in layouts:
        if x[-1] not in (0, 1) or (x[-1] == 1 and any(s % LANES for s in x[:-1])):
            return False
    return any(x[-1] == 1 for x in layouts)


def is_aligned(arrays):
    """Return whether every Array is aligned for vector accesses."""
    return all(x.address % ALIGNED == 0 for x in arrays)


def shares_memory(inputs, outputs):
    """Return whether an output begins where an input does."""
    places = {x.address for x in inputs if isinstance(x, Array)}
    return any(out.address in places for out in outputs)


def kernel_of(program, key, writer):
    """Return the kernel for a program's form; write it once."""
    kernel = program.kernels.get(key)
    if kernel is None:
        kernel = program.kernels[key] = writer(program, *key[1:])
    return kernel
