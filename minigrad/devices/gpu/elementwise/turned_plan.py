"""Decide when an elementwise program with a turned input goes tile by tile; plan its launch."""

from minigrad.array.layout import size_of
from minigrad.devices.call_layout import kind_of, stride_class
from minigrad.devices.gpu.binding import MOST_BLOCKS, BoundLaunch, fits, kernel_of, up
from minigrad.devices.gpu.elementwise.elementwise_text import THREADS
from minigrad.devices.gpu.elementwise.turned_text import (
    MOST_TURNED,
    SIDE,
    TURNED,
    TurnedForm,
    turned_text,
)
from minigrad.devices.gpu.kernel_text import space_numbers

LEAST = 8  # fewest rows and columns worth a tile: float32s in a sector of memory


def plan(program, operands, dims, layouts, numbers):
    """Return the BoundLaunch of a program, or None if no input is turned.

    Args:
        dims: sizes in the order of the outputs' memory.
        layouts: the different layouts, as strides over dims; numbers: per array its layout.
    """
    outputs = numbers[-len(program.outputs) :]
    rows = _rows(dims, layouts, outputs)
    if rows is None:
        return None
    order = [*(d for d in range(len(dims) - 1) if d != rows), rows, len(dims) - 1]
    dims, layouts = [dims[d] for d in order], [[x[d] for d in order] for x in layouts]
    classes = tuple([_class(x) for x in layouts])
    if sum(classes[k] == TURNED for k in numbers) > MOST_TURNED:
        return None
    of_tiles = [*dims[:-2], up(dims[-2], SIDE), up(dims[-1], SIDE)]
    steps = [[*x[:-2], SIDE * x[-2], SIDE * x[-1]] for x in layouts]
    form = TurnedForm(
        kinds=tuple(map(kind_of, operands)),
        layouts=numbers,
        classes=classes,
        rank=len(dims),
        narrow=fits(dims, layouts) and fits(of_tiles, steps),
    )
    numbers = [size_of(of_tiles), *dims[-2:]]
    numbers += space_numbers(of_tiles, steps, classes, form.narrow)
    for x, kind in zip(layouts, classes, strict=True):
        if kind not in (None, TURNED):
            numbers.append(x[-2])
        if kind in (2, TURNED):
            numbers.append(x[-1])
    kernel = kernel_of(program, ("gpu turned", form), turned_text)
    return BoundLaunch(kernel, min(size_of(of_tiles), MOST_BLOCKS), THREADS, tuple(numbers))


def _rows(dims, layouts, outputs):
    """Return the dimension along which a turned input has stride 1; None if there is none."""
    if len(dims) < 2 or dims[-1] < LEAST or any(layouts[k][-1] != 1 for k in outputs):
        return None
    for strides in layouts:
        for d, n in enumerate(dims[:-1]):
            if n >= LEAST and strides[d] == 1 and strides[-1] not in (0, 1):
                return d
    return None


def _class(strides):
    """Return the stride class of a layout: see TurnedForm."""
    if strides[-2] == 1 and strides[-1] not in (0, 1):
        return TURNED
    return stride_class(strides[-1]) if any(strides) else None
