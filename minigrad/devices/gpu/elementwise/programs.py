"""Programs on a GPU: find the kernel and the launch for operands of any layout.

The number of blocks depends only on sizes and never on the GPU, so that results are the same on
all of them; kernels loop if a launch has fewer threads than elements.
"""

from minigrad.array.array import Array
from minigrad.array.layout import collapse, expand_strides, size_of
from minigrad.devices.call_layout import by_stride, kind_of, remember
from minigrad.devices.gpu.binding import (
    MOST_BLOCKS,
    BoundLaunch,
    classes_of,
    fits,
    is_aligned,
    kernel_of,
    layout_key,
    numbered,
    shares_memory,
    steps_allow_vectors,
    up,
)
from minigrad.devices.gpu.elementwise import turned_plan
from minigrad.devices.gpu.elementwise.elementwise_text import (
    THREADS,
    ElementwiseForm,
    elementwise_text,
)
from minigrad.devices.gpu.kernel_text import DENSE, LANES, operations, space_numbers
from minigrad.devices.gpu.reduce import reduce_launch
from minigrad.devices.gpu.rows import row_launch
from minigrad.devices.gpu.table import GpuTable
from minigrad.formulas.expression import IDENTITY

LONG = 16  # operations beyond which a thread takes fewer elements at a time
FEW = 1 << 17  # elements up to which a thread takes one; half as many threads fill a large GPU


class GpuPrograms(GpuTable):
    """The functions of the device table that run generated kernels, over `launch` and `empty`."""

    def elementwise(self, program, inputs, outputs):
        operands = (*inputs, *outputs)
        key = ("gpu", *[layout_key(x) for x in operands])
        bound = program.layouts.get(key)
        if bound is None:
            bound = remember(program, key, _bind_elementwise(program, operands, outputs[0].shape))
        for launch in bound:
            launch.run(self, operands)

    def reduce(self, program, how, inputs, out, shape, axes):
        operands = (*inputs, out)
        key = ("gpu", how, shape, axes, *[layout_key(x) for x in operands])
        stages = program.layouts.get(key)
        if stages is None:
            stages = reduce_launch.plan(program, how, operands, shape, axes)
            remember(program, key, stages)
        for launch, scratch in stages:
            target = out if scratch is None else self.empty(*scratch)
            launch.run(self, (*inputs, target))
            inputs = (target,)

    def rows(self, program, modes, inputs, outputs, shape):
        operands = (*inputs, *outputs)
        same = shares_memory(inputs, outputs)
        key = ("gpu", modes, shape, same, *[layout_key(x) for x in operands])
        call = program.layouts.get(key, self)
        if call is self:
            call = remember(program, key, row_launch.plan(program, modes, operands, shape, same))
        if call is None:
            return
        if call.scratch is None:
            call.launch.run(self, operands)
            return
        partial = {k: self.empty(*call.scratch) for k, m in enumerate(modes) if m == "columns"}
        targets = [partial.get(k, out) for k, out in enumerate(outputs)]
        call.launch.run(self, (*inputs, *targets))
        for k, total in partial.items():
            self.reduce(IDENTITY, "sum", (total,), outputs[k], total.shape, (0,))


def _bind_elementwise(program, operands, shape):
    """Return a tuple of an elementwise program's BoundLaunch; empty without elements."""
    n = size_of(shape)
    if not n:
        return ()
    arrays = [x for x in operands if isinstance(x, Array)]
    dims, strides = collapse(shape, [expand_strides(x.shape, x.strides, shape) for x in arrays])
    dims, strides = by_stride(dims, strides, len(arrays) - 1)
    dims, strides = dims or [1], strides or [[1] * len(arrays)]
    layouts, numbers = numbered(zip(*strides, strict=True))
    few = n <= FEW
    turned = None if few else turned_plan.plan(program, operands, dims, layouts, numbers)
    if turned is not None:
        return (turned,)
    classes = classes_of(dims, layouts)
    dense = [x for x, k in zip(arrays, numbers, strict=True) if classes[k] in DENSE]
    vector = not few and is_aligned(dense) and steps_allow_vectors(dims, layouts)
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
    return (BoundLaunch(kernel, blocks, THREADS, extra),)
