"""Programs on a GPU: the kernel and the launch for operands of any layout, remembered.

How many blocks a launch has depends on sizes alone and never on the GPU, so that results are the
same on all of them; kernels loop where a launch has fewer threads than elements.
"""

from typing import Any, NamedTuple

from minigrad.array.array import Array
from minigrad.array.layout import collapse, contiguous_strides, expand_strides, size_of
from minigrad.kernels.binding import by_stride, kind_of, remember, stride_class
from minigrad.kernels.gpu.elementwise_text import THREADS, ElementwiseForm, elementwise_text
from minigrad.kernels.gpu.kernel import GpuKernel
from minigrad.kernels.gpu.text import DENSE, IN_ORDER, LANES, SMALL, operations, space_numbers

MOST_BLOCKS = 1 << 20
ALIGNED = 16  # bytes: of an address, for vector accesses
LONG = 16  # operations of a program from which a thread takes fewer elements at a time
FEW = 1 << 17  # elements up to which each thread takes one: half as many threads fill a large GPU


class Launch(NamedTuple):
    """A kernel bound to layouts: how it is launched, and the numbers after its operands."""

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


def layout_key(x):
    """What a binding depends on of an operand."""
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


def kernel_of(program, key, writer):
    """The kernel of a program's form: written once."""
    found = program.kernels.get(key)
    if found is None:
        found = program.kernels[key] = writer(program, *key[1:])
    return found


class GpuPrograms:
    """The functions of the device table that run generated kernels, over `launch` and `empty`."""

    launch: Any  # of the device
    empty: Any

    def elementwise(self, program, inputs, outputs):
        """outputs = program(inputs), broadcast to the shape of the outputs.

        inputs: Arrays, and Python numbers for scalars. Reads happen before writes element by
        element, so an output may be one of the inputs.
        """
        operands = (*inputs, *outputs)
        key = ("gpu", *[layout_key(x) for x in operands])
        bound = program.layouts.get(key)
        if bound is None:
            bound = remember(program, key, _bind_elementwise(program, operands, outputs[0].shape))
        for launch in bound:
            launch.run(self, operands)


def _bind_elementwise(program, operands, shape):
    """The Launches, one or none, of an elementwise program."""
    n = size_of(shape)
    if not n:
        return ()
    arrays = [x for x in operands if isinstance(x, Array)]
    dims, strides = collapse(shape, [expand_strides(x.shape, x.strides, shape) for x in arrays])
    dims, strides = by_stride(dims, strides, len(arrays) - 1)
    dims, strides = dims or [1], strides or [[1] * len(arrays)]
    layouts, numbers = numbered(zip(*strides, strict=True))
    classes = classes_of(dims, layouts)
    few = n <= FEW
    vector = not few and is_aligned(
        [x for x, k in zip(arrays, numbers, strict=True) if classes[k] in DENSE]
    )
    vector = vector and steps_allow_vectors(dims, layouts)
    vector = vector and all(classes[k] in DENSE for k in numbers[-len(program.outputs) :])
    many = len(dims) > 1 or len(arrays) > LANES or operations(program) > LONG
    form = ElementwiseForm(
        kinds=tuple(map(kind_of, operands)),
        layouts=numbers,
        classes=classes,
        rank=len(dims),
        vector=vector,
        copies=1 if few else LANES if many else 2 * LANES,
        narrow=fits(dims, layouts),
    )
    kernel = kernel_of(program, ("gpu elementwise", form), elementwise_text)
    extra = (n,)
    if len(dims) > 1 or 2 in classes:
        extra = (n, *space_numbers(dims, layouts, classes, form.narrow))
    blocks = min(up(n, THREADS * form.copies), MOST_BLOCKS)
    return (Launch(kernel, blocks, THREADS, extra),)
